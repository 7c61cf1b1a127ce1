package plan

import (
	"fmt"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// A Plan holds the state and the rules that follow from it.
type Plan struct {
	space     sid.Space
	routers   map[string]*router
	hosts     map[sid.Locator]*host
	services  map[sid.ServiceID]*service
	redirects map[sid.Locator]sid.Locator
	dirty     dirt
}

type router struct {
	Router
	links []Link
	hosts map[sid.Locator]struct{}
	said  tables
}

type host struct {
	Host
	triples map[sid.Triple]struct{}
}

// dirt is what Drain has to look at again.
type dirt struct {
	topology bool                       // all routers' ways
	routers  map[string]struct{}        // their own hosts, probes and redirects
	services map[sid.ServiceID]struct{} // services with dirty ports
	removed  map[sid.ServiceID]*service // services that are no more
}

// New returns the plan of an empty network.
func New(space sid.Space) *Plan {
	p := &Plan{
		space:     space,
		routers:   make(map[string]*router),
		hosts:     make(map[sid.Locator]*host),
		services:  make(map[sid.ServiceID]*service),
		redirects: make(map[sid.Locator]sid.Locator),
	}
	p.clean()
	return p
}

func (p *Plan) clean() {
	p.dirty = dirt{
		routers:  make(map[string]struct{}),
		services: make(map[sid.ServiceID]struct{}),
		removed:  make(map[sid.ServiceID]*service),
	}
}

// SetRouter adds a router or changes it. One that becomes a service router gets everything by the
// next Snapshot: its deltas begin with it.
func (p *Plan) SetRouter(r Router) {
	have, ok := p.routers[r.Name]
	if !ok {
		have = &router{hosts: make(map[sid.Locator]struct{}), said: newTables()}
		p.routers[r.Name] = have
		p.adopt(r.Name, have)
	} else if have.Router == r {
		return
	}
	have.Router = r
	p.dirty.topology = true
	p.dirty.routers[r.Name] = struct{}{}
}

// adopt finds the hosts that were told before their router.
func (p *Plan) adopt(name string, r *router) {
	for l, h := range p.hosts {
		if h.Router == name {
			r.hosts[l] = struct{}{}
		}
	}
}

// RemoveRouter forgets a router; nothing more is said to it.
func (p *Plan) RemoveRouter(name string) {
	if _, ok := p.routers[name]; ok {
		delete(p.routers, name)
		delete(p.dirty.routers, name)
		p.dirty.topology = true
	}
}

// SetLinks replaces what a router reports of its links.
func (p *Plan) SetLinks(name string, links []Link) {
	r, ok := p.routers[name]
	if !ok || slices.Equal(r.links, links) {
		return
	}
	r.links = slices.Clone(links)
	p.dirty.topology = true
}

// SetHost adds a host or changes where it is attached or how it does.
func (p *Plan) SetHost(h Host) {
	have, ok := p.hosts[h.Locator]
	if !ok {
		have = &host{triples: make(map[sid.Triple]struct{})}
		p.hosts[h.Locator] = have
	} else if have.Host == h {
		return
	} else {
		p.detach(have)
	}
	have.Host = h
	if r, ok := p.routers[h.Router]; ok {
		r.hosts[h.Locator] = struct{}{}
		p.dirty.routers[h.Router] = struct{}{}
	}
	p.touchHost(have)
}

// RemoveHost withdraws all that the host registered and the way to it.
func (p *Plan) RemoveHost(l sid.Locator) {
	h, ok := p.hosts[l]
	if !ok {
		return
	}
	p.detach(h)
	for t := range h.triples {
		p.Withdraw(l, t)
	}
	delete(p.hosts, l)
}

func (p *Plan) detach(h *host) {
	if r, ok := p.routers[h.Router]; ok {
		delete(r.hosts, h.Locator)
		p.dirty.routers[h.Router] = struct{}{}
	}
}

// SetHostState records what the probes say; false where no such host is.
func (p *Plan) SetHostState(l sid.Locator, s HostState) bool {
	h, ok := p.hosts[l]
	if ok && h.State != s {
		h.State = s
		p.touchHost(h)
	}
	return ok
}

func (p *Plan) touchHost(h *host) {
	for t := range h.triples {
		s := p.services[t.Service]
		s.touch(port{t.Proto, t.Port})
		p.dirty.services[t.Service] = struct{}{}
	}
}

// SetService adds a service or changes its policy.
func (p *Plan) SetService(id sid.ServiceID, policy Policy) {
	s, ok := p.services[id]
	if !ok {
		s = newService(id)
		if old, was := p.dirty.removed[id]; was { // removed and back within one Drain
			s.said, s.isSaid = old.said, old.isSaid
			s.inherit(old)
			delete(p.dirty.removed, id)
		}
		p.services[id] = s
	} else if s.policy == policy {
		return
	}
	s.policy = policy
	s.touchAll()
	p.dirty.services[id] = struct{}{}
}

// RemoveService removes a service and withdraws its instances.
func (p *Plan) RemoveService(id sid.ServiceID) {
	s, ok := p.services[id]
	if !ok {
		return
	}
	for q, t := range s.ports {
		for l := range t.instances {
			delete(p.hosts[l].triples, s.triple(q))
		}
	}
	delete(p.services, id)
	delete(p.dirty.services, id)
	p.dirty.removed[id] = s
}

// SetOverride records an operator's word about a host of a service. The zero Override takes it back.
func (p *Plan) SetOverride(id sid.ServiceID, hostName string, o Override) {
	s, ok := p.services[id]
	if !ok || s.overrides[hostName] == o {
		return
	}
	s.overrides[hostName] = o
	if o == (Override{}) {
		delete(s.overrides, hostName)
	}
	s.touchAll()
	p.dirty.services[id] = struct{}{}
}

// Register records an instance. An error means that there is no such service or host.
func (p *Plan) Register(l sid.Locator, t sid.Triple, r Readiness) error {
	s, ok := p.services[t.Service]
	h, known := p.hosts[l]
	switch q := (port{t.Proto, t.Port}); {
	case !ok:
		return fmt.Errorf("service %v does not exist in this network", t.Service)
	case !known:
		return fmt.Errorf("no host has the locator %v", l)
	case t.Proto == 0 || t.Port == 0:
		return fmt.Errorf("%v: an instance has a protocol and a port", t)
	default:
		h.triples[t] = struct{}{}
		p.set(s, q, l, r)
	}
	return nil
}

func (p *Plan) set(s *service, q port, l sid.Locator, r Readiness) {
	t, ok := s.ports[q]
	if !ok {
		t = &table{instances: make(map[sid.Locator]Readiness)}
		s.ports[q] = t
	}
	have, was := t.instances[l]
	t.instances[l] = r
	if !was || have.Ready != r.Ready || have.Queue != r.Queue {
		s.touch(q)
		p.dirty.services[s.id] = struct{}{}
	}
}

// Withdraw takes a registration back.
func (p *Plan) Withdraw(l sid.Locator, t sid.Triple) {
	if h, ok := p.hosts[l]; ok {
		delete(h.triples, t)
	}
	s, ok := p.services[t.Service]
	if !ok {
		return
	}
	q := port{t.Proto, t.Port}
	if have, ok := s.ports[q]; ok {
		delete(have.instances, l)
		s.touch(q)
		p.dirty.services[s.id] = struct{}{}
	}
}

// SetRedirect sends what arrives for the locator from on to another; to 0 takes it back.
func (p *Plan) SetRedirect(from, to sid.Locator) {
	p.redirects[from] = to
	if to == 0 {
		delete(p.redirects, from)
	}
	if r := p.owner(from); r != nil {
		p.dirty.routers[r.Name] = struct{}{}
	}
}

// owner is the router whose block the locator is in.
func (p *Plan) owner(l sid.Locator) *router {
	for _, r := range p.routers {
		if r.Block().Contains(l.Addr(0)) {
			return r
		}
	}
	return nil
}

func newService(id sid.ServiceID) *service {
	return &service{
		id:        id,
		overrides: make(map[string]Override),
		ports:     make(map[port]*table),
		dirty:     make(map[port]struct{}),
	}
}

// inherit keeps what the routers were told of a service that was removed and made again.
func (s *service) inherit(old *service) {
	for q, t := range old.ports {
		s.ports[q] = &table{instances: make(map[sid.Locator]Readiness), targets: t.targets}
	}
}
