package emurouter

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/emu/fib"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A route is a prefix; where it leads is the number of a port.
type route = netip.Prefix

// order obeys an order of the stream that brings no rules.
func (c *control) order(o *apiv1.RouterOrder) {
	switch o := o.Order.(type) {
	case *apiv1.RouterOrder_Routers:
		c.listed(o.Routers)
	case *apiv1.RouterOrder_Begin:
		c.naming.Begin()
		c.refused = nil
		c.do(c.path.answers.Begin)
	case *apiv1.RouterOrder_Commit:
		c.applied(o.Commit.Generation, c.commit(o.Commit.Filter))
	}
}

// applied reports the rules as obeyed, with what went wrong. The rest of them holds all the same.
func (c *control) applied(generation uint64, err error) {
	c.generation = generation
	a := &apiv1.Applied{Generation: generation}
	if err != nil {
		a.Error = err.Error()
		c.log.Error("rules not wholly applied", "generation", generation, "error", err)
	}
	if c.session != nil {
		c.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: a}})
	}
}

// apply gives the path all rules of a message at once: no packet meets a part of them. A piece of a snapshot is reported with
// the snapshot's end.
func (c *control) apply(generation uint64, rules plan.Rules, unread error) {
	errs := []error{unread}
	rules.Routes = slices.DeleteFunc(rules.Routes, func(x plan.Route) bool { // what it had by such a route goes
		none := !x.Gone && c.cfg.port(x.Port) < 0
		if none {
			errs = append(errs, fmt.Errorf("route %v: there is no port %s here", x.Prefix, x.Port))
		}
		return none
	})
	c.naming.Note(plan.Rules{Routes: rules.Routes, Probes: rules.Probes, Sources: rules.Sources}) // the rest is the answers'
	c.do(func() {
		for _, x := range rules.Routes {
			errs = append(errs, c.applyRoute(x))
		}
		c.path.answers.Apply(rules)
		for _, x := range rules.Probes {
			c.applyProbe(x)
		}
		for _, x := range rules.Sources {
			c.applySource(x)
		}
	})
	err := errors.Join(errs...)
	if c.naming.Under() {
		c.refused = append(c.refused, err)
		return
	}
	c.applied(generation, err)
}

func (c *control) applyRoute(x plan.Route) error {
	if x.Gone {
		c.path.ways.Delete(x.Prefix)
		delete(c.routes, x.Prefix)
		return nil
	}
	port := c.cfg.port(x.Port)
	c.routes[x.Prefix] = port
	return c.path.ways.Set(x.Prefix, firstPort+fib.Hop(port))
}

func (c *control) applyProbe(x plan.Probe) {
	if x.Gone {
		c.unprobe(x.Locator)
		return
	}
	c.hosts.Probe(x.Locator, x.Port)
	c.path.probes.Add(x.Locator, x.Port, rand.Uint64())
	if port := c.cfg.port(x.Port); port < 0 || !c.path.up[port] {
		c.path.found(c.path.probes.Carrier(x.Port, false))
	}
}

func (c *control) applySource(x plan.Source) {
	port := c.cfg.port(x.Port)
	if port < 0 {
		return
	}
	if x.Gone {
		delete(c.path.sources[port], x.Locator)
		return
	}
	if c.path.sources[port] == nil {
		c.path.sources[port] = map[sid.Locator]struct{}{}
	}
	c.path.sources[port][x.Locator] = struct{}{}
}

// watchLeads follows the ports at which routers are.
func (c *control) watchLeads() {
	c.do(func() {
		for i, p := range c.cfg.Ports {
			if leads := c.neighbours.Leads(p.Name); leads || c.neighbours.Settled() {
				c.path.leads[i] = leads
			}
		}
		c.settled = c.settled || c.neighbours.Settled()
		c.path.filter = c.filter && c.settled
	})
}

func (c *control) unprobe(l sid.Locator) {
	c.hosts.Unprobe(l)
	c.path.probes.Remove(l)
	c.path.answers.SetSilent(l, false)
}

// commit ends a snapshot: what it did not name goes.
func (c *control) commit(filter bool) error {
	if !c.naming.Under() {
		return errCommit
	}
	errs := c.refused
	c.refused = nil
	c.do(func() {
		rest := c.naming.Commit(plan.Held{Routes: maps.Keys(c.routes), Probes: c.hosts.Locators(), Sources: c.sources})
		for _, x := range rest.Probes {
			c.applyProbe(x)
		}
		for _, x := range rest.Routes {
			errs = append(errs, c.applyRoute(x))
		}
		for _, x := range rest.Sources {
			c.applySource(x)
		}
		c.filter = filter
		c.path.filter = c.filter && c.settled
		c.path.answers.Commit()
	})
	return errors.Join(errs...)
}

// sources yields who may send where.
func (c *control) sources(yield func(plan.Source) bool) {
	for i, p := range c.cfg.Ports {
		for l := range c.path.sources[i] {
			if !yield(plan.Source{Port: p.Name, Locator: l}) {
				return
			}
		}
	}
}
