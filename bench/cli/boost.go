package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/boost"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

func benchBoost() *cobra.Command {
	var flags benchFlags
	var opt boost.Options
	cmd := &cobra.Command{
		Use: "boost", Short: "Connections over a long path that two agents carry, beside others, and what agents cost", Args: cobra.NoArgs,
		Long: "500 Mbit/s, 50 ms there and back, loss towards the server, beside flows of CUBIC and BBR and MPTCP; then, over\n" +
			"cables, what agents cost beside haproxy, socat and a relay that splices. Each in turns. A quarter of an hour.",
		Example: "  sudo scaffold bench boost --check\n  sudo scaffold bench boost --quick\n  sudo scaffold bench boost --only cpu --runs 5 -o json",
		PreRunE: func(*cobra.Command, []string) error {
			if opt.Each < 2*time.Second {
				return exit.Failf(exit.Usage, "", "bench boost: a window has not grown in %v: give at least 2s", opt.Each)
			}
			for _, part := range opt.Only {
				if !slices.Contains(boost.Parts(), part) {
					return exit.Failf(exit.Usage, "", "--only %q: want some of %s", part, strings.Join(boost.Parts(), ", "))
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt.Log = labs.Progress(cmd, false).Log
			rep, err := boostReport(cmd, opt, *flags.name)
			if err != nil {
				return err
			}
			return flags.print(cmd, rep)
		},
	}
	command.Exclusive(cmd, "quick runs") // it is one
	flags.out, flags.name = addFormat(cmd), labs.AddName(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	cmd.Flags().BoolVar(&opt.Quick, "quick", false, "one run, and the core of the rows: two minutes")
	cmd.Flags().StringSliceVar(&opt.Only, "only", nil, "parts: "+strings.Join(boost.Parts(), ", "))
	addLength(cmd.Flags(), &opt.Each, 4*time.Second, 10*time.Millisecond, "length of one measurement")
	addSize(cmd.Flags(), &opt.Runs, "runs", "n", 3, "turns")
	return cmd
}

// boostReport measures in one lab after the other.
func boostReport(cmd *cobra.Command, opt boost.Options, name string) (rep bench.Report, err error) {
	for _, one := range boost.Labs() {
		if !opt.In(one) {
			continue
		}
		f, err := file.Parse("boost.yaml", []byte(one.File))
		if err == nil {
			err = labs.Rename(f, name)
		}
		if err != nil {
			return rep, err
		}
		err = onLab(cmd, f, func(ctx context.Context, l *lab.Lab) error { return one.Measure(ctx, l, opt, &rep) })
		if err != nil {
			return rep, err
		}
	}
	return rep, nil
}
