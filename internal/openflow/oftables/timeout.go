package oftables

import (
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Removed takes the news that the switch has taken out an entry, and reports whether it was one that it was told to have:
// from here on it counts as not there, and is told again if it is still wanted. News of an entry whose place another one has
// got since, by its cookie, change nothing.
func (t *Tables) Removed(r ofp.FlowRemoved) bool {
	key := flowKey{r.Table, r.Priority, Canonical(r.Match)}
	owner, _, _ := Punted(r.Cookie)
	if e, kept := t.keeping[owner][key]; kept && e.cookie == r.Cookie {
		delete(t.keeping[owner], key)
	}
	return t.flows.lost(key, func(e entry) bool { return e.cookie == r.Cookie })
}

// Leases are how long entries last that Renew has to be said for, in seconds, each once.
func (t *Tables) Leases() (leases []uint16) {
	for _, o := range t.owners {
		for _, lease := range o.leased {
			if !slices.Contains(leases, lease) {
				leases = append(leases, lease)
			}
		}
	}
	return leases
}

// Renew has entries last as long once more: those of this lease that are still wanted, and that the switch was told as they
// are. Others are for Drain.
func (t *Tables) Renew(lease uint16) (bodies []ofp.Body) {
	for _, o := range t.owners {
		for key, its := range o.leased {
			if c := t.flows.cells[key]; its == lease && c != nil && c.wanted && c.had && c.want.same(c.told) {
				bodies = append(bodies, key.add(c.want))
			}
		}
	}
	return bodies
}

// lasting is what the switch was told, without what may be missing for being over. An entry with a lease comes back when it
// is renewed. Of one that idled the switch tells, a moment after it is gone: it is missed where it was missing at the reading
// before as well.
func (t *Tables) lasting(there map[flowKey]entry) map[flowKey]entry {
	told, missed := map[flowKey]entry{}, map[flowKey]struct{}{}
	for key, e := range t.flows.told() {
		_, has := there[key]
		_, before := t.missed[key]
		if !has && e.idle != 0 {
			missed[key] = struct{}{}
		}
		if has || e.hard == 0 && (e.idle == 0 || before) {
			told[key] = e
		}
	}
	t.missed = missed
	return told
}
