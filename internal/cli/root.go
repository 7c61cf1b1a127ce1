package cli

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/operate/obs"
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
	command.Prepare(root)
	completeNames(root)
	return root
}
