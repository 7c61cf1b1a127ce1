package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const listFlows = "scaffold flow ls"

// flows asks host daemons: flows are known at their ends and nowhere between.
type flows struct {
	admin
	host string
}

func flowCommand() *cobra.Command {
	cmd := group("flow", "Look at the flows of this host, or of a lab's hosts, and move them")
	f := &flows{admin: addAdmin(cmd)}
	cmd.PersistentFlags().StringVar(&f.host, "host", "", "only this host of the lab")
	cmd.AddCommand(flowList(f), flowShow(f), flowMove(f), flowWho(f))
	return cmd
}

// each calls do with the daemon of every host that is meant, and stops at the first error.
func (f *flows) each(do func(client apiv1connect.LocalClient, node nodeSocket) error) error {
	nodes, err := f.hosts(f.host)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		http, base, err := api.Dial(node.path)
		if err != nil {
			return fail(ExitUsage, "", err)
		}
		if err := do(apiv1connect.NewLocalClient(http, base), node); err != nil {
			return err
		}
	}
	return nil
}

// list gathers the flows of all hosts that are meant.
func (f *flows) list(ctx context.Context, req *apiv1.ListFlowsRequest) (*apiv1.ListFlowsResponse, error) {
	all := &apiv1.ListFlowsResponse{}
	err := f.each(func(client apiv1connect.LocalClient, node nodeSocket) error {
		some, err := ask(ctx, client.ListFlows, req, node.path, listServices)
		if err != nil {
			return err
		}
		for _, flow := range some.Flows {
			flow.Host = orElse(flow.Host, node.node)
		}
		all.Flows, all.Total = append(all.Flows, some.Flows...), all.Total+some.Total
		return nil
	})
	slices.SortStableFunc(all.Flows, func(x, y *apiv1.Flow) int { return strings.Compare(x.Host, y.Host) })
	return all, err
}

func drawFlows(t *table, flows []*apiv1.Flow) {
	t.row("HOST", "ID", "ROLE", "PROTO", "SERVICE", "STATE", "PEER", "ON THE WIRE", "IDLE", "PROCESS")
	for _, f := range flows {
		t.row(f.Host, f.Id, f.Role, f.Proto, f.Service, f.State, f.Peer, f.WirePeer, idle(f), process(f))
	}
}

func idle(f *apiv1.Flow) string { return short(time.Duration(f.IdleMs) * time.Millisecond) }
