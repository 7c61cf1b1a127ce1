package flow

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const aboutMove = `Move lets flows go on over another uplink of their host: one flow, all of a service, or all that leave
by an interface. Programs notice nothing; the old uplink serves until the peers have answered. A flow
stays where it was put until that uplink is lost or it is moved again.

FLOW is a socketID or a stable identifier, as "scaffold flow ls" and "scaffold flow show" print them.`

func flowMove(f flows) *cobra.Command {
	req := &apiv1.MoveFlowsRequest{}
	cmd := &cobra.Command{
		Use:   "move [FLOW] --to INTERFACE",
		Short: "Move live flows to another uplink of their host",
		Long:  aboutMove,
		Example: `  scaffold flow move 9f3c1b2a44d0e871 --to eth1
  scaffold flow move --service web --to eth1
  scaffold flow move --from eth0 --to eth1
  scaffold flow move --lab web --host c1 --from eth0 --to eth1`,
		Args: cobra.MatchAll(cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && (command.Typed(cmd, "service") || command.Typed(cmd, "from")):
				return fmt.Errorf("%s: a FLOW, or all that --service and --from name: leave one of them out", cmd.CommandPath())
			case req.From != "" && req.From == req.To:
				return fmt.Errorf("%s: --from and --to are the same, %s", cmd.CommandPath(), req.To)
			}
			return nil
		}),
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
			return exit.Failf(exit.Usage, "as in: scaffold flow move --from eth0 --to eth1", "which flows? Give a FLOW, --service or --from")
		}
		return f.move(cmd, req)
	}
	return cmd
}

func (f flows) move(cmd *cobra.Command, req *apiv1.MoveFlowsRequest) error {
	node, err := f.only(cmd.Context(), req.Flow)
	if err != nil {
		return err
	}
	http, base, err := api.Dial(node.Path)
	if err != nil {
		return exit.Fail(exit.Usage, "", err)
	}
	defer http.CloseIdleConnections()
	moved, err := remote.Ask(cmd.Context(), apiv1connect.NewLocalClient(http, base).MoveFlows, req, node.Path, listFlows)
	if err != nil {
		return err
	}
	err = f.Print(cmd.OutOrStdout(), moved, func(t *output.Table) { t.Row(movedText(moved, req.To)) })
	if err == nil && moved.Failed > 0 {
		err = exit.Failf(exit.Refused, "`scaffold explain` tells of a flow why", "%s could not be moved", command.Count(moved.Failed, "flow"))
	}
	return err
}

func movedText(m *apiv1.MoveFlowsResponse, to string) string {
	if m.Moved+m.Failed == 0 {
		return "no such flow: nothing to move"
	}
	return fmt.Sprintf("%s to %s", command.Count(m.Moved, "flow")+" moved", to)
}

// only is the one host daemon that is meant. In a lab that is the host given by --host, or the one whose
// socketID the flow's is: a stable identifier is known at both ends, and either could move.
func (f flows) only(ctx context.Context, flow string) (remote.NodeSocket, error) {
	nodes, err := f.Hosts(f.Host)
	if err != nil || len(nodes) == 1 {
		return first(nodes), err
	}
	if flow != "" {
		all, err := List(ctx, f.HostDaemons, &apiv1.ListFlowsRequest{})
		if err != nil {
			return remote.NodeSocket{}, err
		}
		for _, known := range all.Flows {
			if known.Id == flow {
				return named(nodes, known.Host), nil
			}
		}
	}
	return remote.NodeSocket{}, exit.Failf(exit.Usage, "say which one with --host NAME", "%d hosts could move it: flows move at one of their ends", len(nodes))
}

func first(nodes []remote.NodeSocket) remote.NodeSocket {
	if len(nodes) == 0 {
		return remote.NodeSocket{}
	}
	return nodes[0]
}

func named(nodes []remote.NodeSocket, host string) remote.NodeSocket {
	for _, n := range nodes {
		if n.Node == host {
			return n
		}
	}
	return first(nodes)
}
