package flow

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

const listFlows = "scaffold flow ls"

// flows asks host daemons: flows are known at their ends and nowhere between.
type flows struct{ *remote.HostDaemons }

// Command is `scaffold flow`.
func Command() *cobra.Command {
	cmd := command.Group("flow", "Look at the flows of this host, or of a lab's hosts, and move them")
	f := flows{&remote.HostDaemons{Admin: remote.AddAdmin(cmd)}}
	cmd.PersistentFlags().StringVar(&f.Host, "host", "", "only this host of the lab")
	cmd.AddCommand(flowList(f), flowShow(f), flowMove(f), flowWho(f))
	for _, sub := range cmd.Commands() {
		command.Exclusive(sub, "api host")
	}
	return cmd
}

// List gathers the flows of all hosts that are meant.
func List(ctx context.Context, hosts *remote.HostDaemons, req *apiv1.ListFlowsRequest) (*apiv1.ListFlowsResponse, error) {
	all := &apiv1.ListFlowsResponse{}
	err := hosts.Each(func(client apiv1connect.LocalClient, node remote.NodeSocket) error {
		some, err := remote.Ask(ctx, client.ListFlows, req, node.Path, remote.ListServices)
		if err != nil {
			return err
		}
		for _, flow := range some.Flows {
			flow.Host = output.OrElse(flow.Host, node.Node)
		}
		all.Flows, all.Total = append(all.Flows, some.Flows...), all.Total+some.Total
		return nil
	})
	slices.SortStableFunc(all.Flows, func(x, y *apiv1.Flow) int { return strings.Compare(x.Host, y.Host) })
	return all, err
}

func drawFlows(t *output.Table, flows []*apiv1.Flow) {
	t.Row("HOST", "ID", "ROLE", "PROTO", "SERVICE", "STATE", "PEER", "ON THE WIRE", "IDLE", "PROCESS")
	for _, f := range flows {
		t.Row(f.Host, f.Id, f.Role, f.Proto, f.Service, f.State, f.Peer, f.WirePeer, idle(f), process(f))
	}
}

func idle(f *apiv1.Flow) string { return output.Short(time.Duration(f.IdleMs) * time.Millisecond) }
