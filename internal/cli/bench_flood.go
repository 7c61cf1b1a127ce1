package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/bench"
	"scaffold.dev/scaffold/internal/bench/agent"
)

func benchFlood() *cobra.Command {
	var flags benchFlags
	var size bench.FloodSize
	cmd := &cobra.Command{
		Use: "flood", Short: "What a flood of SYNs does to connections through a router and to a server", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench flood --check\n  sudo scaffold bench flood --rate 20000 --duration 2s -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rep, err := flags.onText(cmd, bench.FloodLab, "open", func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
				return bench.Flood(ctx, r, size)
			})
			if err != nil {
				return err
			}
			return flags.keep(cmd, rep)
		},
	}
	flags.out, flags.name = addOutput(cmd.Flags()), addLabName(cmd)
	flags.addTo(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	addSize(cmd.Flags(), &size.SYNs, "rate", "", 100000, "SYNs a second")
	addSize(cmd.Flags(), &size.Connects, "connects", "", 500, "connections a second that a client asks for")
	addLength(cmd.Flags(), &size.Length, 4*time.Second, 500*time.Millisecond, "length of one measurement")
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
