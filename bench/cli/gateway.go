package cli

import (
	"context"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/cli/exit"
)

func benchGateway() *cobra.Command {
	var pairs int
	var d time.Duration
	cmd := newBench("gateway", "What clients without Scaffold get through a gateway, beside haproxy",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Gateway(ctx, r, "bench", pairs, d)
		})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if _, err := exec.LookPath("haproxy"); err != nil {
			return exit.Failf(exit.Missing, "scripts/packages.sh bench installs it", "bench gateway: no program haproxy to measure beside")
		}
		return nil
	}
	addSize(cmd.Flags(), &pairs, "pairs", "", 30, "alternating pairs of each measurement")
	addLength(cmd.Flags(), &d, 300*time.Millisecond, 10*time.Millisecond, "length of one measurement")
	return cmd
}
