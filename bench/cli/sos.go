package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench/boost"
	"scaffold.dev/scaffold/bench/sos"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

func benchSos() *cobra.Command {
	var opt boost.SosOptions
	var name *string
	var to string
	var draw bool
	cmd := &cobra.Command{
		Use: "sos EXPERIMENT...", Short: "The experiments of the thesis about Steroid OpenFlow Service, run again",
		Long: "Each writes its result (JSON) and its figure (SVG, PNG) into a directory, and " + sos.Page + " there, which has all results\n" +
			"beside the thesis' numbers. Experiments: " + strings.Join(boost.SosNames(), ", ") + ".",
		Example: "  sudo scaffold bench sos sos_loss --to docs/experiments\n  sudo scaffold bench sos sos_lookup sos_clients --quick --to /tmp/sos\n" +
			"  scaffold bench sos --draw --to docs/experiments",
		Args: cobra.ArbitraryArgs,
		PreRunE: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if !slices.Contains(boost.SosNames(), arg) {
					return exit.Failf(exit.Usage, "", "bench sos: there is no experiment %q: want some of %s", arg, strings.Join(boost.SosNames(), ", "))
				}
			}
			switch {
			case draw && len(args) > 0:
				return exit.Failf(exit.Usage, "", "bench sos: --draw measures nothing: leave %s out", args[0])
			case !draw && len(args) == 0:
				return exit.Failf(exit.Usage, "", "bench sos: name an experiment: some of %s", strings.Join(boost.SosNames(), ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Log = labs.Progress(cmd, false).Log
			if draw {
				return drawSos(to)
			}
			for _, e := range boost.SosExperiments() {
				if slices.Contains(args, e.About.Name) {
					if err := runSos(cmd, e, opt, *name, to); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	command.Exclusive(cmd, "quick runs", "quick duration", "draw quick", "draw runs", "draw duration", "draw name")
	name = labs.AddName(cmd)
	cmd.Flags().StringVar(&to, "to", ".", "directory for results, figures and the page")
	cmd.Flags().BoolVar(&opt.Quick, "quick", false, "a part of each, in less than a minute: nothing to publish")
	cmd.Flags().BoolVar(&draw, "draw", false, "measure nothing: write figures and page anew from the results that are there")
	addLength(cmd.Flags(), &opt.Each, 4*time.Second, 10*time.Millisecond, "length of one measurement")
	addSize(cmd.Flags(), &opt.Runs, "runs", "n", 1, "turns")
	return command.Plain(cmd)
}

// runSos measures one experiment and writes what came of it.
func runSos(cmd *cobra.Command, e boost.SosExperiment, opt boost.SosOptions, name, to string) error {
	f, err := sosLab(e, name)
	if err != nil {
		return err
	}
	var res *sos.Result
	measure := func(ctx context.Context, l *lab.Lab) (err error) {
		res, err = e.Measure(ctx, l, opt)
		return err
	}
	if f == nil {
		if err := measure(cmd.Context(), nil); err != nil {
			return cutShort(cmd, err)
		}
	} else if err := onLab(cmd, f, measure); err != nil {
		return err
	}
	if err := res.Save(to); err != nil {
		return err
	}
	if err := sos.WritePage(to, boost.SosNames()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(to, res.Name+".json"))
	return err
}

// sosLab is the file of an experiment's lab, nil where it needs none.
func sosLab(e boost.SosExperiment, name string) (f *file.File, err error) {
	switch {
	case e.Ships != "":
		return labs.Example(e.Ships, name)
	case e.Lab == "":
		return nil, nil
	}
	if f, err = file.Parse(e.About.Name+".yaml", []byte(e.Lab)); err == nil {
		err = labs.Rename(f, name)
	}
	return f, err
}

// drawSos writes figures and page of all results in a directory.
func drawSos(dir string) error {
	for _, name := range boost.SosNames() {
		r, err := sos.Load(filepath.Join(dir, name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = r.Draw(dir)
		}
		if err != nil {
			return err
		}
	}
	return sos.WritePage(dir, boost.SosNames())
}
