package emubench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
)

// daemons is the number of routers whose routes come from FRR.
const daemons = 50

// frrLab is the file of their lab: OSPFv3 at places of a square.
var frrLab = fmt.Sprintf(`
name: benchfrr
topology: {generate: gabriel, size: %d, side: 500, seed: 7, kind: frr}
nodes: {host: host}
links: [[host, r1]]
`, daemons)

// frrDaemon is the first of FRR's daemons, where Debian's package has it.
const frrDaemon = "/usr/lib/frr/zebra"

// converged is how long FRR takes until one host reaches every router, from the file on.
func (b *run) converged(ctx context.Context) error {
	if _, err := os.Stat(frrDaemon); err != nil {
		b.log("no FRR to measure: %v", err)
		b.note("no routers fed by FRR were measured: %v; as root, run scripts/packages.sh bench", err)
		return nil
	}
	b.log("a lab of %d FRR routers", daemons)
	f, err := file.Parse("frr.yaml", []byte(frrLab))
	if err != nil {
		return err
	}
	began := time.Now()
	return lab.With(ctx, f, lab.Options{Binary: b.product}, func(ctx context.Context, l *lab.Lab) error {
		up := time.Since(began)
		for _, n := range l.Plan().Nodes {
			if n.Kind != file.FRR {
				continue
			}
			if err := reached(ctx, l, n.Own.String()); err != nil {
				return fmt.Errorf("router %s: %w", n.Name, err)
			}
		}
		name := fmt.Sprintf("lab of %d FRR routers, OSPFv3: ", daemons)
		b.add(bench.NewRow(name+"file to all up", "s", "", "", []float64{up.Seconds()}),
			bench.NewRow(name+"file to every router reached", "s", "<= 60", "", []float64{time.Since(began).Seconds()}))
		return nil
	})
}

// convergeTime bounds how long a router may take to be reached once all is up.
const convergeTime = 3 * time.Minute

// reached waits until the host has an answer from the address.
func reached(ctx context.Context, l *lab.Lab, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, convergeTime, fmt.Errorf("no answer within %v", convergeTime))
	defer cancel()
	for {
		out, err := l.Output(ctx, "host", "ping", "-6", "-c", "1", "-W", "1", address)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %s", context.Cause(ctx), strings.TrimSpace(string(out)))
		}
	}
}
