// Package cli is the command line of scaffold-bench: a file per benchmark, or for some that go together.
package cli

import (
	"io"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// Main runs the command line and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command.Run(New(), args, stdin, stdout, stderr, nil)
}

// New returns the root command. It names itself as people call it: scaffold finds this program as git finds its own.
func New() *cobra.Command {
	root := command.Group("scaffold-bench", "Measure Scaffold beside a peer",
		benchPath(), benchSwitch(), benchChurn(), benchCut(), benchSplit(), benchReturns(), benchTold(), benchHogs(), benchTable(), benchKick(), benchGateway(), benchLink(), benchBoost(), benchSos(), benchScale(), benchMove(), benchFailover(), benchRehome(), benchCrowd(), benchFlows(), benchFlood(), benchReactive(), benchTunnel(), benchEmu(), benchChaos(), agentCommand())
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "scaffold bench"}
	root.Version, root.SilenceUsage, root.SilenceErrors = obs.Version(), true, true
	root.SetVersionTemplate("scaffold-bench {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	command.Prepare(root)
	return root
}
