package oftables

import (
	"maps"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// A world is what tables were told, in the plainest form.
type world struct {
	o           Options
	own         sid.Locator
	resolves    bool
	ports       map[string]ofp.Port
	neighbours  map[neighbour]ofp.MAC
	routes      map[netip.Prefix]plan.Route
	services    map[sid.ServiceID]plan.ServiceRule
	resolutions map[sid.Triple][]resolve.Target
	redirects   map[sid.Locator]sid.Locator
	gone        map[sid.Locator]bool
	owns        map[uint16][]Flow
}

func newWorld(o Options) *world {
	return &world{o: o, ports: map[string]ofp.Port{}, neighbours: map[neighbour]ofp.MAC{}, routes: map[netip.Prefix]plan.Route{},
		services: map[sid.ServiceID]plan.ServiceRule{}, resolutions: map[sid.Triple][]resolve.Target{},
		redirects: map[sid.Locator]sid.Locator{}, gone: map[sid.Locator]bool{}, owns: map[uint16][]Flow{}}
}

// rules are all of it as a snapshot.
func (w *world) rules() (r plan.Rules) {
	for _, x := range w.routes {
		r.Routes = append(r.Routes, x)
	}
	for _, x := range w.services {
		r.Services = append(r.Services, x)
	}
	for t, x := range w.resolutions {
		r.Resolutions = append(r.Resolutions, plan.Resolution{Triple: t, Targets: x})
	}
	for from, to := range w.redirects {
		r.Redirects = append(r.Redirects, plan.Redirect{From: from, To: to})
	}
	for l := range w.gone {
		r.Gone = append(r.Gone, plan.Gone{Locator: l})
	}
	return r
}

// scratch is tables that are told all of it anew.
func (w *world) scratch() *Tables {
	t := New(space, w.o)
	t.Apply(w.rules())
	for of, flows := range w.owns {
		t.Own(of, flows)
	}
	for n, mac := range w.neighbours {
		t.SetNeighbour(n.port, n.via, mac)
	}
	t.SetRouter(w.own, w.resolves)
	for name, number := range w.ports {
		t.SetPort(name, number)
	}
	return t
}

// apply is what rules mean.
func (w *world) apply(r plan.Rules) {
	for _, x := range r.Routes {
		if w.routes[x.Prefix] = x; x.Gone {
			delete(w.routes, x.Prefix)
		}
	}
	for _, x := range r.Services {
		if w.services[x.Service] = x; x.Gone {
			delete(w.services, x.Service)
		}
	}
	for _, x := range r.Resolutions {
		if w.resolutions[x.Triple] = x.Targets; len(x.Targets) == 0 {
			delete(w.resolutions, x.Triple)
		}
	}
	for _, x := range r.Redirects {
		if w.redirects[x.From] = x.To; x.Gone {
			delete(w.redirects, x.From)
		}
	}
	for _, x := range r.Gone {
		if w.gone[x.Locator] = true; x.Back {
			delete(w.gone, x.Locator)
		}
	}
}

// oracle says what may become of a packet, as internal/bpf/router has it; of several outcomes a switch chooses one by weight.
func (w *world) oracle(in ofp.Port, f frame) []outcome {
	punt := func(id uint32) []outcome { return []outcome{{punted: true, id: id}} }
	l := sid.LocatorOf(f.dst)
	inServices, inAS := space.Services.Contains(f.dst), space.AS.Contains(f.dst)
	switch _, moved := w.redirects[l]; {
	case w.own == 0 || f.to != w.o.MAC || !inServices && !inAS:
		return nil
	case ownBlock(w.own).Contains(f.dst) && f.proto == sid.UDP && f.dport == sid.Port && f.fragment == 0:
		return punt(PuntOwn)
	case ownBlock(w.own).Contains(f.dst):
		return punt(PuntAddressed)
	case f.hopLimit <= 1 && w.o.Extensions:
		return punt(PuntHopLimit)
	case moved && w.o.Version < ofp.V15:
		return punt(PuntRedirected)
	case moved:
		f.dst = w.redirects[l].Addr(sid.Low(f.dst))
		return w.forward(in, f)
	case w.gone[l]:
		return punt(PuntGone)
	case !w.resolves:
		return w.forward(in, f)
	case inServices || l == space.Locator(0) && !sid.SocketID(sid.Low(f.dst)).Valid():
		return w.resolve(in, f)
	}
	return w.forward(in, f)
}

func (w *world) resolve(in ofp.Port, f frame) (all []outcome) {
	retry := f.label & sid.MaxRetry
	if retry > 1 {
		return []outcome{{punted: true, id: PuntRetry}}
	}
	if f.proto == sid.ICMPv6 && f.fragment == 0 && f.dport != icmpEcho {
		return nil
	}
	targets := w.targets(f)
	if retry == 1 && len(targets) == 1 {
		return []outcome{{punted: true, id: PuntRetry}}
	}
	for _, x := range targets {
		if retry == 1 && uint16(x.Locator) == sid.Label(f.label).Refuser() {
			continue
		}
		g := f
		g.dst = x.Locator.Addr(sid.Low(f.dst))
		all = append(all, w.forward(in, g)...)
	}
	if len(all) == 0 {
		return []outcome{{punted: true, id: PuntFirst}}
	}
	return all
}

func (w *world) targets(f frame) []resolve.Target {
	named := map[sid.ServiceID]bool{}
	known := slices.Collect(maps.Keys(w.services))
	for triple := range w.resolutions {
		known = append(known, triple.Service)
	}
	for _, id := range known {
		if uint64(id.Suffix) == sid.Low(f.dst) && (space.ServiceAddr(id) == f.dst || !space.Services.Contains(f.dst)) {
			named[id] = true
		}
	}
	if len(named) != 1 { // without the ssID nobody can tell
		return nil
	}
	id := slices.Collect(maps.Keys(named))[0]
	s := w.services[id]
	if s.Forbidden || s.Instances == 0 {
		return nil
	}
	key := sid.Triple{Service: id, Proto: f.proto, Port: f.dport}
	switch {
	case f.fragment != 0:
		key.Proto, key.Port = sid.UDP, 0
		if len(w.resolutions[key]) == 0 {
			key.Proto = 0
		}
	case f.proto == sid.ICMPv6:
		key.Proto, key.Port = 0, 0
	}
	return w.resolutions[key]
}

func (w *world) forward(in ofp.Port, f frame) []outcome {
	best, found := plan.Route{}, false
	var to ofp.MAC
	for p, r := range w.routes {
		mac := ofp.MAC(r.MAC)
		if mac == (ofp.MAC{}) {
			mac = w.neighbours[neighbour{r.Port, r.Via}]
		}
		_, there := w.ports[r.Port]
		if p.Contains(f.dst) && there && mac != (ofp.MAC{}) && (!found || p.Bits() > best.Prefix.Bits()) {
			best, to, found = r, mac, true
		}
	}
	switch {
	case !found:
		return []outcome{{punted: true, id: PuntNoRoute}}
	case f.hopLimit <= 1:
		return []outcome{{expire: true}}
	}
	f.from, f.to, f.hopLimit = w.o.MAC, to, f.hopLimit-1
	return []outcome{{port: w.ports[best.Port], frame: f}}
}
