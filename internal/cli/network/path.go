package network

import (
	"fmt"

	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
)

func netPath(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:   "path FROM TO",
		Short: "Show the way that packets take from one host or router to another",
		Long: `Path shows the routers between two hosts or routers and the ports by which packets come and go, as
the rules of the routers say. The way back may be another one.`,
		Example: "  scaffold net path c1 s2\n  scaffold net path r1 r3 -o json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialAdmin()
			if err != nil {
				return err
			}
			p, err := remote.Ask(cmd.Context(), client.GetPath, &apiv1.GetPathRequest{From: args[0], To: args[1]}, endpoint, "scaffold net show")
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), p, func(t *output.Table) { drawPath(t, args[0], args[1], p) })
		},
	}
}

func drawPath(t *output.Table, from, to string, p *apiv1.Path) {
	t.Row("HOP", "ROUTER", "IN", "OUT")
	for i, h := range p.Hops {
		t.Row(i+1, h.Router, h.In, h.Out)
	}
	t.Row("", fmt.Sprintf("from %s to %s, cost %d", from, to, p.Cost), "", "")
}
