package registry

import (
	"slices"

	"scaffold.dev/scaffold/sid"
)

// share runs the ready checks of a triple where its sockets are, and tells the edge who of them takes first
// packets: those that are ready, all where none is.
func (r *Registry) share(t sid.Triple) {
	i := r.instances[t]
	if i == nil {
		return
	}
	guests := r.sockets.Guests(t)
	if !i.hidden && !i.barred && r.known(t) && r.hidden(t) {
		r.admit(t, i)
	}
	r.startChecks(t, i, guests)
	r.fit(t, i)
	if !r.dumped {
		return // what the edge has of before is better than half of it
	}
	ready := slices.DeleteFunc(slices.Clone(guests), func(g uint16) bool { return i.checks[g] != nil && i.checks[g].reason != "" })
	if len(ready) == 0 {
		ready = guests
	}
	r.setOwners(t, ready)
	r.shareService(t.Service)
}

// shareService does it for packets without ports.
func (r *Registry) shareService(id sid.ServiceID) {
	var all []uint16
	for t, owners := range r.shared {
		if t.Service == id && t.Proto != 0 {
			all = append(all, owners...)
		}
	}
	for t := range r.instances {
		if t.Service == id && r.shared[t] == nil {
			all = append(all, 0)
		}
	}
	slices.Sort(all)
	r.setOwners(sid.Triple{Service: id}, slices.Compact(all))
}

// setOwners tells the edge where that is news. The host alone is what it takes for granted.
func (r *Registry) setOwners(t sid.Triple, owners []uint16) {
	if len(owners) == 1 && owners[0] == 0 {
		owners = nil
	}
	if slices.Equal(r.shared[t], owners) {
		return
	}
	if err := r.edge.SetOwners(t, owners); err != nil {
		r.cfg.Log.Error("cannot say which guests serve", "triple", t, "error", err)
		return
	}
	r.shared[t] = owners
	if len(owners) == 0 {
		delete(r.shared, t)
	}
}

func (r *Registry) unshare(t sid.Triple) {
	r.setOwners(t, nil)
	r.shareService(t.Service)
}

// shareAll does it for all: a namespace was dumped.
func (r *Registry) shareAll() {
	if !r.dumped {
		return
	}
	for t := range r.instances {
		r.share(t)
	}
	if r.swept {
		return
	}
	r.swept = true
	if err := r.edge.SweepOwners(func(t sid.Triple) bool {
		return r.shared[sid.Triple{Service: r.ofSuffix(t), Proto: t.Proto, Port: t.Port}] != nil
	}); err != nil {
		r.cfg.Log.Warn("cannot compare who serves with the sockets", "error", err)
	}
}

// ofSuffix is the service of this host that has the suffix.
func (r *Registry) ofSuffix(t sid.Triple) sid.ServiceID {
	for known := range r.shared {
		if known.Service.Suffix == t.Service.Suffix {
			return known.Service
		}
	}
	return t.Service
}
