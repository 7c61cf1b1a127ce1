package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab/file"
)

func benchTunnel() *cobra.Command {
	var flags benchFlags
	var pairs int
	var d time.Duration
	cmd := &cobra.Command{
		Use: "tunnel", Short: "What tunnels of hosts cost beside a cable: VXLAN, WireGuard", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench tunnel\n  sudo scaffold bench tunnel --pairs 20 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := file.Parse("tunnel.yaml", []byte(bench.TunnelLab))
			if err == nil {
				err = labs.Rename(f, *flags.name)
			}
			if err != nil {
				return err
			}
			rep, err := flags.on(cmd, f, func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
				return bench.Tunnel(ctx, r, pairs, d)
			})
			if err != nil {
				return err
			}
			return flags.print(cmd, rep)
		},
	}
	flags.out, flags.name = addFormat(cmd), labs.AddName(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	addSize(cmd.Flags(), &pairs, "pairs", "n", 10, "alternating pairs of each comparison")
	addLength(cmd.Flags(), &d, time.Second, 10*time.Millisecond, "length of one measurement; streams take three times as long")
	return cmd
}
