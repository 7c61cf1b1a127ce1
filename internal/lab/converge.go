package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// convergeTime bounds how long daemons get to find all ways before the timeline begins.
const convergeTime = 60 * time.Second

// converge waits until the daemons of all routers know the prefixes of all others, and goes on without where they do
// not: a file may want it so.
func (l *Lab) converge(ctx context.Context) error {
	want := l.plan.expected()
	if len(want) == 0 {
		return nil
	}
	began := time.Now()
	within, cancel := context.WithTimeoutCause(ctx, convergeTime, fmt.Errorf("the daemons did not find all ways in %v", convergeTime))
	defer cancel()
	err := pollEvery(within, convergeEvery, func() error { return l.converged(within, want) })
	switch {
	case err == nil:
		l.opt.logf("lab %s: %d routers of kind frr know all prefixes after %v", l.File.Name, len(want), time.Since(began).Round(time.Millisecond))
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		l.opt.logf("lab %s: goes on without all routes: %v", l.File.Name, err)
		return nil
	}
	return err
}

// convergeEvery is how often the engine is asked.
const convergeEvery = 50 * time.Millisecond

// converged is an error that names the first router that does not know enough.
func (l *Lab) converged(ctx context.Context, want map[string]int) error {
	if err := l.routingAlive(); err != nil {
		return &finalError{err}
	}
	routers, err := l.Engine().Routers(ctx)
	if err != nil {
		return err
	}
	for _, r := range routers {
		if r.Feed != nil && r.Feed.Routes < want[r.Name] {
			return fmt.Errorf("router %s has %d routes from its daemons, want %d; vtysh --vty_socket %s shows what they know",
				r.Name, r.Feed.Routes, want[r.Name], l.ProgramDir(r.Name, frrName))
		}
	}
	return nil
}

// routingAlive is an error that names the first daemon of FRR that has ended.
func (l *Lab) routingAlive() error {
	if err := l.exited(managementNode, engineName); err != nil {
		return err
	}
	for _, n := range l.plan.frrRouters() {
		for _, name := range n.frrProcesses() {
			if err := l.exited(n.Name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// expected is how many prefixes each router is to learn, where that follows from the file: all routers speak the same
// and no lines of FRR's own change what they say.
func (p *Plan) expected() map[string]int {
	nodes := p.frrRouters()
	known := map[netip.Prefix]bool{}
	for _, n := range nodes {
		if n.Config != "" || !slices.Equal(n.Protocols, nodes[0].Protocols) {
			return nil
		}
		for _, prefix := range n.owns() {
			if n.speaks(prefix) {
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

// speaks reports whether one of the router's protocols is for the family of a prefix.
func (n *Node) speaks(p netip.Prefix) bool {
	other := OSPF6
	if p.Addr().Is4() {
		other = OSPF
	}
	return slices.Contains(n.Protocols, BGP) || slices.Contains(n.Protocols, other)
}
