package places

import (
	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A state that was restored is true of the time when its backup was made: a host may be elsewhere since, and a locator that
// the backup gives to one, or to nobody, may be another one's. So who reports counts, and a record only for as long as nobody
// who is there says otherwise.

// Evict takes a locator from a host of which only a backup says that it is there: another one has it.
func (x *Places) Evict(l sid.Locator, by string) {
	at := x.all[l]
	if at == nil || !at.host.Doubted || at.host.Name == by {
		return
	}
	h := at.host
	x.vacate(at.Place)
	all := h.All()
	rest := all[:0]
	for _, p := range all {
		if p.Locator != l {
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 {
		h.Here, h.Doubted = false, false
		h.Place.Locator = 0
	} else {
		h.Place, h.Others = rest[0], rest[1:]
	}
	x.Own(h)
	x.Save(h)
}

// ComeTrue forgets where a backup had a host that has now come itself. Nothing is sent after it: what comes to a
// locator of then is for whoever has that now.
func (x *Places) ComeTrue(h *Host) {
	h.Doubted = false
	for _, p := range h.All() {
		if at := x.all[p.Locator]; at != nil && at.host == h {
			x.vacate(p)
		}
	}
}

// found is told of a locator of a block that a router knows and the backup does not: whoever has it keeps it, and nobody
// else gets it.
func (x *Places) found(block, l sid.Locator) {
	if _, kept := x.Locators.Held(l); !kept && locators.In(block, l) && x.all[l] == nil {
		x.Locators.Hold(l, "")
	}
}

// Unclaimed counts locators at which somebody answers of whom a restored state does not know, and who has not come yet.
func (x *Places) Unclaimed() (count int) {
	if !x.Restored() {
		return 0
	}
	for router, said := range x.said {
		for l, s := range said {
			if s == plan.HostUp && x.all[l] == nil && x.Routers.Here(router) {
				count++
			}
		}
	}
	return count
}
