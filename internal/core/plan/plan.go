package plan

import (
	"fmt"
	"slices"

	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// A Plan holds the state and the rules that follow from it.
type Plan struct {
	space     sid.Space
	routers   map[string]*router
	hosts     map[string]*host
	places    map[sid.Locator]*place
	services  map[sid.ServiceID]*service
	redirects map[sid.Locator]sid.Locator         // as told: chains are followed in the rules
	left      map[sid.Locator]struct{}            // locators at which nobody is
	held      map[sid.Locator]holding             // that hosts have left and nobody else has
	holds     map[string]map[sid.Locator]struct{} // the same by host
	heldAt    map[string]map[sid.Locator]struct{} // and by the router where it was
	sites     sites
	boosted   map[sid.ServiceID]struct{} // services whose connections agents are to carry
	apart     map[string]int             // how many tables the routers of a site have that others do not
	dirty     dirt
}

type router struct {
	Router
	links []Link
	hosts map[sid.Locator]struct{}
	said  tables
}

// dirt is what Drain has to look at again.
type dirt struct {
	topology bool                       // all routers' ways
	routers  map[string]struct{}        // their own hosts, probes and redirects
	services map[sid.ServiceID]struct{} // services with dirty ports
	removed  map[sid.ServiceID]*service // services that are no more
	sites    map[string]string          // of routers that are at another one now: where they were
}

// New returns the plan of an empty network.
func New(space sid.Space) *Plan {
	p := &Plan{
		space:     space,
		routers:   make(map[string]*router),
		hosts:     make(map[string]*host),
		places:    make(map[sid.Locator]*place),
		services:  make(map[sid.ServiceID]*service),
		redirects: make(map[sid.Locator]sid.Locator),
		left:      make(map[sid.Locator]struct{}),
		held:      make(map[sid.Locator]holding),
		holds:     make(map[string]map[sid.Locator]struct{}),
		heldAt:    make(map[string]map[sid.Locator]struct{}),
		apart:     make(map[string]int),
		boosted:   make(map[sid.ServiceID]struct{}),
	}
	p.clean()
	return p
}

func (p *Plan) clean() {
	p.dirty = dirt{
		routers:  make(map[string]struct{}),
		services: make(map[sid.ServiceID]struct{}),
		removed:  make(map[sid.ServiceID]*service),
		sites:    make(map[string]string),
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
	for l, at := range p.places {
		if at.Router == name {
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

// SetService adds a service or takes a newer record of it. Of the record only the weight and that nobody may connect make
// rules: where neither is new nothing is looked at again.
func (p *Plan) SetService(r names.Record) {
	weight, forbidden := r.Policy.Weight, r.Access.Forbidden()
	if delete(p.boosted, r.ID); r.Policy.Boost {
		p.boosted[r.ID] = struct{}{}
	}
	s, ok := p.services[r.ID]
	if !ok {
		s = newService(r.ID)
		if old, was := p.dirty.removed[r.ID]; was { // removed and back within one Drain
			s.said, s.isSaid = old.said, old.isSaid
			s.inherit(old)
			delete(p.dirty.removed, r.ID)
		}
		p.services[r.ID] = s
	} else if s.all == weight && s.forbidden == forbidden {
		return
	}
	s.all, s.forbidden = weight, forbidden
	s.touchAll()
	p.dirty.services[r.ID] = struct{}{}
}

// RemoveService removes a service and withdraws its instances.
func (p *Plan) RemoveService(id sid.ServiceID) {
	delete(p.boosted, id)
	s, ok := p.services[id]
	if !ok {
		return
	}
	for q, t := range s.ports {
		for h := range t.instances {
			delete(h.triples, s.triple(q))
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

// Register records an instance of a host. An error means that there is no such service or host.
func (p *Plan) Register(hostName string, t sid.Triple, r Readiness) error {
	s, ok := p.services[t.Service]
	h, known := p.hosts[hostName]
	switch q := (port{t.Proto, t.Port}); {
	case !ok:
		return fmt.Errorf("service %v does not exist in this network", t.Service)
	case !known:
		return fmt.Errorf("host %s is not in this network", hostName)
	case t.Proto == 0 || t.Port == 0:
		return fmt.Errorf("%v: an instance has a protocol and a port", t)
	case q == resuming:
		return fmt.Errorf("%v: the port is the network's own, for its messages", t)
	default:
		h.triples[t] = struct{}{}
		if s.serves(q, h, r) {
			p.dirty.services[s.id] = struct{}{}
		}
	}
	return nil
}

// serves notes that a host serves at a port, and reports whether that changes anything but words.
func (s *service) serves(q port, h *host, r Readiness) (changed bool) {
	t, ok := s.ports[q]
	if !ok {
		t = &table{instances: make(map[*host]Readiness)}
		s.ports[q] = t
	}
	have, was := t.instances[h]
	t.instances[h] = r
	have.Reason, r.Reason = "", ""
	if was && have == r {
		return false
	}
	s.touch(q)
	return true
}

// Withdraw takes a registration back.
func (p *Plan) Withdraw(hostName string, t sid.Triple) {
	h, ok := p.hosts[hostName]
	if !ok {
		return
	}
	delete(h.triples, t)
	s, ok := p.services[t.Service]
	if !ok {
		return
	}
	q := port{t.Proto, t.Port}
	if have, ok := s.ports[q]; ok {
		delete(have.instances, h)
		s.touch(q)
		p.dirty.services[s.id] = struct{}{}
	}
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
		s.ports[q] = &table{instances: make(map[*host]Readiness), said: t.said}
	}
}
