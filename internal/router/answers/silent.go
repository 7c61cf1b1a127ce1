package answers

import (
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// SetSilent says whether a host here answers probes. First packets pass by one that does not, docs/protocol.md §5.3, as they do in
// the program of a Linux router.
func (a *Answers) SetSilent(l sid.Locator, silent bool) {
	if silent {
		a.silent[l] = true
	} else {
		delete(a.silent, l)
	}
}

// Unheard reports whether there is something to decide about a packet for a locator: its host does not answer, and the
// packet is the first of a flow.
func (a *Answers) Unheard(l sid.Locator, low uint64) bool {
	return a.silent[l] && low != sid.HostSuffix && !sid.SocketID(low).Valid()
}

// lead sends a first packet past silent hosts, of which the label tells.
func (a *Answers) lead(p *packet, to sid.Locator, label sid.Label) Answer {
	got := a.forward(p, to, "resolved_past_silent")
	got.label = label
	return got
}

// unheard sees to a first packet for a silent host that another router chose, or that a client sent to this host itself,
// which is its own affair (docs/protocol.md §3.5).
func (a *Answers) unheard(p *packet, locator sid.Locator) Answer {
	if !a.resolves {
		return a.giveBack(p, locator)
	}
	asIs := Answer{To: p.dst, label: p.label(), packet: p}
	service, known := a.service(sid.Suffix(sid.Low(p.dst)), 0)
	if !known || p.label().Retry() >= sid.MaxRetry-1 || !p.parseTransport() {
		return asIs
	}
	table, known := a.table(service, p)
	if !known {
		return asIs
	}
	to, label, outcome := table.choose(p.src, p.label(), a.silent)
	if outcome != resolve.Chosen || to == locator || a.silent[to] {
		return asIs
	}
	if label == p.label() { // by another table than the router's that chose: two could send it to and fro
		label = sid.NewLabel(locator, label.Retry()+1)
	}
	return a.lead(p, to, label)
}

// giveBack returns such a packet in the host's name, where this router resolves nothing, to a service router. One that
// somebody has returned already is left alone: its label has room for one name, and who returned it would be chosen again.
func (a *Answers) giveBack(p *packet, locator sid.Locator) Answer {
	if p.label().Retry() > 0 {
		return Answer{To: p.dst, label: p.label(), packet: p}
	}
	if !p.parseTransport() {
		return a.drop("dropped_malformed")
	}
	return a.lead(p, a.space.Locator(0), sid.NewLabel(locator, 1))
}
