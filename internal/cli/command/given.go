package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What a command line may not say is told before anything is asked or changed: here what holds for all commands, and
// what a command declares by the words below.

// Keys of the annotations by which a command and its flags say what suits them.
const (
	notEmpty    = "scaffold-not-empty" // of a flag: what to write instead of nothing
	mayBeEmpty  = "scaffold-empty"     // of a flag or command: nothing is a value of it
	withoutJSON = "scaffold-plain"     // of a command: what it prints has one form
	asksNobody  = "scaffold-asks-nobody"
)

// Excluding is the annotation of a command that has its pairs of flags of which one would go unheard, joined by commas.
const Excluding = "scaffold-excluding"

// EmptyMeans says what to write for what an empty value would look like.
func EmptyMeans(flags *pflag.FlagSet, flag, text string) {
	flags.SetAnnotation(flag, notEmpty, []string{text}) //nolint:errcheck // the flag is there: it was just made
}

// AllowEmpty is for a flag of which nothing is a value.
func AllowEmpty(flags *pflag.FlagSet, flag string) {
	flags.SetAnnotation(flag, mayBeEmpty, []string{"yes"}) //nolint:errcheck // likewise
}

// AllowEmptyArguments is for a command among whose arguments may be empty ones: which says of them what they are.
func AllowEmptyArguments(cmd *cobra.Command, which string) { annotate(cmd, mayBeEmpty, which) }

func annotate(cmd *cobra.Command, key, value string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[key] = value
}

// Exclusive names pairs of flags of which one would go unheard beside the other, as "check seed"; where that is so with one
// value alone, as "all output=json".
func Exclusive(cmd *cobra.Command, pairs ...string) {
	annotate(cmd, Excluding, strings.Join(pairs, ","))
}

// Plain is for a command in a group with -o whose output has one form.
func Plain(cmd *cobra.Command) *cobra.Command {
	annotate(cmd, withoutJSON, "yes")
	return cmd
}

// Alone is for a command in a group with --api that asks no daemon.
func Alone(cmd *cobra.Command) *cobra.Command {
	annotate(cmd, asksNobody, "yes")
	return Plain(cmd)
}

// checkLines has every command look at its whole line before it runs. Hidden commands are for our own programs.
func checkLines(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		checkLines(sub)
	}
	if cmd.RunE == nil && cmd.Run == nil || cmd.Hidden || !cmd.HasParent() {
		return
	}
	own := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for _, check := range []func(*cobra.Command, []string) error{checkEmpty, own, CheckPairs} {
			if check == nil {
				continue
			}
			if err := check(cmd, args); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkEmpty refuses what a shell makes of a variable that is not set: taken as a list of nobody it would be a list for
// everybody, taken as a name that of anything.
func checkEmpty(cmd *cobra.Command, args []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if text := emptiness(f); text != "" && err == nil && f.Annotations[mayBeEmpty] == nil {
			if instead := f.Annotations[notEmpty]; instead != nil {
				text += "; " + instead[0]
			}
			err = fmt.Errorf("%s: %s", cmd.CommandPath(), text)
		}
	})
	if i := slices.Index(args, ""); i >= 0 && err == nil && cmd.Annotations[mayBeEmpty] == "" {
		err = fmt.Errorf("%s: %s is empty: is a variable of the shell not set?", cmd.CommandPath(), argumentName(cmd, i))
	}
	return err
}

func emptiness(f *pflag.Flag) string {
	empty := func(s string) bool { return strings.TrimSpace(s) == "" }
	if list, ok := f.Value.(pflag.SliceValue); ok {
		all := list.GetSlice()
		if len(all) > 1 && slices.ContainsFunc(all, empty) {
			return "--" + f.Name + ": one of its entries is empty: is a variable of the shell not set?"
		}
		if len(all) == 0 || empty(all[0]) {
			return "--" + f.Name + " is empty: an empty list is no list"
		}
		return ""
	}
	if empty(f.Value.String()) {
		return "--" + f.Name + " is empty: is a variable of the shell not set?"
	}
	return ""
}

// CheckPairs refuses flags of which one would go unheard.
func CheckPairs(cmd *cobra.Command, _ []string) error {
	pairs := []string{"api lab"}
	if more := cmd.Annotations[Excluding]; more != "" {
		pairs = append(pairs, strings.Split(more, ",")...)
	}
	for _, pair := range pairs {
		a, b, _ := strings.Cut(pair, " ")
		b, value, one := strings.Cut(b, "=")
		switch {
		case !Typed(cmd, a) || !Typed(cmd, b):
		case !one:
			return fmt.Errorf("%s: --%s and --%s exclude each other: leave one of them out", cmd.CommandPath(), a, b)
		case cmd.Flags().Lookup(b).Value.String() == value:
			return fmt.Errorf("%s: --%s and --%s %s exclude each other: leave one of them out", cmd.CommandPath(), a, b, value)
		}
	}
	if cmd.Annotations[withoutJSON] != "" && Typed(cmd, "output") && cmd.Flags().Lookup("output").Value.String() == "json" {
		return fmt.Errorf("%s has no -o json", cmd.CommandPath())
	}
	for _, flag := range []string{"api", "lab"} {
		if cmd.Annotations[asksNobody] != "" && Typed(cmd, flag) {
			return fmt.Errorf("%s asks nobody: leave --%s out", cmd.CommandPath(), flag)
		}
	}
	return nil
}

// Typed reports whether a flag was typed with a value that asks for something.
func Typed(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	return f != nil && f.Changed && f.Value.String() != "false"
}
