package resolve

import (
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// ChoosePast is Choose by a router that knows of targets which do not answer: a packet for one goes on to whom it would
// meet if that one had returned it, and leaves with the label of that, whose count is of the draws. Who did return it, and
// the silent target before, are left out of these in any case. Where nobody else is left, or before the last draw, which is for who was asked by itself
// (docs/protocol.md §3.5), the silent target gets it, and the label stays: the prober may be late, or the host be back.
func (t Table) ChoosePast(src netip.Addr, label sid.Label, silent func(sid.Locator) bool) (to sid.Locator, leaves sid.Label, o Outcome) {
	if t.Empty() {
		return 0, label, Nobody
	}
	retry := label.Retry()
	if own, _ := t.Pick(Hash(src, 0)); retry == 0 && !silent(own) {
		return own, label, Chosen
	}
	d := draws{table: t, src: src}
	for i := range retry {
		d.next(i, refusers{})
	}
	own, ok := d.next(retry, refusers{label.Refuser()})
	if !ok {
		return 0, label, AllRefused
	}
	x := own
	for i := retry; silent(x.Locator); i++ {
		if leaves = sid.NewLabel(x.Locator, i+1); i >= sid.MaxRetry-1 {
			return own.Locator, label, Chosen
		}
		if x, ok = d.next(i+1, refusers{label.Refuser(), leaves.Refuser()}); !ok {
			return own.Locator, label, Chosen
		}
	}
	if x == own {
		leaves = label
	}
	return x.Locator, leaves, Chosen
}

// draws are those of one packet, each without what those before it chose.
type draws struct {
	table Table
	src   netip.Addr
	out   []Target
}

// next begins anew once all were drawn; ok is false where nobody is left even so.
func (d *draws) next(i uint8, by refusers) (x Target, ok bool) {
	x, ok = d.table.draw(Hash(d.src, i), d.out, by)
	if !ok {
		d.out = d.out[:0]
		x, ok = d.table.draw(Hash(d.src, i), nil, by)
	}
	d.out = append(d.out, x)
	return x, ok
}
