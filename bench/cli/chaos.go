package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/chaos"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
)

// movesFile is the lab of hosts that move.
const movesFile = "moves.yaml"

func benchChaos() *cobra.Command {
	var opt chaos.Options
	var dry bool
	var logs string
	cmd := &cobra.Command{
		Use: "chaos", Short: "Break everything at random under checked streams; end with 7 if anything is wrong", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench chaos --seed 1 --duration 10m\n  scaffold bench chaos --seed 1 --duration 10m --dry-run",
	}
	out, name := addFormat(cmd), labs.AddName(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := opt.Check(); err != nil {
			return exit.Fail(exit.Usage, "", err)
		}
		f, err := labs.Example(movesFile, *name)
		if err != nil {
			return err
		}
		w := chaos.WorldOf(f)
		if dry {
			return chaos.WriteSchedule(cmd.OutOrStdout(), chaos.Schedule(w, opt))
		}
		var res *chaos.Result
		err = onLab(cmd, f, func(ctx context.Context, l *lab.Lab) error {
			rig, err := bench.NewRig(l)
			if err != nil {
				return err
			}
			res, err = chaos.Run(ctx, rig, w, opt, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
			if logs != "" {
				err = errors.Join(err, keepLogs(l, logs))
			}
			return err
		})
		if err != nil {
			return err
		}
		write := res.WriteTable
		if out.JSON() {
			write = res.WriteJSON
		}
		if err := write(cmd.OutOrStdout()); err != nil {
			return err
		}
		if len(res.Odd) > 0 {
			return exit.Failf(exit.Unmet, "", "bench chaos: %s did not hold; seed %d gives the same events again", command.Count(uint32(len(res.Odd)), "thing"), opt.Seed)
		}
		return nil
	}
	cmd.Flags().Uint64Var(&opt.Seed, "seed", 1, "of the events")
	cmd.Flags().BoolVar(&opt.Moves, "moves", true, "let hosts move and servers shed")
	cmd.Flags().StringSliceVar(&opt.Only, "only", nil, "kinds of trouble: "+strings.Join(chaos.Kinds(), ", "))
	addLogs(cmd.Flags(), &logs)
	cmd.Flags().Bool("check", false, "the minute that is part of the test suite: seed 1, for 1m")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the events and do nothing")
	addLength(cmd.Flags(), &opt.Duration, time.Minute, time.Second, "how long")
	command.Exclusive(cmd, "check seed", "check duration", "check only", "check moves", "dry-run name", "dry-run logs", "dry-run output")
	return cmd
}

func addLogs(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "logs", "", "keep the daemons' logs in this directory")
}

// keepLogs copies what the lab's daemons wrote, as NODE-DAEMON.log.
func keepLogs(l *lab.Lab, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	all, err := filepath.Glob(filepath.Join(l.Dir(), "*", "*.log"))
	if err != nil {
		return err
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(filepath.Dir(path))+"-"+filepath.Base(path)), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
