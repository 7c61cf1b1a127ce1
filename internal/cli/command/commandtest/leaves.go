// Package commandtest holds what is asked of every command line of Scaffold, for the tests of each.
package commandtest

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
)

// Leaves calls do with every command that does something and is shown.
func Leaves(cmd *cobra.Command, do func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	if !cmd.HasSubCommands() && cmd.RunE != nil {
		do(cmd)
	}
	for _, sub := range cmd.Commands() {
		Leaves(sub, do)
	}
}

// HaveExamples fails where a command has no line that says what it does, or no example of itself.
func HaveExamples(t *testing.T, root *cobra.Command) {
	t.Helper()
	Leaves(root, func(cmd *cobra.Command) {
		if cmd.Short == "" || !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: want a line in Short and its own path in Example, so that --help can be followed", cmd.CommandPath())
		}
	})
}

// RefuseBoth fails where a pair of flags that is declared to exclude each other is none of flags that are there, or is not
// refused.
func RefuseBoth(t *testing.T, fresh func() *cobra.Command) {
	t.Helper()
	Leaves(fresh(), func(cmd *cobra.Command) {
		for pair := range strings.SplitSeq(cmd.Annotations[command.Excluding], ",") {
			a, b, _ := strings.Cut(pair, " ")
			b, value, one := strings.Cut(b, "=")
			if pair == "" {
				continue
			}
			root := fresh()
			other, _, err := root.Find(strings.Fields(strings.TrimPrefix(cmd.CommandPath(), root.CommandPath()+" ")))
			if err != nil {
				t.Fatal(err)
			}
			other.InheritedFlags() // which puts them beside its own
			for _, name := range []string{a, b} {
				f := other.Flags().Lookup(name)
				if f == nil {
					if name != "netns" && name != "pid" { // declared for a group, of which one takes them
						t.Errorf("%s excludes --%s, which it has not", cmd.CommandPath(), name)
					}
					return
				}
				f.Changed = true
				if f.Value.Type() == "bool" {
					f.Value.Set("true") //nolint:errcheck // a bool takes it
				}
			}
			if one {
				if err := other.Flags().Set(b, value); err != nil {
					t.Error(err)
				}
			}
			if err := command.CheckPairs(other, nil); err == nil || !strings.Contains(err.Error(), "--"+a+" and --"+b) {
				t.Errorf("%s: --%s and --%s: %v, want a refusal", cmd.CommandPath(), a, b, err)
			}
		}
	})
}
