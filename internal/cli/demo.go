package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/labs"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/demo"
	"scaffold.dev/scaffold/internal/lab/demo/longpath"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/rig"
)

// The demos: the lab that each plays on, how it is played, and what there is to look at afterwards.
var demos = map[string]struct {
	file, about string
	play        func(context.Context, io.Writer, *lab.Lab) (bool, error)
	look        string
}{
	"services": {"web.yaml", "The network: examples/web.yaml, open, since nobody else reaches its namespaces. How it works: docs/architecture.md.\nOn your own machines a network has keys: docs/install.md.", playServices,
		"  scaffold lab exec c1 -- curl http://web.svc/\n  scaffold --lab %[1]s service show web\n  scaffold --lab %[1]s events"},
	"boost": {"boost-switches.yaml", "The network: examples/boost-switches.yaml. How it works, and how to have it: docs/boost.md.", playBoost,
		"  scaffold --lab %[1]s boost ls\n  scaffold --lab %[1]s boost agent ls\n  scaffold lab exec sw1 -- ovs-ofctl -O OpenFlow15 dump-flows br0 table=0"},
	"boost on linux": {"boost.yaml", "The network: examples/boost.yaml. How it works, and how to have it: docs/boost.md.", playBoost,
		"  scaffold lab exec c1 -- ping s1\n  scaffold lab link x y"},
}

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo [services|boost]",
		Short: "Show the main job: unmodified programs reach a replicated service by name",
		Long: `Brings up examples/web.yaml in network namespaces, starts unmodified nginx behind the name "web", and
shows with unmodified curl, wget and ab, under continuous load, that instances come, go, die, are drained
and stop while no client is touched. Exit code 7: something did not hold.

"demo boost" brings up examples/boost-switches.yaml, two Open vSwitches and a long path with loss between them,
and shows what unmodified iperf3, curl and rsync get by themselves and over two agents, and what becomes of them
when parts of an agent, or the controller, are killed. With --net linux the network is that of examples/boost.yaml:
its agents are Linux routers, and no controller is there.`,
		Example:   "  sudo bin/scaffold demo\n  sudo bin/scaffold demo --keep   # and look around afterwards\n  sudo bin/scaffold demo --net openflow\n  sudo bin/scaffold demo boost",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"services", "boost"},
	}
	net := cmd.Flags().String("net", "", "what the network's routers are: linux, or openflow: Open vSwitch under the controller (default: linux, of boost openflow)")
	keep := cmd.Flags().Bool("keep", false, "leave the lab up at the end")
	name := labs.AddName(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		which := append(args, "services")[0]
		if which == "boost" { // each net is a file of its own: on Linux agents are routers, on the hosts' way
			switch *net {
			case "linux":
				which = "boost on linux"
			case "", "openflow":
			default:
				return exit.Failf(exit.Usage, "--net linux, or --net openflow, the default", "demo boost: net %q is unknown", *net)
			}
			*net = ""
		}
		return runDemo(cmd, which, *name, *net, *keep)
	}
	return cmd
}

func runDemo(cmd *cobra.Command, which, name, net string, keep bool) error {
	d := demos[which]
	f, err := labs.Example(d.file, name)
	if err == nil {
		err = labs.SetPlane(f, net)
	}
	if err != nil {
		return err
	}
	for _, n := range f.Nodes {
		for _, p := range n.Programs {
			p.Manual = true // the demo starts them one by one
		}
	}
	holds := false
	use := func(ctx context.Context, l *lab.Lab) (err error) {
		holds, err = d.play(ctx, cmd.OutOrStdout(), l)
		return err
	}
	hint := "the table says what did not hold; KEEP=1 leaves the lab up to look around"
	if keep {
		hint = "the table says what did not hold"
		err = keepLab(cmd, f, d.look, use)
	} else {
		err = lab.With(cmd.Context(), f, labs.Progress(cmd, false), use)
	}
	if err != nil {
		return labs.Fail(err)
	}
	fmt.Fprintln(cmd.OutOrStdout())
	if !keep {
		fmt.Fprintln(cmd.OutOrStdout(), "Where next: KEEP=1 make demo leaves this network up to look around.")
	}
	fmt.Fprintln(cmd.OutOrStdout(), d.about)
	if !holds {
		return exit.Failf(exit.Unmet, hint, "demo: not all of it holds")
	}
	return nil
}

// playServices shows it all, and says what held; of a demo that is interrupted only what it showed until then.
func playServices(ctx context.Context, out io.Writer, l *lab.Lab) (bool, error) {
	r, err := rig.New(l)
	if err != nil {
		return false, err
	}
	results, err := demo.Play(ctx, r, out)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	fmt.Fprintln(out)
	return demo.Report(out, results) && err == nil, err
}

// playBoost does the same.
func playBoost(ctx context.Context, out io.Writer, l *lab.Lab) (bool, error) {
	results, err := longpath.Play(ctx, l, out)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	fmt.Fprintln(out)
	return longpath.Report(out, l, results) && err == nil, err
}

// keepLab leaves the lab up unless it was interrupted.
func keepLab(cmd *cobra.Command, f *file.File, look string, use func(context.Context, *lab.Lab) error) error {
	ctx := cmd.Context()
	opt := labs.Progress(cmd, false)
	l, err := lab.Up(ctx, f, opt)
	if err != nil {
		return err
	}
	err = use(ctx, l)
	if ctx.Err() != nil {
		err = errors.New("demo: interrupted; everything is removed again")
		return errors.Join(err, lab.Down(context.WithoutCancel(ctx), f.Name, opt))
	}
	fmt.Fprintf(cmd.OutOrStdout(), `
The lab is still up. Look around:
`+look+`
  scaffold lab status
  scaffold lab down %[1]s
`, f.Name)
	return err
}
