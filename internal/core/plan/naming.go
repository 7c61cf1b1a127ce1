package plan

import (
	"iter"
	"net/netip"

	"scaffold.dev/scaffold/internal/core/replica"
	"scaffold.dev/scaffold/sid"
)

// A Naming is what a router has been named of a snapshot so far, whatever holds its rules: the kernel, a switch, an
// emulated router. The zero value is outside of a snapshot.
type Naming struct {
	routes    replica.Naming[netip.Prefix]
	services  replica.Naming[sid.ServiceID]
	triples   replica.Naming[sid.Triple]
	probes    replica.Naming[sid.Locator]
	redirects replica.Naming[sid.Locator]
	gone      replica.Naming[sid.Locator]
	sources   replica.Naming[Source]
}

// Held is what there is, by key; nil where there is nothing of a kind, or where it is somebody else's.
type Held struct {
	Routes    iter.Seq[netip.Prefix]
	Services  iter.Seq[sid.ServiceID]
	Triples   iter.Seq[sid.Triple]
	Probes    iter.Seq[sid.Locator]
	Redirects iter.Seq[sid.Locator]
	Gone      iter.Seq[sid.Locator]
	Sources   iter.Seq[Source]
}

// Begin begins a snapshot, and forgets one that has not ended.
func (n *Naming) Begin() {
	n.routes.Begin()
	n.services.Begin()
	n.triples.Begin()
	n.probes.Begin()
	n.redirects.Begin()
	n.gone.Begin()
	n.sources.Begin()
}

// Drop forgets the snapshot that is under way, with the session that told it.
func (n *Naming) Drop() { *n = Naming{} }

// Under reports whether a snapshot is under way.
func (n *Naming) Under() bool { return n.routes.Under() }

// Note takes note of a piece of a snapshot. What it says is gone is not named.
func (n *Naming) Note(r Rules) {
	for _, x := range r.Routes {
		name(&n.routes, x.Prefix.Masked(), x.Gone)
	}
	for _, x := range r.Services {
		name(&n.services, x.Service, x.Gone)
	}
	for _, x := range r.Resolutions {
		n.triples.Name(x.Triple)
	}
	for _, x := range r.Probes {
		name(&n.probes, x.Locator, x.Gone)
	}
	for _, x := range r.Redirects {
		name(&n.redirects, x.From, x.Gone)
	}
	for _, x := range r.Gone {
		name(&n.gone, x.Locator, x.Back)
	}
	for _, x := range r.Sources {
		name(&n.sources, Source{Port: x.Port, Locator: x.Locator}, x.Gone)
	}
}

func name[K comparable](n *replica.Naming[K], k K, gone bool) {
	if !gone {
		n.Name(k)
	}
}

// Commit ends a snapshot. It returns rules that take away what is held and was not named: to be applied as a change.
func (n *Naming) Commit(held Held) (rest Rules) {
	for _, p := range n.routes.Commit(held.Routes) {
		rest.Routes = append(rest.Routes, Route{Prefix: p, Gone: true})
	}
	for _, id := range n.services.Commit(held.Services) {
		rest.Services = append(rest.Services, ServiceRule{Service: id, Gone: true})
	}
	for _, t := range n.triples.Commit(held.Triples) {
		rest.Resolutions = append(rest.Resolutions, Resolution{Triple: t})
	}
	for _, l := range n.probes.Commit(held.Probes) {
		rest.Probes = append(rest.Probes, Probe{Locator: l, Gone: true})
	}
	for _, l := range n.redirects.Commit(held.Redirects) {
		rest.Redirects = append(rest.Redirects, Redirect{From: l, Gone: true})
	}
	for _, l := range n.gone.Commit(held.Gone) {
		rest.Gone = append(rest.Gone, Gone{Locator: l, Back: true})
	}
	for _, s := range n.sources.Commit(held.Sources) {
		rest.Sources = append(rest.Sources, Source{Port: s.Port, Locator: s.Locator, Gone: true})
	}
	return rest
}
