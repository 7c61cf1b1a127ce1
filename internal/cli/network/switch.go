package network

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"
	"scaffold.dev/scaffold/internal/cli/views"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

func netSwitch(a remote.Admin) *cobra.Command {
	return command.Group("switch", "Look at OpenFlow switches, and give them flows of your own", switchList(a), switchShow(a),
		command.Group("flow", "Look at the flows of a switch, add and remove your own", switchFlowList(a), switchFlowAdd(a), switchFlowRemove(a)))
}

// askSwitches is ask for a controller that may drive none.
func askSwitches[Req, Resp any](ctx context.Context, call func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error), req *Req, endpoint string) (*Resp, error) {
	return remote.Ask(ctx, func(ctx context.Context, r *connect.Request[Req]) (*connect.Response[Resp], error) {
		answer, err := call(ctx, r)
		if connect.CodeOf(err) == connect.CodeUnimplemented {
			return nil, exit.Failf(exit.Refused, "start it with --openflow tcp:[::]:6653", "the controller drives no OpenFlow switches")
		}
		return answer, err
	}, req, endpoint, "scaffold net switch ls")
}

func switchList(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the OpenFlow switches, how they are and what they hold",
		Long: `Ls lists the switches that came since the controller started. RULES is the generation of the rules
that a switch holds; FLOWS, GROUPS and METERS are those of Scaffold and its modules, also the ones
on their way. PUNTED counts packets that it sent to the controller.`,
		Example: "  scaffold net switch ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, endpoint, err := a.DialSwitches()
			if err != nil {
				return err
			}
			all, err := askSwitches(cmd.Context(), client.ListSwitches, &apiv1.ListSwitchesRequest{}, endpoint)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawSwitches(t, all.Switches) })
		},
	}
}

func drawSwitches(t *output.Table, all []*apiv1.Switch) {
	t.Row("NAME", "STATE", "SINCE", "DATAPATH", "VERSION", "RULES", "FLOWS", "GROUPS", "METERS", "PUNTED", "TROUBLE")
	for _, s := range all {
		t.Row(s.Name, s.State, output.Age(s.SinceUnixMs), s.Datapath, s.Version, views.Generation(s.Generation), s.Flows, s.Groups, s.Meters, punted(s), s.Trouble)
	}
}

func punted(s *apiv1.Switch) (sum uint64) {
	for _, n := range s.PacketIns {
		sum += n
	}
	return sum
}

func switchShow(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a switch: its ports and their counters, and how it splits the flows of services",
		Long: `Show tells what is known of a switch, what its ports have counted, and for each service with several
instances which part of new flows each gets: WEIGHT is what was asked for, SHARE what the switch does.`,
		Example: "  scaffold net switch show s1\n  scaffold net switch show s1 -o json | jq .shares",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.DialSwitches()
			if err != nil {
				return err
			}
			s, err := askSwitches(cmd.Context(), client.GetSwitch, &apiv1.GetSwitchRequest{Name: args[0]}, endpoint)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if a.JSON() {
				return output.WriteJSON(out, s, "  ")
			}
			if err := output.Draw(out, func(t *output.Table) { drawSwitch(t, s) }); err != nil {
				return err
			}
			fmt.Fprintln(out)
			if err := output.Draw(out, func(t *output.Table) { drawSwitchPorts(t, s.Ports) }); err != nil || len(s.Shares) == 0 {
				return err
			}
			fmt.Fprintln(out)
			return output.Draw(out, func(t *output.Table) { drawShares(t, s.Shares) })
		},
	}
}

func drawSwitch(t *output.Table, s *apiv1.Switch) {
	t.Row("switch", s.Name)
	t.Row("state", s.State+" since "+output.OrElse(output.Age(s.SinceUnixMs), "the start")+", connected "+output.Times(s.Connects))
	if s.Trouble != "" {
		t.Row("trouble", s.Trouble)
	}
	t.Row("datapath", s.Datapath+", OpenFlow "+output.OrElse(s.Version, "-")+", from "+output.OrElse(s.Address, "-"))
	t.Row("router", output.OrElse(s.Locator, "no locator")+", "+output.OrElse(s.LinkLocal, "-")+", "+s.Mac)
	t.Row("rules", fmt.Sprintf("generation %s: %s, %s, %s", views.Generation(s.Generation), command.Count(s.Flows, "flow"), command.Count(s.Groups, "group"), command.Count(s.Meters, "meter")))
	t.Row("changes", fmt.Sprintf("%d, refused %d, brought up to date in %.1f ms", s.Bundles, s.Errors, 1000*s.ReconcileSeconds))
	for _, of := range output.Sorted(s.PacketIns) {
		t.Row("punted", fmt.Sprintf("%d for %s", s.PacketIns[of], of))
	}
	if s.Dropped > 0 {
		t.Row("dropped", fmt.Sprintf("%d of the punted", s.Dropped))
	}
}

func drawSwitchPorts(t *output.Table, ports []*apiv1.SwitchPort) {
	t.Row("PORT", "NUMBER", "STATE", "RX PACKETS", "RX BYTES", "TX PACKETS", "TX BYTES", "DROPS", "ERRORS")
	for _, p := range ports {
		state := "down"
		if p.Up {
			state = "up"
		}
		t.Row(p.Name, p.Number, state, p.RxPackets, p.RxBytes, p.TxPackets, p.TxBytes, p.RxDropped+p.TxDropped, p.RxErrors+p.TxErrors)
	}
}

func drawShares(t *output.Table, shares []*apiv1.ServiceShare) {
	t.Row("SERVICE", "PORT", "INSTANCE", "LOCATOR", "WEIGHT", "SHARE")
	for _, s := range shares {
		port := "any"
		if s.Proto != "" {
			port = fmt.Sprintf("%s/%d", s.Proto, s.Port)
		}
		for _, i := range s.Instances {
			t.Row(s.Service, port, i.Host, i.Locator, i.Weight, fmt.Sprintf("%.1f%%", 100*i.Share))
		}
	}
}
