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

func benchLink() *cobra.Command {
	var flags benchFlags
	var d time.Duration
	cmd := &cobra.Command{
		Use: "link", Short: "What an emulated link delivers of the rate, delay and loss it was asked for", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench link --check\n  sudo scaffold bench link -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d < 200*time.Millisecond {
				return exit.Failf(exit.Usage, "", "bench link: measurements of %v show nothing: give at least 200ms", d)
			}
			f, err := file.Parse("link.yaml", []byte(bench.LinkLab))
			if err == nil {
				err = labs.Rename(f, *flags.name)
			}
			if err != nil {
				return err
			}
			var rep bench.Report
			err = onLab(cmd, f, func(ctx context.Context, l *lab.Lab) error {
				rep, err = bench.Link(ctx, l, d)
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
	addLength(cmd.Flags(), &d, 2*time.Second, 10*time.Millisecond, "length of one measurement")
	return cmd
}
