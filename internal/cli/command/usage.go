package command

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/internal/cli/exit"
)

// misused is the error of a command line that was not understood, with what the command wants. What went wrong while
// help was written is no misuse.
func misused(cmd *cobra.Command, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return err
	}
	err = inOurWords(cmd, err)
	hint := "`" + cmd.Root().CommandPath() + " help` and `--help` after any command say what there is"
	if cmd.HasParent() && !cmd.HasAvailableSubCommands() {
		hint = "usage: " + cmd.UseLine() + "; `" + cmd.CommandPath() + " --help` says more"
	}
	return exit.Fail(exit.Usage, hint, err)
}

var (
	quoted      = regexp.MustCompile(`"([^"]+)"`)
	requiredErr = regexp.MustCompile(`^required flag\(s\) (.*) not set$`)
)

// inOurWords is what the libraries below have to say of a line.
func inOurWords(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return fmt.Errorf("--%s %.80q: %s", value.GetFlag().Name, value.GetValue(), wanted(value.GetFlag().Value, value.Unwrap()))
	}
	if m := requiredErr.FindStringSubmatch(err.Error()); m != nil {
		var missing []string
		for _, name := range quoted.FindAllStringSubmatch(m[1], -1) {
			missing = append(missing, flagName(cmd, name[1]))
		}
		return fmt.Errorf("%s: %s %s missing", cmd.CommandPath(), and(missing), map[bool]string{true: "is", false: "are"}[len(missing) == 1])
	}
	said, like, _ := strings.Cut(err.Error(), "\n\nDid you mean this?\n") // cobra's has a line for each
	if like == "" {
		return err
	}
	typed := quoted.FindStringSubmatch(said)
	var close []string
	for _, name := range strings.Fields(like) {
		if typed != nil && near(typed[1], name) {
			close = append(close, name)
		}
	}
	if len(close) > 0 {
		return fmt.Errorf("%s: did you mean %s?", said, strings.Join(close, " or "))
	}
	return errors.New(strings.TrimSpace(said))
}

// wanted says what a flag takes. Flags of our own types say it themselves.
func wanted(v pflag.Value, cause error) string {
	t := v.Type()
	if !strings.HasPrefix(cause.Error(), "strconv.") && !strings.HasPrefix(cause.Error(), "time: ") {
		return cause.Error()
	}
	switch {
	case t == "duration":
		return "want a time such as 500ms, 2s or 24h"
	case t == "bool":
		return "want true or false"
	case strings.HasPrefix(t, "float"):
		return "want a number such as 1.5"
	case t == "uint8":
		return "want a whole number from 0 to 255"
	case t == "uint32":
		return "want a whole number from 0 to 4294967295"
	case strings.HasPrefix(t, "uint"):
		return "want a whole number from 0 up"
	}
	return "want a whole number"
}

// flagName is how a flag is typed: --file (-f).
func flagName(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil && f.Shorthand != "" {
		return "--" + name + " (-" + f.Shorthand + ")"
	}
	return "--" + name
}

// near reports whether one name was likely meant by the other: a letter in three is wrong, or two changed places, or
// the end is missing.
func near(typed, name string) bool {
	return strings.HasPrefix(name, typed) || EditDistance(typed, name) <= max(1, len(typed)/3) || swapped(typed, name)
}

// swapped reports whether two letters that stand side by side changed places.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
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
				return fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
			case strings.Contains(err.Error(), " arg(s), "): // of ExactArgs and the like
				return fmt.Errorf("%s%s", cmd.CommandPath(), miscounted(ArgumentNames(cmd), args))
			}
			return err
		}
	}
}

// miscounted says what is missing, or how many there may be.
func miscounted(names, args []string) string {
	switch {
	case len(args) < len(names) && strings.HasSuffix(names[len(args)], "..."):
		return ": give at least one " + strings.TrimSuffix(names[len(args)], "...")
	case len(args) < len(names):
		return ": " + alternatives(names[len(args)]) + " is missing"
	case len(names) == 1:
		return fmt.Sprintf(" takes one %s, got %d", alternatives(names[0]), len(args))
	}
	for i := range names {
		names[i] = alternatives(names[i])
	}
	return fmt.Sprintf(" takes %s, got %d arguments", and(names), len(args))
}

// flagsInUse are those in a command's line of use, with their values.
var flagsInUse = regexp.MustCompile(`\[-[^]]*\]|--[a-z-]+( [A-Za-z|]+)?`)

// ArgumentNames are what a command's line of use calls its arguments.
func ArgumentNames(cmd *cobra.Command) []string {
	return strings.Fields(flagsInUse.ReplaceAllString(cmd.Use, ""))[1:]
}

func argumentName(cmd *cobra.Command, i int) string {
	if names := ArgumentNames(cmd); i < len(names) {
		return alternatives(names[i])
	}
	return fmt.Sprintf("argument %d", i+1)
}

// alternatives are NAME|ADDRESS as people say it.
func alternatives(name string) string {
	all := strings.Split(strings.TrimSuffix(strings.Trim(name, "[]"), "..."), "|")
	if len(all) == 1 {
		return all[0]
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// and joins what is enumerated.
func and(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
