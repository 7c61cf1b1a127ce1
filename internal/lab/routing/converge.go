package routing

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// convergeTime bounds how long daemons get to find all ways before the timeline begins.
const convergeTime = 60 * time.Second

// Converge waits until the daemons of all routers know the prefixes of all others, and goes on without where they do
// not: a file may want it so.
func (r *Routing) Converge(ctx context.Context) error {
	want := expected(r.Plan)
	if len(want) == 0 {
		return nil
	}
	began := time.Now()
	within, cancel := context.WithTimeoutCause(ctx, convergeTime, fmt.Errorf("the daemons did not find all ways in %v", convergeTime))
	defer cancel()
	err := poll.Every(within, convergeEvery, func() error { return r.converged(within, want) })
	switch {
	case err == nil:
		r.Log("lab %s: %d routers of kind frr know all prefixes after %v", r.Plan.File.Name, len(want), time.Since(began).Round(time.Millisecond))
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		r.Log("lab %s: goes on without all routes: %v", r.Plan.File.Name, err)
		return nil
	}
	return err
}

// convergeEvery is how often the engine is asked.
const convergeEvery = 50 * time.Millisecond

// converged is an error that names the first router that does not know enough.
func (r *Routing) converged(ctx context.Context, want map[string]int) error {
	if err := r.alive(); err != nil {
		return poll.Final(err)
	}
	learned, err := r.Learned(ctx)
	if err != nil {
		return err
	}
	for _, n := range r.Plan.FRRRouters() {
		if routes, speaks := learned[n.Name]; speaks && routes < want[n.Name] {
			return fmt.Errorf("router %s has %d routes from its daemons, want %d; vtysh --vty_socket %s shows what they know",
				n.Name, routes, want[n.Name], r.Dir.Program(n.Name, file.FRRName))
		}
	}
	return nil
}

// alive is an error that names the first daemon of FRR that has ended.
func (r *Routing) alive() error {
	for _, n := range r.Plan.FRRRouters() {
		for _, name := range n.FRRProcesses() {
			if err := r.Processes.Exited(n.Name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// expected is how many prefixes each router is to learn, where that follows from the file: all routers speak the same
// and no lines of FRR's own change what they say.
func expected(p *plan.Plan) map[string]int {
	nodes := p.FRRRouters()
	known := map[netip.Prefix]bool{}
	for _, n := range nodes {
		if n.Config != "" || !slices.Equal(n.Protocols, nodes[0].Protocols) {
			return nil
		}
		for _, prefix := range n.Owns() {
			if n.Speaks(prefix) {
				known[prefix] = true
			}
		}
	}
	want := map[string]int{}
	for _, n := range nodes {
		want[n.Name] = len(known)
		for _, own := range []netip.Addr{n.Own, n.Own4} { // lo is no port
			if known[netip.PrefixFrom(own, own.BitLen())] {
				want[n.Name]--
			}
		}
		for _, s := range n.Static { // of the engine's own
			if known[s.To] {
				want[n.Name]--
			}
		}
	}
	return want
}
