package registrations

import (
	"bytes"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// Remember puts what a host served before this controller led into the plan, as if the host had said it now: who may serve
// is looked at again. A record of a host that is not here any more, or another one now, is forgotten.
func (x *Registrations) Remember(r store.Registrations) {
	if r.Page < 1 || r.Page > Most || !x.Hosts.Here(r.Host) || !x.same(r) {
		x.Saver.Later(store.DeleteRegistrations(r.Host, r.Page))
		return
	}
	h := x.known(r.Host)
	h.shown, h.as = r.Key, identity{string(r.Key), r.BootID, r.Netns}
	h.pages.at(r.Page).there = true
	for _, s := range r.All {
		if t := s.Triple(); checkTriple(t) == nil {
			x.remember(h, t, s, r.Page)
		}
	}
	if p := h.pages.at(r.Page); p.count != len(r.All) {
		x.changed(h, r.Page, 0)
	}
}

func (x *Registrations) remember(h *host, t sid.Triple, s store.Registration, page int) {
	if _, twice := h.wanted[t]; twice || len(h.wanted) >= Most {
		return
	}
	w := wish{user: s.User, told: s.Ready, permit: s.Permit, stood: true, page: page}
	w.Ready, w.Since, w.Up = s.Readiness, time.Unix(s.Since, 0), true
	h.wanted[t] = w
	h.pages.at(page).count++
	x.Access.TouchService(t.Service)
	x.judge(h, t)
}

// same reports whether the host of now is the one whose record it is, by a key that counts.
func (x *Registrations) same(r store.Registrations) bool {
	now := x.Hosts.Record(r.Host)
	return r.BootID == now.BootID && r.Netns == now.Netns && (len(now.Key) == 0 || bytes.Equal(r.Key, now.Key)) && !x.Hosts.Revoked(r.Key)
}

// Unread is told of a page that is there and cannot be read: what the host says next takes its place.
func (x *Registrations) Unread(host string, page int) {
	if page >= 1 && page <= Most && x.Hosts.Here(host) {
		x.known(host).pages.at(page).there = true
	}
}

// known is a host, which may have no session.
func (x *Registrations) known(name string) *host {
	h := x.hosts[name]
	if h == nil {
		h = &host{name: name}
		x.hosts[name] = h
	}
	if h.wanted == nil {
		h.wanted = make(map[sid.Triple]wish)
	}
	return h
}
