package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const aboutMove = `Move lets flows go on over another uplink of their host: one flow, all of a service, or all that leave
by an interface. Programs notice nothing; the old uplink serves until the peers have answered. A flow
stays where it was put until that uplink is lost or it is moved again.

FLOW is a socketID or a stable identifier, as "scaffold flow ls" and "scaffold flow show" print them.`

func flowMove(f *flows) *cobra.Command {
	req := &apiv1.MoveFlowsRequest{}
	cmd := &cobra.Command{
		Use:   "move [FLOW] --to INTERFACE",
		Short: "Move live flows to another uplink of their host",
		Long:  aboutMove,
		Example: `  scaffold flow move 9f3c1b2a44d0e871 --to eth1
  scaffold flow move --service web --to eth1
  scaffold flow move --from eth0 --to eth1
  scaffold flow move --lab web --host c1 --from eth0 --to eth1`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&req.Service, "service", "", "all flows of this service")
	cmd.Flags().StringVar(&req.From, "from", "", "all flows that leave by this interface")
	cmd.Flags().StringVar(&req.To, "to", "", "interface to go on by")
	cmd.MarkFlagRequired("to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			req.Flow = args[0]
		}
		if req.Flow == "" && req.Service == "" && req.From == "" {
			return failf(ExitUsage, "as in: scaffold flow move --from eth0 --to eth1", "which flows? Give a FLOW, --service or --from")
		}
		return f.move(cmd, req)
	}
	return cmd
}

func (f *flows) move(cmd *cobra.Command, req *apiv1.MoveFlowsRequest) error {
	node, err := f.only(cmd.Context(), req.Flow)
	if err != nil {
		return err
	}
	http, base, err := api.Dial(node.path)
	if err != nil {
		return fail(ExitUsage, "", err)
	}
	defer http.CloseIdleConnections()
	moved, err := ask(cmd.Context(), apiv1connect.NewLocalClient(http, base).MoveFlows, req, node.path, listFlows)
	if err != nil {
		return err
	}
	err = f.print(cmd.OutOrStdout(), moved, func(t *table) { t.row(movedText(moved, req.To)) })
	if err == nil && moved.Failed > 0 {
		err = failf(ExitRefused, "`scaffold explain` tells of a flow why", "%s could not be moved", count(moved.Failed, "flow"))
	}
	return err
}

func movedText(m *apiv1.MoveFlowsResponse, to string) string {
	if m.Moved+m.Failed == 0 {
		return "no such flow: nothing to move"
	}
	return fmt.Sprintf("%s to %s", count(m.Moved, "flow")+" moved", to)
}

// count is "1 flow", "3 flows".
func count(n uint32, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// only is the one host daemon that is meant. In a lab that is the host given by --host, or the one whose
// socketID the flow's is: a stable identifier is known at both ends, and either could move.
func (f *flows) only(ctx context.Context, flow string) (nodeSocket, error) {
	nodes, err := f.hosts(f.host)
	if err != nil || len(nodes) == 1 {
		return first(nodes), err
	}
	if flow != "" {
		all, err := f.list(ctx, &apiv1.ListFlowsRequest{})
		if err != nil {
			return nodeSocket{}, err
		}
		for _, known := range all.Flows {
			if known.Id == flow {
				return named(nodes, known.Host), nil
			}
		}
	}
	return nodeSocket{}, failf(ExitUsage, "say which one with --host NAME", "%d hosts could move it: flows move at one of their ends", len(nodes))
}

func first(nodes []nodeSocket) nodeSocket {
	if len(nodes) == 0 {
		return nodeSocket{}
	}
	return nodes[0]
}

func named(nodes []nodeSocket, host string) nodeSocket {
	for _, n := range nodes {
		if n.node == host {
			return n
		}
	}
	return first(nodes)
}
