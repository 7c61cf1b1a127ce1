package forward

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fib"
)

// Classes are destination classes for all forwarders of a network: a packet is looked up where it enters, and then
// finds its way with one load at each router ([fib.Classes]).
//
// A router that gets a route to a prefix that no router had looks its own table up, until classes are made anew: on
// the machine's clock by themselves after refreshDelay, in virtual time when [Classes.Refresh] is called. It is the
// table's answer either way.
type Classes struct {
	net     *emu.Net
	all     *fib.Classes
	members []*Forwarder // by number of the router, nil for other programs
	one     sync.Mutex   // of Refresh
	due     atomic.Bool
}

const refreshDelay = 50 * time.Millisecond

// Compile makes classes of the routes that the network's forwarders have, and lets all use them whose configuration does
// not say otherwise. It is not to be called inside [emu.Net.Do].
func Compile(net *emu.Net) (*Classes, error) {
	n := len(net.Routers())
	c := &Classes{net: net, all: fib.NewClasses(n), members: make([]*Forwarder, n)}
	return c, c.Refresh()
}

// Refresh makes classes for forwarders that are new, or have routes to new prefixes. All packets stand still meanwhile.
// Those for whom there are no classes left look their own tables up; then the error is [fib.ErrFull].
func (c *Classes) Refresh() (err error) {
	c.one.Lock()
	defer c.one.Unlock()
	c.due.Store(false)
	return errors.Join(c.net.Reclass(func() { err = c.refresh() }), err)
}

func (c *Classes) refresh() error {
	lists.Lock()
	defer lists.Unlock()
	errs := []error{c.expect()}
	for i, r := range c.net.Routers() {
		f := of(r.Program())
		if old := c.members[i]; old != nil && old != f {
			old.leaveClasses()
		}
		if c.members[i] = f; f != nil {
			errs = append(errs, f.joinClasses(c, i))
		}
	}
	for _, f := range c.members {
		if f != nil {
			f.neighbours.declass()
		}
	}
	c.all.Trim()
	c.all.Release(c.all.Generation())
	for _, f := range c.members {
		if f != nil {
			f.useClasses()
		}
	}
	return errors.Join(errs...)
}

// expect declares what routers have that no other has, at once: their own addresses and the prefixes of their ports.
func (c *Classes) expect() error {
	var own []netip.Prefix
	for _, r := range c.net.Routers() {
		if f := of(r.Program()); f != nil && f.classes != c {
			for _, route := range f.always {
				own = append(own, route.Prefix)
			}
		}
	}
	return c.all.Declare(own...)
}

// declare makes classes of the prefixes of routes.
func (c *Classes) declare(routes []fib.Route) error {
	prefixes := make([]netip.Prefix, len(routes))
	for i, r := range routes {
		prefixes[i] = r.Prefix
	}
	return c.all.Declare(prefixes...)
}

// later has Refresh called.
func (c *Classes) later() {
	if !c.net.Virtual() && !c.due.Swap(true) {
		time.AfterFunc(refreshDelay, func() { c.Refresh() }) //nolint:errcheck // who is left out goes on with its table
	}
}

// Len is the number of classes; to be called while no routes change.
func (c *Classes) Len() int { return c.all.Len() }

// A membership is what a forwarder has to do with classes.
type membership struct {
	classes *Classes
	number  int
	behind  bool // its routes are not all in the classes
	lpm     bool // it does not want them
}

// joinClasses puts all routes into the classes.
func (f *Forwarder) joinClasses(c *Classes, number int) error {
	if f.classes == c && !f.behind {
		return nil
	}
	if f.classes != c {
		f.lpm = f.config.LPM
	}
	f.classes, f.number, f.behind = c, number, true
	routes := lists.all[:0]
	for p, h := range f.table.All() {
		routes = append(routes, fib.Route{Prefix: p, Hop: h})
	}
	lists.all = routes
	err := c.all.Load(number, routes)
	if errors.Is(err, fib.ErrUndeclared) {
		if err = c.declare(routes); err == nil {
			err = c.all.Load(number, routes)
		}
	}
	f.behind = err != nil
	if err != nil {
		return fmt.Errorf("classes for router %s: %w", c.net.Routers()[number].Name(), err)
	}
	return nil
}

func (f *Forwarder) leaveClasses() {
	f.membership = membership{}
	f.hops = nil
}

// useClasses takes the hops of the classes, or none.
func (f *Forwarder) useClasses() {
	f.hops = nil
	if f.classes != nil && !f.behind && !f.lpm {
		f.hops = f.classes.all.View(f.number).Hops()
	}
}

// classed tells the classes of a change, which returns its error.
func (f *Forwarder) classed(change func(*fib.Classes, int) error) {
	if f.classes == nil || f.behind {
		return
	}
	if change(f.classes.all, f.number) != nil {
		f.behind = true
		f.useClasses()
		f.classes.later()
	}
}

// Mode is how the router finds a packet's way: "lpm" or "class".
func (f *Forwarder) Mode() string {
	if f.hops != nil {
		return "class"
	}
	return "lpm"
}

// SetMode is "lpm" for looking each packet up in the table, or "class" for what [Compile] made.
func (f *Forwarder) SetMode(mode string) error {
	switch {
	case mode != "lpm" && mode != "class":
		return fmt.Errorf("mode %q: expected lpm or class", mode)
	case mode == "class" && f.classes == nil:
		return errors.New("mode class: the network has no destination classes; compile them first, or use lpm")
	}
	f.lpm = mode == "lpm"
	f.useClasses()
	return nil
}
