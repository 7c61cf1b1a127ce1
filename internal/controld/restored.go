package controld

import (
	"fmt"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// A state that was restored is true of the time when its backup was made. What has happened since, hosts and routers
// know: a host may be elsewhere, and a locator that the backup gives to one, or to nobody, may be another one's. So who
// reports counts, and a record only for as long as nobody who is there says otherwise.

// restoredGrace is how many times longer than after a restart rules wait: all hosts are looked for, not those on record.
const restoredGrace = 3

// afterRestore says what is in doubt, and for how long: as long as a locator that was left is given to nobody.
func (n *network) afterRestore() {
	if n.restored == nil {
		return
	}
	n.unknown = make(map[sid.ServiceID]struct{})
	n.event("controller.restored", n.cfg.Name, "the state is that of a backup of "+n.restored.Made+": hosts and routers say what has changed since; services, weights and drains of since then are gone, and who was revoked since then is not", "made", n.restored.Made)
	n.loop.after(n.cfg.Quarantine, func() {
		n.restored = nil
		n.saver.later(store.DeleteRestored())
	})
}

// evict takes a locator from a host of which only a backup says that it is there: another one has it.
func (n *network) evict(name string, l sid.Locator) {
	at := n.places[l]
	if at == nil || !at.host.doubted || at.host.Name == name {
		return
	}
	h := at.host
	n.vacate(at.Place)
	all := h.all()
	rest := all[:0]
	for _, p := range all {
		if p.Locator != l {
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 {
		h.Here, h.doubted = false, false
		h.Place.Locator = 0
	} else {
		h.Place, h.Others = rest[0], rest[1:]
	}
	n.own(h)
	n.save(h)
}

// comeTrue forgets where a backup had a host that has now come itself. Nothing is sent after it: what comes to a
// locator of then is for whoever has that now.
func (n *network) comeTrue(h *host) {
	h.doubted = false
	for _, p := range h.all() {
		if at := n.places[p.Locator]; at != nil && at.host == h {
			n.vacate(p)
		}
	}
}

// found is told of a locator that a router knows and the backup does not: whoever has it keeps it, and nobody else
// gets it.
func (n *network) found(r *router, l sid.Locator) {
	base := n.blockLocator(r.Block)
	if _, kept := n.quarantine[l]; !kept && l > base && l <= base+255 && n.places[l] == nil {
		n.hold(l, "")
	}
}

// unclaimed counts locators at which somebody answers of whom a restored state does not know, and who has not come yet.
func (n *network) unclaimed() (count int) {
	if n.restored == nil {
		return 0
	}
	for _, r := range n.routers {
		for l, s := range r.states {
			if s == plan.HostUp && n.places[l] == nil && r.session != nil {
				count++
			}
		}
	}
	return count
}

// missed tells, once, of a service that hosts serve and a restored state does not have.
func (n *network) missed(h *host, id sid.ServiceID) {
	if n.restored == nil {
		return
	}
	if _, told := n.unknown[id]; told {
		return
	}
	n.unknown[id] = struct{}{}
	n.event("service.unknown", h.Name, fmt.Sprintf("host serves %v, which the restored state does not have: if it was created since, create it again: scaffold service create NAME --sid %v", id, id), "sid", id.String())
}
