package emurouter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"scaffold.dev/scaffold/emu/fib"
	"scaffold.dev/scaffold/internal/agent"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A route is a prefix; where it leads is the number of a port.
type route = netip.Prefix

// A naming is what a snapshot has named so far; what it has not at its commit is removed.
type naming struct {
	routes map[route]bool
	probes map[sid.Locator]bool
	errs   []error
}

// order obeys one order of the stream.
func (c *control) order(o *apiv1.RouterOrder) {
	switch o := o.Order.(type) {
	case *apiv1.RouterOrder_Begin:
		c.naming = &naming{routes: map[route]bool{}, probes: map[sid.Locator]bool{}}
		c.do(c.path.answers.Begin)
	case *apiv1.RouterOrder_Rules:
		err := c.apply(o.Rules)
		if c.naming != nil {
			c.naming.errs = append(c.naming.errs, err)
			return
		}
		c.applied(o.Rules.Generation, err)
	case *apiv1.RouterOrder_Commit:
		c.applied(o.Commit.Generation, c.commit())
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

// apply gives the path all rules of a message at once: no packet meets a part of them.
func (c *control) apply(m *apiv1.Rules) error {
	rules, err := agent.Decode(m)
	errs := []error{err}
	c.do(func() {
		for _, x := range rules.Routes {
			errs = append(errs, c.applyRoute(x))
		}
		c.path.answers.Apply(rules)
		for _, x := range rules.Probes {
			c.applyProbe(x)
		}
	})
	return errors.Join(errs...)
}

func (c *control) applyRoute(x plan.Route) error {
	if x.Gone {
		c.path.ways.Delete(x.Prefix)
		delete(c.routes, x.Prefix)
		return nil
	}
	port := c.cfg.port(x.Port)
	if port < 0 {
		return fmt.Errorf("route %v: there is no port %s here", x.Prefix, x.Port)
	}
	if c.naming != nil {
		c.naming.routes[x.Prefix] = true
	}
	c.routes[x.Prefix] = port
	return c.path.ways.Set(x.Prefix, firstPort+fib.Hop(port))
}

func (c *control) applyProbe(x plan.Probe) {
	if x.Gone {
		c.unprobe(x.Locator)
		return
	}
	if c.naming != nil {
		c.naming.probes[x.Locator] = true
	}
	c.hosts.Probe(x.Locator, x.Port)
	c.path.probes.Add(x.Locator, x.Port, rand.Uint64())
	if port := c.cfg.port(x.Port); port < 0 || !c.path.up[port] {
		if changes := c.path.probes.Carrier(x.Port, false); changes != nil {
			c.path.mail.put(event{hosts: changes})
		}
	}
}

func (c *control) unprobe(l sid.Locator) {
	c.hosts.Unprobe(l)
	c.path.probes.Remove(l)
}

// commit ends a snapshot: what it did not name goes.
func (c *control) commit() error {
	n := c.naming
	if n == nil {
		return errCommit
	}
	c.naming = nil
	c.do(func() {
		for l := range c.hosts.All() {
			if !n.probes[l] {
				c.unprobe(l)
			}
		}
		for prefix := range c.routes {
			if !n.routes[prefix] {
				c.path.ways.Delete(prefix)
				delete(c.routes, prefix)
			}
		}
		c.path.answers.Commit()
	})
	return errors.Join(n.errs...)
}
