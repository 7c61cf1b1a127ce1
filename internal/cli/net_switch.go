package cli

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

func netSwitch(a admin) *cobra.Command {
	return group("switch", "Look at OpenFlow switches, and give them flows of your own", switchList(a), switchShow(a),
		group("flow", "Look at the flows of a switch, add and remove your own", switchFlowList(a), switchFlowAdd(a), switchFlowRemove(a)))
}

// dialSwitches connects to the service of switches where the flags choose.
func (a admin) dialSwitches() (apiv1connect.SwitchesClient, string, error) {
	client, base, endpoint, err := a.dial()
	if err != nil {
		return nil, "", err
	}
	return apiv1connect.NewSwitchesClient(client, base), endpoint, nil
}

// askSwitches is ask for a controller that may drive none.
func askSwitches[Req, Resp any](ctx context.Context, call func(context.Context, *connect.Request[Req]) (*connect.Response[Resp], error), req *Req, endpoint string) (*Resp, error) {
	return ask(ctx, func(ctx context.Context, r *connect.Request[Req]) (*connect.Response[Resp], error) {
		answer, err := call(ctx, r)
		if connect.CodeOf(err) == connect.CodeUnimplemented {
			return nil, failf(ExitRefused, "start it with --openflow tcp:[::]:6653", "the controller drives no OpenFlow switches")
		}
		return answer, err
	}, req, endpoint, "scaffold net switch ls")
}

func switchList(a admin) *cobra.Command {
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
			client, endpoint, err := a.dialSwitches()
			if err != nil {
				return err
			}
			all, err := askSwitches(cmd.Context(), client.ListSwitches, &apiv1.ListSwitchesRequest{}, endpoint)
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), all, func(t *table) { drawSwitches(t, all.Switches) })
		},
	}
}

func drawSwitches(t *table, all []*apiv1.Switch) {
	t.row("NAME", "STATE", "SINCE", "DATAPATH", "VERSION", "RULES", "FLOWS", "GROUPS", "METERS", "PUNTED", "TROUBLE")
	for _, s := range all {
		t.row(s.Name, s.State, age(s.SinceUnixMs), s.Datapath, s.Version, generation(s.Generation), s.Flows, s.Groups, s.Meters, punted(s), s.Trouble)
	}
}

func punted(s *apiv1.Switch) (sum uint64) {
	for _, n := range s.PacketIns {
		sum += n
	}
	return sum
}

func switchShow(a admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a switch: its ports and their counters, and how it splits the flows of services",
		Long: `Show tells what is known of a switch, what its ports have counted, and for each service with several
instances which part of new flows each gets: WEIGHT is what was asked for, SHARE what the switch does.`,
		Example: "  scaffold net switch show s1\n  scaffold net switch show s1 -o json | jq .shares",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, endpoint, err := a.dialSwitches()
			if err != nil {
				return err
			}
			s, err := askSwitches(cmd.Context(), client.GetSwitch, &apiv1.GetSwitchRequest{Name: args[0]}, endpoint)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if a.json() {
				return writeJSON(out, s, "  ")
			}
			if err := drawTable(out, func(t *table) { drawSwitch(t, s) }); err != nil {
				return err
			}
			fmt.Fprintln(out)
			if err := drawTable(out, func(t *table) { drawSwitchPorts(t, s.Ports) }); err != nil || len(s.Shares) == 0 {
				return err
			}
			fmt.Fprintln(out)
			return drawTable(out, func(t *table) { drawShares(t, s.Shares) })
		},
	}
}

func drawSwitch(t *table, s *apiv1.Switch) {
	t.row("switch", s.Name)
	t.row("state", s.State+" since "+orElse(age(s.SinceUnixMs), "the start")+", connected "+times(s.Connects))
	if s.Trouble != "" {
		t.row("trouble", s.Trouble)
	}
	t.row("datapath", s.Datapath+", OpenFlow "+orElse(s.Version, "-")+", from "+orElse(s.Address, "-"))
	t.row("router", orElse(s.Locator, "no locator")+", "+orElse(s.LinkLocal, "-")+", "+s.Mac)
	t.row("rules", fmt.Sprintf("generation %s: %d flows, %d groups, %d meters", generation(s.Generation), s.Flows, s.Groups, s.Meters))
	t.row("changes", fmt.Sprintf("%d, refused %d, brought up to date in %.1f ms", s.Bundles, s.Errors, 1000*s.ReconcileSeconds))
	for _, of := range sorted(s.PacketIns) {
		t.row("punted", fmt.Sprintf("%d for %s", s.PacketIns[of], of))
	}
	if s.Dropped > 0 {
		t.row("dropped", fmt.Sprintf("%d of the punted", s.Dropped))
	}
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func drawSwitchPorts(t *table, ports []*apiv1.SwitchPort) {
	t.row("PORT", "NUMBER", "STATE", "RX PACKETS", "RX BYTES", "TX PACKETS", "TX BYTES", "DROPS", "ERRORS")
	for _, p := range ports {
		state := "down"
		if p.Up {
			state = "up"
		}
		t.row(p.Name, p.Number, state, p.RxPackets, p.RxBytes, p.TxPackets, p.TxBytes, p.RxDropped+p.TxDropped, p.RxErrors+p.TxErrors)
	}
}

func drawShares(t *table, shares []*apiv1.ServiceShare) {
	t.row("SERVICE", "PORT", "INSTANCE", "LOCATOR", "WEIGHT", "SHARE")
	for _, s := range shares {
		port := "any"
		if s.Proto != "" {
			port = fmt.Sprintf("%s/%d", s.Proto, s.Port)
		}
		for _, i := range s.Instances {
			t.row(s.Service, port, i.Host, i.Locator, i.Weight, fmt.Sprintf("%.1f%%", 100*i.Share))
		}
	}
}
