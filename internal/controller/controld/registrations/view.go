package registrations

import (
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// Of is one of a host's.
func (x *Registrations) Of(name string, t sid.Triple) (r Registration) {
	if h := x.hosts[name]; h != nil {
		r = h.wanted[t].Registration
	}
	return r
}

// Each calls f for all of a host's.
func (x *Registrations) Each(name string, f func(sid.Triple, Registration)) {
	h := x.hosts[name]
	if h == nil {
		return
	}
	for t, w := range h.wanted {
		f(t, w.Registration)
	}
}

// ByService are all of a host's.
func (x *Registrations) ByService(name string) map[sid.ServiceID][]sid.Triple {
	m := make(map[sid.ServiceID][]sid.Triple)
	x.Each(name, func(t sid.Triple, _ Registration) { m[t.Service] = append(m[t.Service], t) })
	return m
}

// Challenge is what the signatures of a host's session quote.
func (x *Registrations) Challenge(name string) []byte { return x.hosts[name].challenge }

// Shown is the key that a host's session showed.
func (x *Registrations) Shown(name string) []byte {
	if h := x.hosts[name]; h != nil {
		return h.shown
	}
	return nil
}

// Restore notes that a service had an instance before this controller led.
func (x *Registrations) Restore(id sid.ServiceID) { x.had[id] = true }

// served notes that a service has an instance: from now on it is missed without.
func (x *Registrations) served(id sid.ServiceID) {
	if x.had[id] {
		return
	}
	x.had[id] = true
	delete(x.asked, id)
	x.Saver.Later(store.PutServed(store.Served{Service: id, Since: time.Now().Unix()}))
}

// AskedFor notes that a host asks for the address of a service. One that nobody has served yet is missed from now on.
func (x *Registrations) AskedFor(id sid.ServiceID) {
	if !x.had[id] {
		x.asked[id] = time.Now()
	}
}

// Missed says whether a service had an instance once, and else when it was asked for last.
func (x *Registrations) Missed(id sid.ServiceID) (had bool, asked time.Time) {
	return x.had[id], x.asked[id]
}
