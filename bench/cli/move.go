package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/checked"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

func benchMove() *cobra.Command {
	size := bench.MoveSize{Rate: 16e6}
	var loss float64
	cmd := benchOn("move", "How long streams stand still when one end moves, or both", func(name string) (*file.File, error) {
		f, err := labs.Example(movesFile, name)
		if err == nil {
			err = bench.Line{Delay: size.Delay, Loss: loss}.Apply(f)
		}
		return f, err
	}, func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
		size.Loss = loss > 0
		return bench.Moves(ctx, r, "check", size)
	})
	f := cmd.Flags()
	addSize(f, &size.Runs, "runs", "n", 40, "moves of each kind")
	addExtra(f, &size.Crowd, "flows", 10000, "flows on one host that moves at once")
	f.DurationVar(&size.Delay, "delay", 0, "of the path, each way")
	f.Float64Var(&loss, "loss", 0, "of the path, in percent, each way")
	f.Var(rateFlag{&size.Rate}, "rate", "bytes per second of each stream")
	return cmd
}

// rateFlag is a checked.Rate.
type rateFlag struct{ r *checked.Rate }

// String, Set and Type make it a flag.
func (f rateFlag) String() string {
	if f.r == nil { // pflag asks a zero value for its default
		return ""
	}
	return f.r.String()
}

// Set implements pflag.Value.
func (f rateFlag) Set(text string) (err error) {
	*f.r, err = checked.ParseRate(text)
	return err
}

// Type implements pflag.Value.
func (f rateFlag) Type() string { return "rate" }

var _ pflag.Value = rateFlag{}

func benchFailover() *cobra.Command {
	var size bench.FailoverSize
	cmd := benchOn("failover", "How long a client is without a server when its server dies", func(name string) (*file.File, error) {
		f, err := file.Parse("failover.yaml", []byte(bench.FailoverLab))
		if err == nil {
			err = labs.Rename(f, name)
		}
		return f, err
	}, func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
		return bench.Failovers(ctx, r, size)
	})
	addSize(cmd.Flags(), &size.Kills, "times", "n", 50, "processes killed, of each policy")
	addSize(cmd.Flags(), &size.Cuts, "cuts", "", 20, "hosts cut off, of each policy")
	return cmd
}

func benchRehome() *cobra.Command {
	var flows, times int
	cmd := newBench("rehome", "How long until all flows of a drained host are elsewhere",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Rehome(ctx, r, "bench", flows, times)
		})
	addSize(cmd.Flags(), &flows, "flows", "", 10000, "flows of each kind")
	addSize(cmd.Flags(), &times, "times", "n", 5, "drains")
	return cmd
}

// benchOn makes a benchmark that runs on a lab that file prepares.
func benchOn(use, short string, file func(name string) (*file.File, error), run func(context.Context, *bench.Rig) (bench.Report, error)) *cobra.Command {
	var flags benchFlags
	logs := new(string)
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Example: "  sudo scaffold bench " + use + " --check\n  sudo scaffold bench " + use + " -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := file(*flags.name)
			if err != nil {
				return exit.Fail(exit.Usage, "", err)
			}
			var rep bench.Report
			start := time.Now()
			err = onLab(cmd, f, func(ctx context.Context, l *lab.Lab) error {
				rig, err := bench.NewRig(l)
				if err == nil {
					rep, err = run(ctx, rig)
				}
				if *logs != "" {
					err = errors.Join(err, keepLogs(l, *logs))
				}
				return err
			})
			if err != nil {
				return err
			}
			rep.Notes = append(rep.Notes, fmt.Sprintf("took %.0f s", time.Since(start).Seconds()))
			return flags.print(cmd, rep)
		},
	}
	flags.out, flags.name = addFormat(cmd), labs.AddName(cmd)
	addLogs(cmd.Flags(), logs)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	return cmd
}
