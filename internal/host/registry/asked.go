package registry

import (
	"cmp"
	"net/netip"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// Each tells of all triples. may: it is known who may connect, and this host may serve it.
func (r *Registry) Each(f func(t sid.Triple, may bool)) {
	for t, i := range r.instances {
		f(t, i.refused == "" && (i.trusted || r.known(t)))
	}
}

// Changes are how often what Each tells has changed.
func (r *Registry) Changes() int { return r.changes }

// Retell has the controller told what can resume.
func (r *Registry) Retell() { r.dirty = true }

// Connected lists the peers of the datagram sockets of this host and its guests at a port; without that of the cookie,
// which may still be there.
func (r *Registry) Connected(port uint16, cookie uint64) (map[netip.AddrPort]bool, error) {
	peers := map[netip.AddrPort]bool{}
	err := r.cfg.Namespaces.Each(sid.UDP, sockets.StateAny, port, func(s sockets.DiagSocket) {
		if s.Cookie != cookie {
			peers[s.Peer] = true
		}
	})
	return peers, err
}

// Of lists what sockets of a guest serve.
func (r *Registry) Of(guest uint16) (all []sid.Triple) {
	for t := range r.instances {
		if slices.Contains(r.sockets.Guests(t), guest) {
			all = append(all, t)
		}
	}
	return all
}

// Count is of the instances, and of the ready ones among them.
func (r *Registry) Count() (ready, all int) {
	for t, i := range r.instances {
		if i.verdict(r.known(t)).reason == "" {
			ready++
		}
	}
	return ready, len(r.instances)
}

// Names are those of the services whose policies are known.
func (r *Registry) Names() map[sid.ServiceID]string {
	names := map[sid.ServiceID]string{}
	for id := range r.policies {
		names[id] = r.Name(id)
	}
	return names
}

// Knows reports whether the controller has told of a service.
func (r *Registry) Knows(id sid.ServiceID) bool { return r.policies[id] != nil }

// Load says how busy each instance is. It is given how many flows each serves.
func (r *Registry) Load(flows map[sid.Triple]uint32) (all []*apiv1.TripleLoad) {
	for t, i := range r.instances {
		i.flows = flows[t]
		all = append(all, &apiv1.TripleLoad{
			Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port),
			Flows: i.flows, AcceptQueue: i.waiting, Backlog: i.backlog,
		})
	}
	return all
}

// List is what people are shown.
func (r *Registry) List() (all []*apiv1.LocalRegistration) {
	for t, i := range r.instances {
		v := i.verdict(r.known(t))
		g := &apiv1.LocalRegistration{
			Service: r.Name(t.Service), Proto: t.Proto.String(), Port: uint32(t.Port), Ready: v.reason == "", Reason: v.text(),
			Sockets: uint32(r.sockets.Count(t)), AcceptQueue: i.waiting, Refused: i.refused != "",
		}
		r.sockets.Cookies(t, func(_ uint64, o serving.Owner) {
			if o.PID != 0 && !slices.Contains(g.Pids, o.PID) {
				g.Pids = append(g.Pids, o.PID)
			}
		})
		slices.Sort(g.Pids)
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *apiv1.LocalRegistration) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
	})
	return all
}
