package boost

import (
	"fmt"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func sessionList(a remote.Admin) *cobra.Command {
	req := &apiv1.ListBoostSessionsRequest{}
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List connections that are carried now, the fastest first",
		Long: `Ls lists connections that agents carry, with both ends as these see each other. SENT is what the client has
said, RECEIVED what it has got, and the rates are those of the last half second. BOUND BY is what keeps each of the two
directions from being faster, behind "path: " what of the path does; scaffold boost explain says more.`,
		Example: "  scaffold boost session ls\n  scaffold boost session ls --entry files --limit 1000 -o json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialBoost()
			if err != nil {
				return err
			}
			listing := listEntries
			if req.Entry == "" {
				listing = listAgents
			}
			all, err := remote.Ask(cmd.Context(), client.ListBoostSessions, req, endpoint, listing)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawSessions(t, all) })
		},
	}
	cmd.Flags().StringVar(&req.Entry, "entry", "", "only those of this entry")
	cmd.Flags().StringVar(&req.Agent, "agent", "", "only those that this agent carries, at either end")
	cmd.Flags().StringVar(&req.Client, "client", "", "only those of this address, with a port or without")
	cmd.Flags().StringVar(&req.Server, "server", "", "only those to this address, with a port or without")
	cmd.Flags().Uint32Var(&req.Limit, "limit", 100, "so many at most")
	return cmd
}

func drawSessions(t *output.Table, all *apiv1.ListBoostSessionsResponse) {
	t.Row("CLIENT", "SERVER", "ENTRY", "AGENTS", "SENT", "RATE", "BOUND BY", "RECEIVED", "RATE", "BOUND BY", "AGE")
	for _, s := range all.Sessions {
		t.Row(s.Client, s.Server, output.OrElse(s.Entry, "none"), s.Near+" > "+s.Far, output.Bytes(s.Sent), output.Bytes(s.SendRate)+"/s", boundBy(s.SentBound, s.SentPath),
			output.Bytes(s.Received), output.Bytes(s.ReceiveRate)+"/s", boundBy(s.ReceivedBound, s.ReceivedPath), output.Age(s.SinceUnixMs))
	}
	if left := int(all.Total) - len(all.Sessions); left > 0 {
		t.Row(fmt.Sprintf("and %d more: --limit shows them", left))
	}
}

// boundBy is what binds a direction, in short.
func boundBy(bound string, path *apiv1.BoostPath) string {
	if of := path.GetBound(); of != "" {
		return bound + ": " + of
	}
	return bound
}
