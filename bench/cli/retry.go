package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench/agent"
)

func agentRetry() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "retry", Short: "Ask over one connection, and over another one when that breaks", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			enc := json.NewEncoder(cmd.OutOrStdout())
			agent.RetryLoop(cmd.Context(), to, func(r agent.Retry) { enc.Encode(r) }) //nolint:errcheck // whoever reads it went away
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "address and port")
	return cmd
}
