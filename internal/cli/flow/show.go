package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

func flowList(f flows) *cobra.Command {
	req := &apiv1.ListFlowsRequest{}
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the live flows, by the names that programs used and the addresses on the wire",
		Example: `  scaffold flow ls
  scaffold flow ls --service web
  scaffold flow ls --lab web --host c1`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&req.Service, "service", "", "only flows of this service")
	cmd.Flags().Uint32Var(&req.Limit, "limit", 1000, "at most so many per host; 0 means all")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := List(cmd.Context(), f.HostDaemons, req)
		if err != nil {
			return err
		}
		if err := f.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawFlows(t, all.Flows) }); err != nil {
			return err
		}
		if int(all.Total) > len(all.Flows) && !f.JSON() {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d flows; --limit 0 shows all\n", len(all.Flows), all.Total)
		}
		return nil
	}
	return cmd
}

func flowShow(f flows) *cobra.Command {
	return &cobra.Command{
		Use:     "show FLOW",
		Short:   "Show one flow, by its socketID, also a former one, or its stable identifier",
		Example: "  scaffold flow show 9f3c1b2a44d0e871\n  scaffold flow show fd5d:0:1:101:9f3c:1b2a:44d0:e871",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := List(cmd.Context(), f.HostDaemons, &apiv1.ListFlowsRequest{})
			if err != nil {
				return err
			}
			flow := pick(all.Flows, args[0])
			if flow == nil {
				flow = f.former(cmd.Context(), args[0])
			}
			if flow == nil {
				return exit.Failf(exit.NotFound, remote.HintListing(listFlows), "no live flow has the socketID or stable identifier %q", args[0])
			}
			return f.Print(cmd.OutOrStdout(), flow, func(t *output.Table) { drawFlow(t, flow) })
		},
	}
}

// former finds a live flow by a socketID that it had before it moved.
func (f flows) former(ctx context.Context, id string) *apiv1.Flow {
	histories, _ := f.histories(ctx, id) // a daemon that tells none knows no former names either
	for _, s := range histories {
		if !s.Ended {
			return s.Flow
		}
	}
	return nil
}

// pick finds the flow of a socketID, or of a stable identifier, which in a lab both ends know: the
// client's is the one that programs began.
func pick(flows []*apiv1.Flow, id string) (found *apiv1.Flow) {
	for _, f := range flows {
		if f.Id == id {
			return f
		}
		if f.Stable == id && (found == nil || f.Role == "client") {
			found = f
		}
	}
	return found
}

// drawFlow leaves out what is not known: who owns a host's own address has no flow.
func drawFlow(t *output.Table, f *apiv1.Flow) {
	for _, line := range [][2]string{
		{"flow", f.Id},
		{"stable id", f.Stable},
		{"host", f.Host},
		{"role", f.Role},
		{"service", f.Service},
		{"protocol", f.Proto},
		{"state", f.State},
		{"program sees", arrow(f.Local, f.Peer)},
		{"on the wire", arrow(f.WireLocal, f.WirePeer)},
		{"uplink", f.Uplink},
		{"process", process(f)},
	} {
		if line[1] != "" {
			t.Row(line[0], line[1])
		}
	}
	if f.State != "" {
		t.Row("moves", f.Moves)
		t.Row("idle", idle(f))
	}
}

func arrow(from, to string) string {
	if from == "" || to == "" {
		return from + to
	}
	return from + " -> " + to
}

func process(f *apiv1.Flow) string {
	if f.Pid == 0 {
		return f.Process
	}
	return fmt.Sprintf("%s (%d)", cmp.Or(f.Process, "?"), f.Pid)
}

func flowWho(f flows) *cobra.Command {
	return &cobra.Command{
		Use:   "who ADDRESS",
		Short: "Say which host and process an address from a server's log belongs to",
		Long: `Who resolves an address of a flow: a server's log shows one address per connection, and this says
whose it was. ADDRESS is an IPv6 address, with or without a port, as in [fd5d:0:1:101::1]:40000. Where an agent of
boost has connected for somebody, and the controller can be asked, it says for whom.`,
		Example: "  scaffold flow who fd5d:0:1:101:9f3c:1b2a:44d0:e871",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkAddress(args[0]); err != nil {
				return err
			}
			flow, err := f.who(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			flow.CarriedFor = f.carriedFor(cmd.Context(), flow)
			return f.Print(cmd.OutOrStdout(), flow, func(t *output.Table) {
				drawFlow(t, flow)
				if flow.CarriedFor != "" {
					t.Row("carried for", f.client(cmd.Context(), flow.CarriedFor))
				}
			})
		},
	}
}

// carriedFor is the client whose connection it is that an agent of boost has made: the controller knows, where it can be asked. Of a
// flow that no agent has it is nobody.
func (f flows) carriedFor(ctx context.Context, flow *apiv1.Flow) string {
	if flow.Role != "client" || flow.Local == "" {
		return ""
	}
	client, _, err := f.Admin.DialBoost()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
	defer cancel()
	all, err := client.ListBoostSessions(ctx, connect.NewRequest(&apiv1.ListBoostSessionsRequest{FarAt: flow.Local, Limit: 1}))
	if err != nil || len(all.Msg.Sessions) == 0 {
		return ""
	}
	return all.Msg.Sessions[0].Client
}

// client is that client in words: with its host and its process, if a daemon that can be asked knows them.
func (f flows) client(ctx context.Context, address string) string {
	flow, err := f.who(ctx, address)
	if err != nil {
		return address
	}
	return fmt.Sprintf("%s, host %s, process %s", address, flow.Host, process(flow))
}

func checkAddress(s string) error {
	_, err1 := netip.ParseAddr(s)
	_, err2 := netip.ParseAddrPort(s)
	if err1 != nil && err2 != nil {
		return exit.Failf(exit.Usage, "", "address %q: want an IPv6 address, or [address]:port", s)
	}
	return nil
}

// who asks host after host until one knows; only the flow's own ends do.
func (f flows) who(ctx context.Context, address string) (found *apiv1.Flow, err error) {
	err = f.Each(func(client apiv1connect.LocalClient, node remote.NodeSocket) error {
		ctx, cancel := context.WithTimeout(ctx, remote.AnswerTime)
		defer cancel()
		if found != nil {
			return nil
		}
		resp, err := client.Who(ctx, connect.NewRequest(&apiv1.WhoRequest{Address: address}))
		if connect.CodeOf(err) == connect.CodeNotFound {
			return nil
		}
		if err != nil {
			return remote.Explain(err, node.Path, listFlows)
		}
		found = resp.Msg
		found.Host = output.OrElse(found.Host, node.Node)
		return nil
	})
	if err == nil && found == nil {
		err = exit.Fail(exit.NotFound, remote.HintListing(listFlows), errors.New("no live flow has the address "+address))
	}
	return found, err
}
