package cli

import (
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench/agent"
)

func agentCrowd() *cobra.Command {
	var c agent.Crowd
	cmd := &cobra.Command{
		Use: "crowd", Short: "Hold many flows that ask when standard input says so", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&c.Network, "network", "tcp6", "tcp6 or udp6")
	cmd.Flags().StringVar(&c.To, "to", "", "address and port")
	cmd.Flags().IntVar(&c.Flows, "flows", 100, "flows")
	return cmd
}
