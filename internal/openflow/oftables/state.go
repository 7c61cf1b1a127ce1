package oftables

import (
	"cmp"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// Cookies are what all of our entries' cookies have in the bits of the mask, whoever of us owns them.
func Cookies() (cookie, mask uint64) { return cookieOurs, cookieMask }

// Count is how many flows, groups and meters of ours the switch should hold.
func (t *Tables) Count() (flows, groups, meters int) {
	return t.flows.wants, t.groups.wants, t.meters.wants
}

// Told is how many flows the switch was told to have in each of its tables.
func (t *Tables) Told() map[uint8]uint32 {
	n := map[uint8]uint32{}
	for k := range t.flows.told() {
		n[k.table]++
	}
	return n
}

// Waiting is how many routes are not in the switch because their port or next hop's MAC is not known.
func (t *Tables) Waiting() (n int) {
	for _, r := range t.routes {
		if _, there := t.ports[r.Port]; !there || t.nextHop(r) == [6]byte{} {
			n++
		}
	}
	return n
}

// Triples are those that the switch resolves to somebody, in order.
func (t *Tables) Triples() (all []sid.Triple) {
	for _, s := range t.services {
		for triple, x := range s.triples {
			if len(x.targets) > 0 {
				all = append(all, triple)
			}
		}
	}
	slices.SortFunc(all, func(a, b sid.Triple) int {
		return cmp.Or(cmp.Compare(a.Service.SS, b.Service.SS), cmp.Compare(a.Service.Suffix, b.Service.Suffix),
			cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
	})
	return all
}
