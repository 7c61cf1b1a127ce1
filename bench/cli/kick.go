package cli

import (
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/cli/exit"
)

func benchKick() *cobra.Command {
	var flags benchFlags
	var times, crowd int
	cmd := &cobra.Command{
		Use: "kick", Short: "How long TCP stands still after a break, with and without the kick", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench kick --times 50 --connections 10000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if times < 1 || crowd < 0 || crowd > 20000 {
				return exit.Failf(exit.Usage, "", "bench kick: times must be at least 1, connections 0 to 20000")
			}
			if os.Geteuid() != 0 {
				return exit.Failf(exit.Missing, "try again with sudo", "bench kick makes network namespaces and needs root")
			}
			rep, err := bench.Kick(cmd.Context(), times, crowd)
			if err != nil {
				return cutShort(cmd, err)
			}
			return flags.print(cmd, rep)
		},
	}
	flags.out = addFormat(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	addSize(cmd.Flags(), &times, "times", "n", 10, "breaks of each length, with the kick and without")
	addExtra(cmd.Flags(), &crowd, "connections", 10000, "connections to kick at once")
	return cmd
}
