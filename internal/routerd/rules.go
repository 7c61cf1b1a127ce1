package routerd

import (
	"errors"
	"fmt"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/router"
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
		d.session.send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: a}})
	}
}

// apply makes before it breaks: ways first, then who is reached by them, then what goes away.
func (d *daemon) apply(r *apiv1.Rules) error {
	var errs []error
	each(r.Routes, &errs, func(x *apiv1.Route) error { return d.applyRoute(x, false) })
	each(r.Redirects, &errs, d.applyRedirect)
	each(r.Gone, &errs, d.applyGone)
	each(r.Resolutions, &errs, d.applyResolution)
	each(r.Services, &errs, d.applyService)
	each(r.Probes, &errs, d.applyProbe)
	each(r.Routes, &errs, func(x *apiv1.Route) error { return d.applyRoute(x, true) })
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

func (d *daemon) applyRoute(x *apiv1.Route, gone bool) error {
	if x.Gone != gone {
		return nil
	}
	prefix, err := netip.ParsePrefix(x.Prefix)
	if err != nil || !prefix.Addr().Is6() || len(x.Mac) != 0 && len(x.Mac) != 6 {
		return fmt.Errorf("route %v: want an IPv6 prefix and a MAC address of 6 bytes or none", x)
	}
	key := routeKey{prefix: prefix.Masked()}
	if gone {
		return d.routes.remove(key)
	}
	value := route{port: x.Port, mac: string(x.Mac)}
	if x.Via != "" {
		via, err := netip.ParseAddr(x.Via)
		if err != nil || !via.Is6() {
			return fmt.Errorf("route %v: via is no IPv6 address", x)
		}
		value.via = via.WithZone("")
	}
	if d.naming != nil {
		d.naming.routes[key] = true
	}
	return d.routes.set(key, value)
}

func (d *daemon) applyService(x *apiv1.ServiceRule) error {
	id := sid.ServiceID{SS: x.Ss, Suffix: sid.Suffix(x.Suffix)}
	if d.resolver == nil {
		return nil
	}
	if x.Gone {
		return d.resolver.RemoveService(id)
	}
	if d.naming != nil {
		d.naming.services[id] = true
	}
	return d.resolver.SetService(id, router.Service{Instances: x.Instances, Forbidden: x.Forbidden})
}

func (d *daemon) applyResolution(x *apiv1.Resolution) error {
	if d.resolver == nil {
		return nil
	}
	if x.Proto > 255 || x.Port > 65535 {
		return fmt.Errorf("resolution %v: protocol or port out of range", x)
	}
	t := sid.Triple{Service: sid.ServiceID{SS: x.Ss, Suffix: sid.Suffix(x.Suffix)}, Proto: sid.Proto(x.Proto), Port: uint16(x.Port)}
	targets := make([]resolve.Target, len(x.Targets))
	for i, y := range x.Targets {
		targets[i] = resolve.Target{Locator: sid.Locator(y.Locator), Weight: y.Weight}
	}
	if d.naming != nil {
		d.naming.triples[t] = true
	}
	return d.resolver.SetTable(t, targets)
}

func (d *daemon) applyProbe(x *apiv1.Probe) error {
	l := sid.Locator(x.Locator)
	if x.Gone {
		d.unprobe(l)
		return nil
	}
	if d.naming != nil {
		d.naming.probes[l] = true
	}
	d.probe(l, x.Port)
	return nil
}

func (d *daemon) applyRedirect(x *apiv1.Redirect) error {
	from := sid.Locator(x.From)
	if d.resolver == nil {
		return nil
	}
	if x.Gone {
		return d.resolver.RemoveRedirect(from)
	}
	if d.naming != nil {
		d.naming.redirects[from] = true
	}
	return d.resolver.SetRedirect(from, sid.Locator(x.To))
}

func (d *daemon) applyGone(x *apiv1.Gone) error {
	l := sid.Locator(x.Locator)
	if d.resolver == nil {
		return nil
	}
	if d.naming != nil && !x.Back {
		d.naming.gone[l] = true
	}
	return d.resolver.SetGone(l, !x.Back)
}

// commit ends a snapshot: what it did not name goes.
func (d *daemon) commit() error {
	n := d.naming
	if n == nil {
		return errors.New("a commit without a snapshot")
	}
	d.naming = nil
	errs := n.errs
	for l := range d.probing {
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
