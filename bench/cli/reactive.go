package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
)

func benchReactive() *cobra.Command {
	var flags benchFlags
	size := bench.ReactiveSize{Gap: 2 * time.Millisecond}
	cmd := &cobra.Command{
		Use: "reactive", Short: "What a new flow takes that a controller is asked about, beside os-ken", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench reactive --check\n  sudo scaffold bench reactive --python /tmp/venv/bin/python -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := size.Check(); err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			if os.Geteuid() != 0 {
				return exit.Failf(exit.Missing, "try again with sudo", "bench reactive makes network namespaces and needs root")
			}
			rep, err := bench.Reactive(cmd.Context(), size, labs.Progress(cmd, false).Log)
			if err != nil {
				return cutShort(cmd, err)
			}
			return flags.print(cmd, rep)
		},
	}
	flags.out = addFormat(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	addSize(cmd.Flags(), &size.Rounds, "rounds", "n", 10, "turns of each controller")
	addSize(cmd.Flags(), &size.Flows, "flows", "", 300, "new flows of a turn, one every 2 ms")
	addSize(cmd.Flags(), &size.Burst, "burst", "", 5000, "new flows of a turn, all at once")
	cmd.Flags().StringVar(&size.Python, "python", "", "a Python that has os-ken; without it one is made for this run, from PyPI")
	return cmd
}

func agentReactive() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "reactive", Short: "Be the controller that puts in a flow for each packet that a switch punts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.ReactiveController(cmd.Context(), listen, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:6653", "address and port")
	return cmd
}
