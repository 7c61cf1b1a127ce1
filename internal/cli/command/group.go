// Package command is what all command lines of Scaffold share: how a line is checked before anything is asked or changed,
// how a mistake in it is told, how a command ends when it is interrupted or nobody reads its output.
package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group is a command that only holds others.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use:   use + " COMMAND",
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s: choose one of %s", cmd.CommandPath(), names(cmd))
			}
			return fmt.Errorf("%s %q: there is no such command: choose one of %s", cmd.CommandPath(), args[0], names(cmd))
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args has refused by then
	}
	g.AddCommand(subs...)
	return g
}

func names(cmd *cobra.Command) string {
	var all []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, sub.Name())
		}
	}
	return strings.Join(all, ", ")
}
