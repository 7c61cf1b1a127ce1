// Package cli is the scaffold command line: one file per subcommand.
//
// Commands speak to the daemons through their API alone. A failed command prints one line that says
// what went wrong and, where there is one, a hint at what to do; exit.go lists the exit codes.
package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/obs"
)

const about = `Scaffold lets programs connect to names: the network picks an instance when a flow's first
packet goes by, and the flow then runs straight between its two ends.

The daemons are hostd on each host, routerd on each router and controld once. "scaffold lab up"
runs a whole network of them on this machine; "scaffold doctor" says whether it can.`

// New returns the root command; the controller has modules.
func New(modules ...controller.Module) *cobra.Command { return newRoot(Linked{Modules: modules}) }

func newRoot(linked Linked) *cobra.Command {
	root := &cobra.Command{
		Use:           "scaffold",
		Short:         "Connect programs to names, not addresses",
		Long:          about,
		Version:       obs.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("scaffold {{.Version}}\n")
	root.AddCommand(commands(linked)...)
	root.AddCommand(exitCodesTopic())
	countArguments(root)
	return root
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
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
