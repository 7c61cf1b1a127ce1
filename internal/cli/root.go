// Package cli is the scaffold command line: one file per subcommand.
package cli

import "github.com/spf13/cobra"

// commands lists the constructors of the subcommands, in the order of the help text.
var commands = []func() *cobra.Command{}

// New returns the root command.
func New() *cobra.Command {
	root := &cobra.Command{
		Use:           "scaffold",
		Short:         "Connect programs to names, not addresses",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	for _, c := range commands {
		root.AddCommand(c())
	}
	return root
}
