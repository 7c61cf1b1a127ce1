package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

// The labs that the host and network benchmarks run on: with one router between client and servers, and with two.
const (
	benchFile = "bench.yaml"
	benchFar  = "bench2.yaml"
)

// benchFlags are what every benchmark has.
type benchFlags struct {
	out   *command.Format
	name  *string // of the lab
	plane *string // of its routers; "": as the file says
	far   bool
	check bool
	to    string // directory for rows and figure
}

// addTo is the --to flag of benchmarks with a figure.
func (flags *benchFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&flags.to, "to", "", "directory for the rows ("+cmd.Name()+".json) and the figure ("+cmd.Name()+".svg)")
}

// keep prints a report, and saves it with its figure where that is asked for.
func (flags benchFlags) keep(cmd *cobra.Command, rep bench.Report) error {
	if flags.to != "" {
		if err := saveFigure(rep.WriteJSON, rep.Figure, flags.to, cmd.Name()); err != nil {
			return err
		}
	}
	return flags.print(cmd, rep)
}

// newBench makes a benchmark that runs on a lab of its own.
func newBench(use, short string, run func(context.Context, *bench.Rig) (bench.Report, error)) *cobra.Command {
	var flags benchFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Example: "  sudo scaffold bench " + use + " --check\n  sudo scaffold bench " + use + " -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rep, err := flags.onLab(cmd, run)
			if err != nil {
				return err
			}
			return flags.print(cmd, rep)
		},
	}
	flags.out, flags.name, flags.plane = addFormat(cmd), labs.AddName(cmd), labs.AddPlane(cmd)
	cmd.Flags().BoolVar(&flags.far, "far", false, "two routers between the client and its servers")
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	return cmd
}

func (flags *benchFlags) onLab(cmd *cobra.Command, run func(context.Context, *bench.Rig) (bench.Report, error)) (rep bench.Report, err error) {
	file := benchFile
	if flags.far {
		file = benchFar
	}
	f, err := labs.Example(file, *flags.name)
	if err == nil {
		err = labs.SetPlane(f, *flags.plane)
	}
	if err != nil {
		return rep, err
	}
	return flags.on(cmd, f, func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
		if err := r.FreePorts(ctx, "c1"); err != nil {
			return bench.Report{}, err
		}
		return run(ctx, r)
	})
}

// on brings a lab up for a benchmark.
func (flags *benchFlags) on(cmd *cobra.Command, f *file.File, run func(context.Context, *bench.Rig) (bench.Report, error)) (rep bench.Report, err error) {
	err = onLab(cmd, f, func(ctx context.Context, l *lab.Lab) error {
		rig, err := bench.NewRig(l)
		if err != nil {
			return err
		}
		rep, err = run(ctx, rig)
		return err
	})
	return rep, err
}

// cutShort is what a benchmark without a lab says of its error: that it was interrupted, where it was.
func cutShort(cmd *cobra.Command, err error) error {
	if errors.Is(cmd.Context().Err(), context.Canceled) {
		return exit.Failf(exit.Failed, "", "bench %s: interrupted; everything is removed again", cmd.Name())
	}
	return labs.Fail(err)
}

// A measured is what a benchmark has to say.
type measured interface {
	WriteTable(io.Writer) error
	WriteJSON(io.Writer) error
	Missed() []string
}

func (flags benchFlags) print(cmd *cobra.Command, rep measured) error {
	write := rep.WriteTable
	if flags.out.JSON() {
		write = rep.WriteJSON
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if missed := rep.Missed(); flags.check && len(missed) > 0 {
		return exit.Failf(exit.Unmet, "", "%s: %s", command.Counts(uint32(len(missed)), "row misses its aim", "rows miss their aim"), strings.Join(missed, "; "))
	}
	return nil
}

func benchPath() *cobra.Command {
	var pairs int
	var d time.Duration
	cmd := newBench("path", "What the host edge costs: streams, requests and connections beside plain IPv6",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Path(ctx, r, "bench", pairs, d)
		})
	addSize(cmd.Flags(), &pairs, "pairs", "", 30, "alternating pairs of each measurement")
	addLength(cmd.Flags(), &d, 300*time.Millisecond, 10*time.Millisecond, "length of one measurement")
	return cmd
}

func benchSwitch() *cobra.Command {
	var size bench.SwitchSize
	cmd := newBench("switch", "How soon an OpenFlow switch has what the controller says, and what its death costs",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Switch(ctx, r, "bench", size)
		})
	cmd.Flags().Lookup("plane").DefValue = file.OpenFlowPlane
	cmd.Flags().Set("plane", file.OpenFlowPlane) //nolint:errcheck // it is a flag of newBench
	addSize(cmd.Flags(), &size.Changes, "changes", "n", 200, "changes of a weight")
	addSize(cmd.Flags(), &size.Joins, "joins", "", 50, "hosts that join")
	addSize(cmd.Flags(), &size.Restarts, "restarts", "", 10, "controllers that are killed")
	return cmd
}

func benchChurn() *cobra.Command {
	var n int
	cmd := newBench("churn", "How fast an instance is found when it listens, and left when it dies",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Churn(ctx, r, "bench", n)
		})
	addSize(cmd.Flags(), &n, "times", "n", 200, "starts and kills")
	return cmd
}

func benchCut() *cobra.Command {
	var n int
	cmd := newBench("cut", "How long a host that was cut off is still asked",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.CutOff(ctx, r, "bench", n)
		})
	addSize(cmd.Flags(), &n, "times", "n", 50, "cuts")
	return cmd
}

func benchSplit() *cobra.Command {
	var flows int
	cmd := newBench("split", "How well flows follow the weights",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Split(ctx, r, "bench", flows)
		})
	addSize(cmd.Flags(), &flows, "flows", "", 10000, "flows of each kind")
	return cmd
}

func benchReturns() *cobra.Command {
	var rate int
	var d time.Duration
	cmd := newBench("returns", "What becomes of new connections while nobody can tell that their instance is dead",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Returns(ctx, r, "bench", rate, d)
		})
	addSize(cmd.Flags(), &rate, "rate", "", 2000, "connections a second")
	addLength(cmd.Flags(), &d, 5*time.Second, time.Second, "how long each of the runs takes")
	return cmd
}

func benchTold() *cobra.Command {
	var transfers, closed int
	cmd := newBench("told", "What becomes of ports that a server tells over another connection, as passive FTP does (needs vsftpd, nginx, ab, curl)",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Told(ctx, r, "bench", transfers, closed)
		})
	addSize(cmd.Flags(), &transfers, "transfers", "", 5000, "passive transfers")
	addSize(cmd.Flags(), &closed, "closed", "", 200, "connections to a closed port")
	return cmd
}

func benchHogs() *cobra.Command {
	var d time.Duration
	cmd := newBench("hogs", "Whether a busy machine makes hosts look dead",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Hogs(ctx, r, d)
		})
	addLength(cmd.Flags(), &d, time.Minute, time.Second, "how long")
	return cmd
}

func benchScale() *cobra.Command {
	size := bench.ScaleSize{}
	cmd := newBench("scale", "How long thousands of services take from their hosts to a router's kernel",
		func(ctx context.Context, r *bench.Rig) (bench.Report, error) {
			return bench.Scale(ctx, r, size)
		})
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if err := size.Check(); err != nil {
			return exit.Fail(exit.Usage, "", err)
		}
		return nil
	}
	cmd.Flags().IntVar(&size.Services, "services", 10000, "services")
	cmd.Flags().IntVar(&size.PerService, "instances", 10, "instances of each")
	cmd.Flags().IntVar(&size.Hosts, "hosts", 100, "hosts that serve them")
	cmd.Flags().IntVar(&size.Changes, "changes", 50, "changes to measure")
	return cmd
}

func benchTable() *cobra.Command {
	var flags benchFlags
	var size bench.TableSize
	cmd := &cobra.Command{
		Use: "table", Short: "What a service router's tables take, and what one change and one first packet cost", Args: cobra.NoArgs,
		Example: "  sudo scaffold bench table --services 10000 --instances 10 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return exit.Failf(exit.Missing, "try again with sudo", "bench table fills tables in the kernel and needs root")
			}
			rep, err := bench.Table(cmd.Context(), size)
			if err != nil {
				return cutShort(cmd, err)
			}
			return flags.keep(cmd, rep)
		},
	}
	flags.out = addFormat(cmd)
	cmd.Flags().BoolVar(&flags.check, "check", false, "exit with code 7 when a row misses its aim")
	flags.addTo(cmd)
	addSize(cmd.Flags(), &size.Services, "services", "", 100000, "services in the table")
	addSize(cmd.Flags(), &size.PerService, "instances", "", 10, "instances of each")
	addSize(cmd.Flags(), &size.Changes, "changes", "", 2000, "changes to measure")
	addSize(cmd.Flags(), &size.Packets, "packets", "", 5000, "first packets to measure")
	return cmd
}
