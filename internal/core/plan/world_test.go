package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// A world is the state that a plan is told, kept beside it in the plainest form, so that a second
// plan can be told the same in another order.
type world struct {
	routers   map[string]Router
	links     map[string][]Link
	hosts     map[sid.Locator]Host // every place of every host
	prefers   map[string]sid.Locator
	redirects map[sid.Locator]sid.Locator
	left      map[sid.Locator]bool
	services  map[sid.ServiceID]names.Record
	overrides map[override]Override
	regs      map[reg]Readiness
}

type override struct {
	service sid.ServiceID
	host    string
}

type reg struct {
	host   string
	triple sid.Triple
}

func newWorld() *world {
	return &world{
		routers: map[string]Router{}, links: map[string][]Link{}, hosts: map[sid.Locator]Host{},
		prefers: map[string]sid.Locator{}, redirects: map[sid.Locator]sid.Locator{}, left: map[sid.Locator]bool{},
		services: map[sid.ServiceID]names.Record{}, overrides: map[override]Override{}, regs: map[reg]Readiness{},
	}
}

// scratch builds a plan of the world in random order, as far as order is free: a registration
// needs its service and its host.
func (w *world) scratch(r *rand.Rand) *Plan {
	p := New(sid.DefaultSpace())
	var first, then []func()
	for _, x := range w.routers {
		first = append(first, func() { p.SetRouter(x) })
	}
	for _, h := range w.hosts {
		first = append(first, func() { p.SetHost(h) })
	}
	for _, r := range w.services {
		first = append(first, func() { p.SetService(r) })
	}
	for name, links := range w.links {
		then = append(then, func() { p.SetLinks(name, links) })
	}
	for _, l := range w.prefers {
		then = append(then, func() { p.Prefer(l) })
	}
	for from, to := range w.redirects {
		first = append(first, func() { p.SetRedirect(from, to) })
	}
	for l := range w.left {
		first = append(first, func() { p.SetLeft(l, true) })
	}
	for k, o := range w.overrides {
		then = append(then, func() { p.SetOverride(k.service, k.host, o) })
	}
	for k, ready := range w.regs {
		then = append(then, func() { must(p.Register(k.host, k.triple, ready)) })
	}
	for _, list := range [][]func(){first, then} {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, f := range list {
			f()
		}
	}
	p.Drain()
	return p
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A mirror is a router's tables as somebody builds them who applies steps.
type mirror struct {
	routes      map[netip.Prefix]Route
	services    map[sid.ServiceID]ServiceRule
	resolutions map[sid.Triple][]resolve.Target
	probes      map[sid.Locator]Probe
	redirects   map[sid.Locator]Redirect
	gone        map[sid.Locator]Gone
}

func newMirror() *mirror {
	return &mirror{map[netip.Prefix]Route{}, map[sid.ServiceID]ServiceRule{}, map[sid.Triple][]resolve.Target{}, map[sid.Locator]Probe{}, map[sid.Locator]Redirect{}, map[sid.Locator]Gone{}}
}

func (m *mirror) apply(r Rules) {
	for _, x := range r.Routes {
		put(m.routes, x.Prefix, x, x.Gone)
	}
	for _, x := range r.Services {
		put(m.services, x.Service, x, x.Gone)
	}
	for _, x := range r.Resolutions {
		put(m.resolutions, x.Triple, x.Targets, len(x.Targets) == 0)
	}
	for _, x := range r.Probes {
		put(m.probes, x.Locator, x, x.Gone)
	}
	for _, x := range r.Redirects {
		put(m.redirects, x.From, x, x.Gone)
	}
	for _, x := range r.Gone {
		put(m.gone, x.Locator, x, x.Back)
	}
}

func put[K comparable, V any](m map[K]V, k K, v V, gone bool) {
	m[k] = v
	if gone {
		delete(m, k)
	}
}

func (m *mirror) String() string {
	var out string
	for _, p := range slices.SortedFunc(maps.Keys(m.routes), func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) }) {
		out += fmt.Sprintln("route", m.routes[p])
	}
	for _, id := range slices.SortedFunc(maps.Keys(m.services), compareIDs) {
		out += fmt.Sprintln("service", m.services[id])
	}
	for _, t := range slices.SortedFunc(maps.Keys(m.resolutions), func(a, b sid.Triple) int {
		return compareStrings(a.String(), b.String())
	}) {
		out += fmt.Sprintln("resolution", t, m.resolutions[t])
	}
	for _, l := range slices.Sorted(maps.Keys(m.probes)) {
		out += fmt.Sprintln("probe", m.probes[l])
	}
	for _, l := range slices.Sorted(maps.Keys(m.redirects)) {
		out += fmt.Sprintln("redirect", m.redirects[l])
	}
	for _, l := range slices.Sorted(maps.Keys(m.gone)) {
		out += fmt.Sprintln("gone", l)
	}
	return out
}

func compareStrings(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// snapshot is what p would tell the router, in the same form.
func snapshot(p *Plan, router string) *mirror {
	m := newMirror()
	m.apply(p.Snapshot(router))
	return m
}
