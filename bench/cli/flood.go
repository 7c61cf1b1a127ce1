package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/sid"
)

func benchFlood() *cobra.Command {
	var flags benchFlags
	var size bench.FloodSize
	var siege bench.SiegeSize
	var of string
	cmd := &cobra.Command{
		Use: "flood", Short: "What floods do to connections through a router, to a server, and to flows that move and fail over", Args: cobra.NoArgs,
		Long:    "Floods of SYNs, and of packets that no SYNs are: --of says of which. Beside SYNs it measures how many new connections are served. Beside the others, from somebody who is no member of a network with keys, how many live flows break, how fast flows move and fail over, and what is kept in memory.",
		Example: "  sudo scaffold bench flood --check\n  sudo scaffold bench flood --of syn --rate 20000 --duration 2s -o json\n  sudo scaffold bench flood --of rsyn,resume --runs 1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			syns, kinds, err := floodKinds(of)
			if err != nil {
				return err
			}
			var rep bench.Report
			if syns {
				if rep, err = flags.onText(cmd, bench.FloodLab, "open", func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
					return bench.Flood(ctx, r, size)
				}); err != nil {
					return err
				}
			}
			if siege.Kinds = kinds; len(kinds) > 0 {
				more, err := flags.onText(cmd, bench.SiegeLab, "keys", func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
					return bench.Siege(ctx, r, siege)
				})
				if err != nil {
					return err
				}
				if !syns {
					rep = more
				} else {
					rep.Rows, rep.Notes = append(rep.Rows, more.Rows...), append(rep.Notes, more.Notes...)
				}
			}
			return flags.keep(cmd, rep)
		},
	}
	flags.out, flags.name = addFormat(cmd), labs.AddName(cmd)
	flags.addTo(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	cmd.Flags().StringVar(&of, "of", "all", "floods, separated by commas: syn, "+strings.Join(agent.StormKinds, ", ")+", or all")
	addSize(cmd.Flags(), &size.SYNs, "rate", "", 100000, "SYNs a second")
	addSize(cmd.Flags(), &size.Connects, "connects", "", 500, "connections a second that a client asks for")
	addLength(cmd.Flags(), &size.Length, 4*time.Second, 500*time.Millisecond, "length of one measurement")
	addSize(cmd.Flags(), &siege.Rate, "packets", "", 20000, "packets a second of the other floods")
	addSize(cmd.Flags(), &siege.Flows, "flows", "", 1000, "flows that move and fail over beside these")
	addSize(cmd.Flags(), &siege.Failover, "failover", "", 10000, "flows that fail over beside confirmations")
	addSize(cmd.Flags(), &siege.Runs, "runs", "n", 3, "moves and failovers of all flows beside each of these")
	return cmd
}

// floodKinds reads --of.
func floodKinds(of string) (syns bool, kinds []string, err error) {
	if of == "all" {
		return true, agent.StormKinds, nil
	}
	for _, k := range strings.Split(of, ",") {
		switch {
		case k == "syn":
			syns = true
		case slices.Contains(agent.StormKinds, k):
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		default:
			return false, nil, exit.Failf(exit.Usage, "", "--of %q: want syn, %s, or all", k, strings.Join(agent.StormKinds, ", "))
		}
	}
	return syns, kinds, nil
}

func agentStorm() *cobra.Command {
	var s agent.Storm
	var d time.Duration
	var router, from, to, hosts string
	cmd := &cobra.Command{
		Use: "storm", Short: "Send packets of a kind from made-up addresses", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if s.Router, err = net.ParseMAC(router); err != nil {
				return err
			}
			if s.From, err = netip.ParsePrefix(from); err != nil {
				return err
			}
			if s.Service, err = netip.ParseAddrPort(to); err != nil {
				return err
			}
			for _, h := range strings.Split(hosts, ",") {
				l, err := strconv.ParseUint(h, 16, 64)
				if err != nil {
					return err
				}
				s.To = append(s.To, sid.Locator(l))
			}
			r, err := s.Run(cmd.Context(), d)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		},
	}
	set := cmd.Flags()
	set.StringVar(&s.Device, "dev", "", "interface to send on")
	set.StringVar(&router, "router", "", "MAC address of the next hop")
	set.StringVar(&s.Kind, "kind", "", "one of "+strings.Join(agent.StormKinds, ", "))
	set.StringVar(&from, "from", "", "prefix of the sources")
	set.StringVar(&hosts, "hosts", "", "locators of the hosts, in hexadecimal, separated by commas")
	set.StringVar(&to, "to", "", "the service's address and port")
	set.Uint32Var(&s.ID.SS, "ss", 0, "the service's ssID")
	set.Uint64Var((*uint64)(&s.ID.Suffix), "suffix", 0, "the service's suffix")
	set.IntVar(&s.Rate, "rate", 1000, "packets a second")
	set.DurationVar(&d, "duration", time.Second, "how long")
	return cmd
}

func agentFlood() *cobra.Command {
	var f agent.Flood
	var d time.Duration
	var router, from, to string
	cmd := &cobra.Command{
		Use: "flood", Short: "Send SYNs from made-up addresses", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Router, err = net.ParseMAC(router); err != nil {
				return err
			}
			if f.From, err = netip.ParsePrefix(from); err != nil {
				return err
			}
			if f.To, err = netip.ParseAddrPort(to); err != nil {
				return err
			}
			r, err := f.Run(cmd.Context(), d)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.Device, "dev", "", "interface to send on")
	set.StringVar(&router, "router", "", "MAC address of the next hop")
	set.StringVar(&from, "from", "", "prefix of the sources")
	set.StringVar(&to, "to", "", "address and port")
	set.IntVar(&f.Rate, "rate", 1000, "SYNs a second")
	set.DurationVar(&d, "duration", time.Second, "how long")
	return cmd
}

func agentPaced() *cobra.Command {
	var p agent.Paced
	var d time.Duration
	cmd := &cobra.Command{
		Use: "paced", Short: "Connect, ask once and close at a rate", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(p.Run(cmd.Context(), d))
		},
	}
	cmd.Flags().StringVar(&p.To, "to", "", "address and port")
	cmd.Flags().IntVar(&p.Rate, "rate", 100, "connections a second")
	cmd.Flags().DurationVar(&d, "duration", time.Second, "how long")
	return cmd
}
