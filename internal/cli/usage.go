package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
)

// misused is the error of a command line that was not understood, with what the command wants. What went wrong while
// help was written is no misuse.
func misused(cmd *cobra.Command, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return err
	}
	said, like, _ := strings.Cut(err.Error(), "\n\nDid you mean this?\n") // cobra's has a line for each
	if names := strings.Fields(like); len(names) > 0 {
		err = fmt.Errorf("%s: did you mean %s?", said, strings.Join(names, " or "))
	}
	hint := "`scaffold help` and `--help` after any command say what there is"
	if cmd != nil && cmd.HasParent() && !cmd.HasAvailableSubCommands() {
		hint = "usage: " + cmd.UseLine() + "; `" + cmd.CommandPath() + " --help` says more"
	}
	return fail(ExitUsage, hint, err)
}

// countArguments has each command say how many arguments it wants in our words: cobra's name neither the command nor
// what is too much.
func countArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		countArguments(sub)
	}
	if check := cmd.Args; check != nil && cmd.HasParent() && !cmd.HasSubCommands() {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			switch {
			case err == nil:
				return nil
			case strings.HasPrefix(err.Error(), "unknown command "): // of NoArgs
				return fmt.Errorf("%s takes no arguments, found %q", cmd.CommandPath(), args[0])
			case strings.Contains(err.Error(), " arg(s), "): // of ExactArgs and the like
				return fmt.Errorf("%s: %s", cmd.CommandPath(), found(args))
			}
			return err
		}
	}
}

// found are the arguments that do not fit.
func found(args []string) string {
	switch len(args) {
	case 0:
		return "an argument is missing"
	case 1:
		return fmt.Sprintf("the argument %q does not do alone", args[0])
	}
	return fmt.Sprintf("%d arguments do not fit: %q", len(args), args)
}
