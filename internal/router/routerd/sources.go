package routerd

import (
	"errors"

	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/plan"
)

// At a port of hosts packets come in that are from the locators of these hosts, docs/protocol.md §5.4. The controller says
// which; at which ports routers are, whose packets may be from anywhere, the router itself knows first.

func (d *daemon) applySource(x plan.Source, gone bool) error {
	if d.resolver == nil || x.Gone != gone {
		return nil
	}
	s := plan.Source{Port: x.Port, Locator: x.Locator}
	if gone {
		delete(d.sources, s)
	} else {
		d.sources[s] = true
	}
	p := d.portNamed(x.Port)
	if p == nil {
		return nil // letIn does it, when the port is there
	}
	return d.resolver.SetSource(router.Source{Ifindex: p.ifindex, Locator: x.Locator}, !gone)
}

// letIn puts into the kernel who may send at which port. Nobody is shut out before all neighbours had the time to prove
// themselves, unless an earlier process, which knew them, has done so already. What an earlier process has let in stays until the first rules of
// this one are complete, and a port that led to a router until all neighbours had the time to prove themselves.
func (d *daemon) letIn() error {
	if d.resolver == nil {
		return nil
	}
	want := map[router.Source]bool{}
	for _, p := range d.ports {
		if d.neighbours.Leads(p.name) {
			want[router.Source{Ifindex: p.ifindex}] = true
		}
	}
	for s := range d.sources {
		if p := d.portNamed(s.Port); p != nil {
			want[router.Source{Ifindex: p.ifindex, Locator: s.Locator}] = true
		}
	}
	var errs []error
	for s := range want {
		errs = append(errs, d.resolver.SetSource(s, true))
	}
	if d.complete {
		d.settled = d.settled || d.neighbours.Settled()
		errs = append(errs, d.resolver.Filter(d.filter && d.settled))
	}
	for s := range d.resolver.Sources() {
		if !want[s] && d.complete && (s.Locator != 0 || d.neighbours.Settled()) {
			errs = append(errs, d.resolver.SetSource(s, false))
		}
	}
	return errors.Join(errs...)
}

// portsChanged follows ports and neighbours that came or went.
func (d *daemon) portsChanged() {
	if err := d.letIn(); err != nil {
		d.log.Error("packets of some hosts or routers may be dropped at their port", "error", err)
	}
}
