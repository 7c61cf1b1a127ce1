package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

func benchBoost() *cobra.Command {
	var flags benchFlags
	var d time.Duration
	var runs int
	cmd := &cobra.Command{
		Use: "boost", Short: "One connection over a long path: by itself with CUBIC and BBR, and carried by two agents", Args: cobra.NoArgs,
		Long:    "500 Mbit/s, 50 ms there and back, loss towards the server; iperf3, in turns.",
		Example: "  sudo scaffold bench boost --check\n  sudo scaffold bench boost --runs 5 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d < 2*time.Second {
				return exit.Failf(exit.Usage, "", "bench boost: a window has not grown in %v: give at least 2s", d)
			}
			f, err := file.Parse("boost.yaml", []byte(bench.BoostLab))
			if err == nil {
				err = labs.Rename(f, *flags.name)
			}
			if err != nil {
				return err
			}
			var rep bench.Report
			err = onLab(cmd, f, func(ctx context.Context, l *lab.Lab) error {
				rep, err = bench.Boost(ctx, l, d, runs)
				return err
			})
			if err != nil {
				return err
			}
			return flags.print(cmd, rep)
		},
	}
	flags.out, flags.name = addFormat(cmd), labs.AddName(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	addLength(cmd.Flags(), &d, 6*time.Second, 10*time.Millisecond, "length of one measurement")
	addSize(cmd.Flags(), &runs, "runs", "n", 3, "turns at each rate of loss")
	return cmd
}
