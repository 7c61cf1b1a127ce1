package registrations

import (
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// What a host serves is stored, soon after it changed: the kernel of a host whose daemon is away serves on, and a controller
// that begins to lead then must not plan without it. Nothing waits for the store. A record that is older than what the host
// does costs a return (docs/protocol.md §3.2), never a refusal; its snapshot replaces it.

// A host's records are written at once, but in the long run once in keepEvery: a host whose programs come and go all the time
// is not to keep the disk busy. A program that starts is news several times: it listens, it is ready.
const (
	keepEvery = 250 * time.Millisecond
	keepAhead = 4 // writes that may come early
)

// longestUser is that of a name in a record: Linux has none that are longer than 256 bytes.
const longestUser = 256

// identity tells a host from another one of its name, and from itself before it booted: nothing served then serves now.
type identity struct{ key, boot, netns string }

// put notes what became of a registration; what it changes of the host's instances is stored.
func (x *Registrations) put(h *host, t sid.Triple, w wish) {
	was := h.wanted[t]
	w.page = was.page
	switch {
	case w.Up && w.page == 0:
		w.page = h.pages.room()
		x.changed(h, w.page, 1)
	case !w.Up && w.page != 0:
		x.changed(h, w.page, -1)
		w.page = 0
	case w.Up && !was.alike(w):
		x.changed(h, w.page, 0)
	}
	h.wanted[t] = w
}

// drop forgets a registration.
func (x *Registrations) drop(h *host, t sid.Triple) {
	if p := h.wanted[t].page; p != 0 {
		x.changed(h, p, -1)
	}
	delete(h.wanted, t)
}

func (x *Registrations) changed(h *host, page, by int) {
	h.pages.change(page, by)
	x.unkept[h] = struct{}{}
}

// alike reports whether two have the same record.
func (w wish) alike(other wish) bool {
	a, b := w.Ready, other.Ready
	a.Reason, b.Reason = "", ""
	return a == b && w.user == other.user && string(w.permit) == string(other.permit)
}

// identity is that of the host now.
func (x *Registrations) identity(h *host) identity {
	r := x.Hosts.Record(h.name)
	return identity{string(h.shown), r.BootID, r.Netns}
}

// anew has all records of a host written that became another one.
func (x *Registrations) anew(h *host) {
	if who := x.identity(h); who != h.as {
		h.as = who
		x.doubt(h, func(p page) bool { return p.count > 0 })
	}
}

func (x *Registrations) doubt(h *host, which func(page) bool) {
	if h.pages.doubt(which) {
		x.unkept[h] = struct{}{}
	}
}

// keep stores what changed, of each host as often as it may.
func (x *Registrations) keep(now time.Time) {
	for h := range x.unkept {
		due := h.due
		if due.Before(now) {
			due = now
		}
		if wait := due.Sub(now) - keepAhead*keepEvery; wait > 0 {
			if !h.waits {
				h.waits = true
				x.Loop.After(wait, func() { h.waits = false }) // and the loop flushes
			}
			continue
		}
		h.due = due.Add(keepEvery)
		x.store(h)
		delete(x.unkept, h)
	}
}

func (x *Registrations) store(h *host) {
	all := make(map[int][]store.Registration)
	for t, w := range h.wanted {
		if w.page != 0 && h.pages[w.page-1].dirty {
			all[w.page] = append(all[w.page], w.record(t))
		}
	}
	for i := range h.pages {
		p := &h.pages[i]
		switch {
		case !p.dirty:
			continue
		case p.count > 0:
			x.Saver.Later(store.PutRegistrations(store.Registrations{
				Host: h.name, Page: i + 1, Key: []byte(h.as.key), BootID: h.as.boot, Netns: h.as.netns, All: all[i+1],
			}))
		case p.there:
			x.Saver.Later(store.DeleteRegistrations(h.name, i+1))
		}
		p.there, p.dirty = p.count > 0, false
	}
}

func (w wish) record(t sid.Triple) store.Registration {
	r := store.Registration{
		Service: t.Service, Proto: t.Proto, Port: t.Port, Readiness: w.Ready, User: w.user[:min(len(w.user), longestUser)], Since: w.Since.Unix(),
	}
	if w.proved { // what a service without a key was shown may be anything, of any length
		r.Permit = w.permit
	}
	return r
}

// forgetKept removes all records of a host.
func (x *Registrations) forgetKept(h *host) {
	for i, p := range h.pages {
		if p.there {
			x.Saver.Later(store.DeleteRegistrations(h.name, i+1))
		}
	}
	h.pages = nil
	delete(x.unkept, h)
}
