package network

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// defaultFlowPriority is that of an operator's flow.
const defaultFlowPriority = 100

func switchFlowList(a remote.Admin) *cobra.Command {
	req := &apiv1.ListSwitchFlowsRequest{}
	cmd := &cobra.Command{
		Use:     "ls NAME",
		Aliases: []string{"list"},
		Short:   "List the flows of a switch: whose they are, what they match and do, and what they counted",
		Long: `Ls asks the switch for all its flows, also those of others. OWNER is scaffold, operator (with the
number that "flow rm" takes), "module NAME", or other: of somebody else, whom Scaffold leaves alone.
Of table 0 priorities from 49152 on come before Scaffold's, those from 16384 on behind.`,
		Example: "  scaffold net switch flow ls s1\n  scaffold net switch flow ls s1 --owner operator",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&req.Owner, "owner", "", `only the flows of this owner: scaffold, operator, other or "module NAME"`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, endpoint, err := a.DialSwitches()
		if err != nil {
			return err
		}
		req.Name = args[0]
		all, err := askSwitches(cmd.Context(), client.ListSwitchFlows, req, endpoint)
		if err != nil {
			return err
		}
		return a.Print(cmd.OutOrStdout(), all, func(t *output.Table) { drawSwitchFlows(t, all.Flows) })
	}
	return cmd
}

func drawSwitchFlows(t *output.Table, flows []*apiv1.SwitchFlow) {
	t.Row("TABLE", "PRIORITY", "OWNER", "PACKETS", "BYTES", "AGE", "MATCH", "ACTIONS")
	for _, f := range flows {
		of, actions := f.Owner, f.Actions
		if f.Number > 0 {
			of = fmt.Sprintf("%s %d", of, f.Number)
		}
		if f.Trouble != "" {
			actions += " (not in the switch: " + f.Trouble + ")"
		}
		t.Row(f.Table, f.Priority, of, f.Packets, f.Bytes, output.Short(time.Duration(f.AgeMs)*time.Millisecond), f.Match, actions)
	}
}

func switchFlowAdd(a remote.Admin) *cobra.Command {
	req := &apiv1.AddSwitchFlowRequest{}
	cmd := &cobra.Command{
		Use:   "add NAME MATCH ACTIONS",
		Short: "Give a switch a flow of your own, which is kept until it is removed",
		Long: `Add gives a switch a flow in table 0. It is saved, and put in again whenever the switch or the
controller comes back. Match and actions are written as for ovs-ofctl, ports by name or number:

  match    any, or fields and words with commas between them: in_port=eth0, eth_src=02:00:00:00:00:01,
           eth_type=0x800, dl_vlan=10, ipv6, tcp6, udp6, icmp6, arp, ip, ipv6_src=fd5d::/64, ipv6_dst=...,
           ip_proto=6, tcp_dst=80, udp_src=53, icmpv6_type=135, nd_target=fe80::1
  actions  drop, or with commas between them: output:to-s1, NORMAL, FLOOD, ALL, IN_PORT, LOCAL,
           set_field:fd5d::1->ipv6_dst, dec_ttl, push_vlan:0x8100, pop_vlan, set_queue:1

Without --first the flow gets what Scaffold's own rules leave.`,
		Example: "  scaffold net switch flow add s1 any NORMAL --priority 0\n" +
			"  scaffold net switch flow add s1 tcp6,ipv6_dst=fd00::/64,tcp_dst=25 drop --first",
		Args: cobra.ExactArgs(3),
	}
	cmd.Flags().Uint32Var(&req.Priority, "priority", defaultFlowPriority, "which of several flows that match counts: that of the highest, 0 to 8191")
	cmd.Flags().BoolVar(&req.First, "first", false, "before Scaffold's own rules: what matches is no longer its")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, endpoint, err := a.DialSwitches()
		if err != nil {
			return err
		}
		req.Name, req.Match, req.Actions = args[0], args[1], args[2]
		f, err := askSwitches(cmd.Context(), client.AddSwitchFlow, req, endpoint)
		if err != nil {
			return err
		}
		if a.JSON() {
			return output.WriteJSON(cmd.OutOrStdout(), f, "  ")
		}
		fmt.Fprintf(cmd.OutOrStdout(), "flow %d of switch %s\n", f.Number, req.Name)
		if f.Trouble != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "scaffold:", f.Trouble)
		}
		return nil
	}
	return cmd
}

func switchFlowRemove(a remote.Admin) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME NUMBER",
		Aliases: []string{"remove"},
		Short:   "Remove a flow of your own from a switch",
		Example: "  scaffold net switch flow rm s1 2",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseUint(args[1], 10, 32)
			if err != nil || n == 0 {
				return exit.Failf(exit.Usage, "`scaffold net switch flow ls "+args[0]+" --owner operator` lists them", "%q: want the number of a flow of an operator", args[1])
			}
			client, endpoint, err := a.DialSwitches()
			if err != nil {
				return err
			}
			answer, err := askSwitches(cmd.Context(), client.RemoveSwitchFlow, &apiv1.RemoveSwitchFlowRequest{Name: args[0], Number: uint32(n)}, endpoint)
			if err != nil {
				return err
			}
			return a.Print(cmd.OutOrStdout(), answer, func(*output.Table) {})
		},
	}
}
