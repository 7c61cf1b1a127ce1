package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// Snapshot is everything that the router has been told up to the last Drain, in order of keys.
func (p *Plan) Snapshot(name string) Rules {
	var all Rules
	r, ok := p.routers[name]
	if !ok {
		return all
	}
	all.Routes = slices.SortedFunc(maps.Values(r.said.ways), byPrefix)
	all.Routes = append(all.Routes, slices.SortedFunc(maps.Values(r.said.hosts), byPrefix)...)
	all.Probes = slices.SortedFunc(maps.Values(r.said.probes), byHost)
	all.Redirects = slices.SortedFunc(maps.Values(r.said.redirects), byFrom)
	all.Gone = slices.SortedFunc(maps.Values(r.said.gone), byLocator)
	all.Sources = slices.SortedFunc(maps.Values(r.said.sources), bySource)
	if r.Service {
		p.resolutions(&all, p.sites.routers[name])
	}
	return all
}

func (p *Plan) resolutions(all *Rules, site string) {
	for _, id := range slices.SortedFunc(maps.Keys(p.services), compareIDs) {
		s := p.services[id]
		if s.isSaid {
			all.Services = append(all.Services, s.said)
		}
		for _, q := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
			if targets := s.ports[q].at(site); len(targets) > 0 {
				all.Resolutions = append(all.Resolutions, Resolution{Triple: s.triple(q), Targets: targets})
			}
		}
	}
}

// An Instance is what the plan knows of one, for people to see.
type Instance struct {
	Triple    sid.Triple
	Host      string
	Locator   sid.Locator
	Weight    uint32 // as set, drained or not
	Effective uint32 // as the routers use it
	State     string // "serving", "draining", "suspect", "gone", "not ready"
	Reason    string // why it is not serving
}

func byName(a, b *host) int { return cmp.Compare(a.name, b.name) }

// Instances lists the instances of a service by triple and host.
func (p *Plan) Instances(id sid.ServiceID) []Instance {
	s, ok := p.services[id]
	if !ok {
		return nil
	}
	var list []Instance
	for _, q := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
		t := s.ports[q]
		for _, h := range slices.SortedFunc(maps.Keys(t.instances), byName) {
			list = append(list, p.instance(s, q, t, h))
		}
	}
	return list
}

// EachHost calls do with the host of each instance of the service.
func (p *Plan) EachHost(id sid.ServiceID, do func(hostName string)) {
	s, ok := p.services[id]
	if !ok {
		return
	}
	for _, t := range s.ports {
		for h := range t.instances {
			do(h.name)
		}
	}
}

// InstancesAt lists the instances on a host.
func (p *Plan) InstancesAt(hostName string) []Instance {
	h, ok := p.hosts[hostName]
	if !ok {
		return nil
	}
	var list []Instance
	for t := range h.triples {
		s, q := p.services[t.Service], port{t.Proto, t.Port}
		list = append(list, p.instance(s, q, s.ports[q], h))
	}
	slices.SortFunc(list, func(a, b Instance) int {
		if c := compareIDs(a.Triple.Service, b.Triple.Service); c != 0 {
			return c
		}
		return comparePorts(port{a.Triple.Proto, a.Triple.Port}, port{b.Triple.Proto, b.Triple.Port})
	})
	return list
}

func (p *Plan) instance(s *service, q port, t *table, h *host) Instance {
	ready, o, at := t.instances[h], s.overrides[h.name], h.place()
	set := o
	set.Drain = false
	i := Instance{Triple: s.triple(q), Host: h.name, Locator: at.Locator, Weight: s.weight(set)}
	site := p.sites.hosts[h.name]
	if !ready.Carries {
		site = ""
	}
	for _, target := range t.at(site) {
		if h.at[target.Locator] != nil {
			i.Effective = target.Weight
		}
	}
	i.State, i.Reason = state(at.Host, o, ready, i)
	if i.State == "serving" && ready.Carries {
		i.State, i.Reason = carries(site, i)
	}
	return i
}

func state(h Host, o Override, r Readiness, i Instance) (string, string) {
	switch {
	case h.State == HostGone:
		return "gone", "host is gone"
	case h.State == HostSuspect && i.Effective > 0:
		return "suspect", "host does not answer probes; kept because no other instance could serve"
	case h.State == HostSuspect:
		return "suspect", "host does not answer probes"
	case o.Drain:
		return "draining", "drained by an operator"
	case r.Queue && i.Effective > 0:
		return "serving", r.Reason + "; kept because no other instance could serve"
	case !r.Ready:
		return "not ready", r.Reason
	case i.Weight == 0:
		return "serving", "weight is 0: no new flows"
	case r.partly():
		return "serving", r.listeners(i)
	}
	return "serving", ""
}

// listeners says how many of an instance's work, and whether its weight is by them.
func (r Readiness) listeners(i Instance) string {
	text := fmt.Sprintf("%d of %d listeners work", r.Working, r.Listeners)
	if i.Effective == i.Weight && r.share(i.Weight) < i.Weight {
		return text + "; keeps its whole weight because most of the service is slow"
	}
	return text
}

// SoleServer names a triple of the service that would be left without a target if the host served
// no more.
func (p *Plan) SoleServer(id sid.ServiceID, hostName string) (sid.Triple, bool) {
	s, ok := p.services[id]
	if !ok {
		return sid.Triple{}, false
	}
	for _, q := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
		if t := s.ports[q]; !q.virtual() && len(t.targets) > 0 && p.only(t.targets, hostName) {
			return s.triple(q), true
		}
	}
	return sid.Triple{}, false
}

func (p *Plan) only(targets []resolve.Target, hostName string) bool {
	for _, t := range targets {
		if at, ok := p.places[t.Locator]; ok && at.Name != hostName {
			return false
		}
	}
	return true
}

// Takers says whether routers send new flows of the triple to the host, and whether to others that answer, once what
// was said is drained.
func (p *Plan) Takers(t sid.Triple, hostName string) (itself, others bool) {
	s, ok := p.services[t.Service]
	if !ok {
		return false, false
	}
	for _, x := range p.compute(s, port{t.Proto, t.Port}) {
		if p.places[x.Locator].Name == hostName {
			itself = true
		} else if p.places[x.Locator].State == HostUp {
			others = true
		}
	}
	return itself, others
}

// Capable are the hosts that unresolved RSYNs of a service are sent to, by name.
func (p *Plan) Capable(id sid.ServiceID) (hosts []string) {
	s, ok := p.services[id]
	if !ok {
		return nil
	}
	for _, t := range p.compute(s, resuming) {
		hosts = append(hosts, p.places[t.Locator].Name)
	}
	slices.Sort(hosts)
	return hosts
}

// Override is what an operator said of the host.
func (p *Plan) Override(id sid.ServiceID, hostName string) Override {
	if s, ok := p.services[id]; ok {
		return s.overrides[hostName]
	}
	return Override{}
}

// Registrations are the triples that a host registered, in no order.
func (p *Plan) Registrations(hostName string) []sid.Triple {
	if h, ok := p.hosts[hostName]; ok {
		return slices.Collect(maps.Keys(h.triples))
	}
	return nil
}

// Host is the host at the locator.
func (p *Plan) Host(l sid.Locator) (Host, bool) {
	if at, ok := p.places[l]; ok {
		return at.Host, true
	}
	return Host{}, false
}

// Redirect is where packets to a locator that was left are sent on to.
func (p *Plan) Redirect(l sid.Locator) (sid.Locator, bool) {
	if p.isPlace(l) {
		return 0, false
	}
	return p.leads(l)
}

// Count is how many services, and instances of them, the plan holds.
func (p *Plan) Count() (services, instances int) {
	for _, h := range p.hosts {
		instances += len(h.triples)
	}
	return len(p.services), instances
}

// Served is how many instances a service has, and whether routers send new flows to any.
func (p *Plan) Served(id sid.ServiceID) (instances int, taken bool) {
	s, ok := p.services[id]
	if !ok {
		return 0, false
	}
	for q, t := range s.ports {
		if !q.virtual() {
			instances += len(t.instances)
		}
	}
	all := s.ports[ping]
	return instances, all != nil && len(all.targets) > 0
}
