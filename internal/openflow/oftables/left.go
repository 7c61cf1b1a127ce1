package oftables

import (
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// renderLeft puts in what becomes of packets to a locator that its host has left: a redirect goes before the
// answer that nobody is there.
func (t *Tables) renderLeft(l sid.Locator) {
	at := t.table(tableArrival)
	m := ofp.Match{ipv6, ofp.Prefix(ofp.IPv6Dst, l.Prefix())}
	to, moved := t.redirects[l]
	_, gone := t.gone[l]
	switch {
	case t.own == 0 || !moved && !gone:
		key, _ := t.flow(at, arriveLeft, PuntNothing, m)
		t.flows.unset(key)
	case moved && t.masks():
		t.flows.set(t.flow(at, arriveLeft, PuntNothing, m, ofp.ApplyActions{Actions: []ofp.Action{upperHalf(to)}}, t.goTo(tableRoutes)))
	case moved:
		t.flows.set(t.flow(at, arriveLeft, PuntRedirected, m, t.puntAs(PuntRedirected)...))
	default:
		t.flows.set(t.flow(at, arriveLeft, PuntGone, m, t.puntAs(PuntGone)...))
	}
}

// upperHalf writes a locator over the destination's.
func upperHalf(l sid.Locator) ofp.Action {
	return ofp.SetField{OXM: ofp.Prefix(ofp.IPv6Dst, l.Prefix())}
}

// Redirect is where packets to a locator are sent on to; who answers PuntRedirected asks.
func (t *Tables) Redirect(from sid.Locator) (to sid.Locator, ok bool) {
	to, ok = t.redirects[from]
	return to, ok
}
