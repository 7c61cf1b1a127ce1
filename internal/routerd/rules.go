package routerd

import (
	"errors"

	"scaffold.dev/scaffold/internal/agent"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A naming is what a snapshot has named so far; what it has not at its commit is removed.
type naming struct {
	routes    map[routeKey]bool
	services  map[sid.ServiceID]bool
	triples   map[sid.Triple]bool
	probes    map[sid.Locator]bool
	redirects map[sid.Locator]bool
	gone      map[sid.Locator]bool
	errs      []error // the first of the snapshot's
}

func newNaming() *naming {
	return &naming{routes: map[routeKey]bool{}, services: map[sid.ServiceID]bool{}, triples: map[sid.Triple]bool{},
		probes: map[sid.Locator]bool{}, redirects: map[sid.Locator]bool{}, gone: map[sid.Locator]bool{}}
}

// order obeys one order of the stream.
func (d *daemon) order(o *apiv1.RouterOrder) {
	switch o := o.Order.(type) {
	case *apiv1.RouterOrder_Begin:
		d.naming = newNaming()
	case *apiv1.RouterOrder_Rules:
		err := d.apply(o.Rules)
		if d.naming != nil {
			d.naming.errs = append(d.naming.errs, err)
			return
		}
		d.applied(o.Rules.Generation, err)
	case *apiv1.RouterOrder_Tunnels:
		d.tunnels.ordered(o.Tunnels)
	case *apiv1.RouterOrder_Commit:
		d.applied(o.Commit.Generation, d.commit())
	}
}

// applied reports the rules as obeyed, with what went wrong. The rest of them holds all the same.
func (d *daemon) applied(generation uint64, err error) {
	d.generation = generation
	if d.resolver != nil {
		err = errors.Join(err, d.resolver.Commit(generation))
	}
	a := &apiv1.Applied{Generation: generation}
	if err != nil {
		a.Error = err.Error()
		d.log.Error("rules not wholly applied", "generation", generation, "error", err)
	}
	if d.session != nil {
		d.session.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: a}})
	}
}

// apply makes before it breaks: ways first, then who is reached by them, then what goes away.
func (d *daemon) apply(m *apiv1.Rules) error {
	r, err := agent.Decode(m)
	errs := []error{err}
	each(r.Routes, &errs, func(x plan.Route) error { return d.applyRoute(x, false) })
	each(r.Redirects, &errs, d.applyRedirect)
	each(r.Gone, &errs, d.applyGone)
	each(r.Resolutions, &errs, d.applyResolution)
	each(r.Services, &errs, d.applyService)
	each(r.Probes, &errs, d.applyProbe)
	each(r.Routes, &errs, func(x plan.Route) error { return d.applyRoute(x, true) })
	return errors.Join(errs...)
}

// maxErrors bounds what one report can say.
const maxErrors = 8

func each[T any](list []T, errs *[]error, f func(T) error) {
	for _, x := range list {
		if err := f(x); err != nil && len(*errs) < maxErrors {
			*errs = append(*errs, err)
		}
	}
}

func (d *daemon) applyRoute(x plan.Route, gone bool) error {
	if x.Gone != gone {
		return nil
	}
	key := routeKey{prefix: x.Prefix}
	if gone {
		return d.routes.remove(key)
	}
	value := route{port: x.Port, via: x.Via}
	if x.MAC != [6]byte{} {
		value.mac = string(x.MAC[:])
	}
	if d.naming != nil {
		d.naming.routes[key] = true
	}
	return d.routes.set(key, value)
}

func (d *daemon) applyService(x plan.ServiceRule) error {
	if d.resolver == nil {
		return nil
	}
	if x.Gone {
		return d.resolver.RemoveService(x.Service)
	}
	if d.naming != nil {
		d.naming.services[x.Service] = true
	}
	return d.resolver.SetService(x.Service, router.Service{Instances: x.Instances, Forbidden: x.Forbidden})
}

func (d *daemon) applyResolution(x plan.Resolution) error {
	if d.resolver == nil {
		return nil
	}
	targets := make([]resolve.Target, len(x.Targets))
	for i, y := range x.Targets {
		targets[i] = resolve.Target(y)
	}
	if d.naming != nil {
		d.naming.triples[x.Triple] = true
	}
	return d.resolver.SetTable(x.Triple, targets)
}

func (d *daemon) applyProbe(x plan.Probe) error {
	if x.Gone {
		d.unprobe(x.Locator)
		return nil
	}
	if d.naming != nil {
		d.naming.probes[x.Locator] = true
	}
	d.probe(x.Locator, x.Port)
	return nil
}

func (d *daemon) applyRedirect(x plan.Redirect) error {
	if d.resolver == nil {
		return nil
	}
	if x.Gone {
		return d.resolver.RemoveRedirect(x.From)
	}
	if d.naming != nil {
		d.naming.redirects[x.From] = true
	}
	return d.resolver.SetRedirect(x.From, x.To)
}

func (d *daemon) applyGone(x plan.Gone) error {
	if d.resolver == nil {
		return nil
	}
	if d.naming != nil && !x.Back {
		d.naming.gone[x.Locator] = true
	}
	return d.resolver.SetGone(x.Locator, !x.Back)
}

// commit ends a snapshot: what it did not name goes.
func (d *daemon) commit() error {
	n := d.naming
	if n == nil {
		return errors.New("a commit without a snapshot")
	}
	d.naming = nil
	errs := n.errs
	for l := range d.hosts.All() {
		if !n.probes[l] {
			d.unprobe(l)
		}
	}
	errs = append(errs, d.commitResolver(n), d.commitRoutes(n))
	return errors.Join(errs...)
}

func (d *daemon) commitResolver(n *naming) error {
	if d.resolver == nil {
		return nil
	}
	var errs []error
	for t := range d.resolver.Triples() {
		if !n.triples[t] {
			errs = append(errs, d.resolver.SetTable(t, nil))
		}
	}
	for id := range d.resolver.Services() {
		if !n.services[id] {
			errs = append(errs, d.resolver.RemoveService(id))
		}
	}
	for l := range d.resolver.Redirects() {
		if !n.redirects[l] {
			errs = append(errs, d.resolver.RemoveRedirect(l))
		}
	}
	for l := range d.resolver.Gone() {
		if !n.gone[l] {
			errs = append(errs, d.resolver.SetGone(l, false))
		}
	}
	return errors.Join(errs...)
}

// commitRoutes leaves the routes that the daemon made for itself: guards and pinned far ends.
func (d *daemon) commitRoutes(n *naming) error {
	for key := range d.routes.want {
		if !n.routes[key] && !key.guard {
			delete(d.routes.want, key)
		}
	}
	d.pinLinks()
	return d.routes.sweep()
}
