package routerd

import (
	"errors"
	"maps"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/core/plan"
)

// order obeys an order of the stream that brings no rules.
func (d *daemon) order(o *apiv1.RouterOrder) {
	switch o := o.Order.(type) {
	case *apiv1.RouterOrder_Begin:
		d.naming.Begin()
		d.refused = nil
	case *apiv1.RouterOrder_Routers:
		d.listed(o.Routers)
	case *apiv1.RouterOrder_Tunnels:
		d.tunnels.ordered(o.Tunnels)
	case *apiv1.RouterOrder_Commit:
		d.filter = o.Commit.Filter
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

// apply makes before it breaks: ways first, then who is reached by them, then what goes away. A piece of a snapshot is reported
// with the snapshot's end.
func (d *daemon) apply(generation uint64, r plan.Rules, unread error) {
	errs := []error{unread}
	d.naming.Note(r)
	each(r.Sources, &errs, func(x plan.Source) error { return d.applySource(x, false) })
	each(r.Routes, &errs, func(x plan.Route) error { return d.applyRoute(x, false) })
	if d.resolver != nil {
		each(r.Redirects, &errs, d.applyRedirect)
		each(r.Gone, &errs, d.applyGone)
		each(r.Resolutions, &errs, func(x plan.Resolution) error { return d.resolver.SetTable(x.Triple, x.Targets) })
		each(r.Services, &errs, d.applyService)
	}
	each(r.Probes, &errs, d.applyProbe)
	each(r.Routes, &errs, func(x plan.Route) error { return d.applyRoute(x, true) })
	each(r.Sources, &errs, func(x plan.Source) error { return d.applySource(x, true) })
	err := errors.Join(errs...)
	switch {
	case !d.naming.Under():
		d.applied(generation, err)
	case err != nil:
		d.refused = append(d.refused, err)
	}
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
	return d.routes.set(key, value)
}

func (d *daemon) applyService(x plan.ServiceRule) error {
	if x.Gone {
		return d.resolver.RemoveService(x.Service)
	}
	return d.resolver.SetService(x.Service, router.Service{Instances: x.Instances, Forbidden: x.Forbidden})
}

func (d *daemon) applyProbe(x plan.Probe) error {
	if x.Gone {
		d.unprobe(x.Locator)
		return nil
	}
	d.probe(x.Locator, x.Port)
	return nil
}

func (d *daemon) applyRedirect(x plan.Redirect) error {
	if x.Gone {
		return d.resolver.RemoveRedirect(x.From)
	}
	return d.resolver.SetRedirect(x.From, x.To)
}

func (d *daemon) applyGone(x plan.Gone) error {
	return d.resolver.SetGone(x.Locator, !x.Back)
}

// commit ends a snapshot: what it did not name goes.
func (d *daemon) commit() error {
	if !d.naming.Under() {
		return errors.New("a commit without a snapshot")
	}
	rest, errs := d.naming.Commit(d.held()), d.refused
	d.refused = nil
	each(rest.Probes, &errs, d.applyProbe)
	if d.resolver != nil {
		each(rest.Resolutions, &errs, func(x plan.Resolution) error { return d.resolver.SetTable(x.Triple, x.Targets) })
		each(rest.Services, &errs, d.applyService)
		each(rest.Redirects, &errs, d.applyRedirect)
		each(rest.Gone, &errs, d.applyGone)
	}
	each(rest.Sources, &errs, func(x plan.Source) error { return d.applySource(x, true) })
	d.complete = true
	for _, x := range rest.Routes { // the kernel's go with all others that nobody wants
		delete(d.routes.want, routeKey{prefix: x.Prefix})
	}
	errs = append(errs, d.letIn())
	d.pinLinks()
	return errors.Join(append(errs, d.routes.sweep())...)
}

// held is what the daemon and the kernel have of the controller's rules. Routes that the daemon made for itself, unreachable
// ones and pinned far ends, are not of them.
func (d *daemon) held() plan.Held {
	h := plan.Held{Routes: d.routes.ordered(), Probes: d.hosts.Locators(), Sources: maps.Keys(d.sources)}
	if r := d.resolver; r != nil {
		h.Triples, h.Services, h.Redirects, h.Gone = r.Triples(), r.Services(), r.Redirects(), r.Gone()
	}
	return h
}
