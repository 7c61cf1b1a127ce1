package emubench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/topo"
	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// A large network is how many routers, and what is expected of it.
type large struct {
	routers  int
	up       string // aim, in seconds
	memory   string // aim, in GiB
	allPairs bool   // and not a sample of them
}

var larges = []large{{1000, "<= 15", "", true}, {4000, "<= 60", "<= 20", false}}

// sizes brings up labs of emulated routers with computed routes.
func (b *run) sizes(ctx context.Context) error {
	for _, l := range larges[:b.size.larges] {
		b.log("a lab of %d routers", l.routers)
		if err := b.sizeOf(ctx, l); err != nil {
			return fmt.Errorf("%d routers: %w", l.routers, err)
		}
	}
	return nil
}

func (b *run) sizeOf(ctx context.Context, l large) error {
	text, err := largeLab(l.routers)
	if err != nil {
		return err
	}
	began := time.Now()
	f, err := file.Parse("size.yaml", []byte(text))
	if err != nil {
		return err
	}
	return lab.With(ctx, f, lab.Options{Binary: b.product}, func(ctx context.Context, up *lab.Lab) error {
		took := time.Since(began)
		memory, err := engineMemory(up)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("lab of %d routers with computed routes: ", l.routers)
		b.add(bench.NewRow(name+"file to all up", "s", l.up, "", []float64{took.Seconds()}),
			bench.NewRow(name+"memory of the engine", "GiB", l.memory, "", []float64{memory / (1 << 30)}))
		p, err := newPairs(up, l)
		if err != nil {
			return err
		}
		defer p.close()
		missing, err := p.missing(ctx)
		row := bench.NewRow(name+p.what()+" unreachable", "pairs", "= 0", "", []float64{float64(missing)})
		row.N = p.count()
		b.add(row)
		return err
	})
}

// largeLab is the file of a lab: autonomous systems in tiers, and a host at the first router.
func largeLab(routers int) (string, error) {
	g, err := topo.FindGenerator("as-like")
	if err != nil {
		return "", err
	}
	graph, err := g.Generate(topo.Options{Size: routers, Seed: 1})
	if err != nil {
		return "", err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "name: benchsize\nnodes:\n  host: host\n")
	for _, n := range graph.Nodes {
		fmt.Fprintf(&t, "  %s: emulated\n", n.Name)
	}
	fmt.Fprintf(&t, "links:\n  - [host, %s]\n", graph.Nodes[0].Name)
	for _, l := range graph.Links {
		fmt.Fprintf(&t, "  - [%s, %s]\n", graph.Nodes[l.Ends[0]].Name, graph.Nodes[l.Ends[1]].Name)
	}
	return t.String(), nil
}

// engineMemory is what the engine's process has in RAM, in bytes.
func engineMemory(l *lab.Lab) (float64, error) {
	pids := cgroups.Group(l.Cgroup("mgmt", "engine")).PIDs()
	if len(pids) == 0 {
		return 0, errors.New("the engine has no process")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			var kb float64
			_, err := fmt.Sscan(rest, &kb)
			return kb * 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no VmRSS", pids[0])
}
