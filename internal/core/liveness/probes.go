package liveness

import (
	"cmp"
	"maps"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// A State is what answers and silence say of a host, docs/protocol.md §5.3.
type State string

// The states of a host.
const (
	Unknown State = "" // no conclusion yet
	Up      State = "up"
	Suspect State = "suspect"
	Gone    State = "gone"
)

// unseenFactor is how much longer a host may be silent that never answered: it may be about to set
// itself up, and its weight is 0 by then.
const unseenFactor = 5

// Limits are numbers of unanswered probes.
type Limits struct {
	Suspect uint32
	Gone    uint32
}

// A Change is what follows from an answer, a round without one, or a carrier.
type Change struct {
	Locator sid.Locator
	State   State
	Missed  uint32
	Reason  string // "probes", "carrier"
}

// Probes counts the unanswered probes of each host. It has no clock: its owner says when a round of
// probes goes out, after it has handed over all answers that had arrived.
type Probes struct {
	limits Limits
	hosts  map[sid.Locator]*probedHost
}

type probedHost struct {
	port   string
	first  uint64 // nonce of the first probe, so that old answers cannot be taken for new ones
	sent   uint64
	missed uint32 // probes sent since the last answer
	state  State
	seen   bool // has answered once
	down   bool // its port has no carrier
}

// New probes nobody yet.
func New(l Limits) *Probes { return &Probes{limits: l, hosts: map[sid.Locator]*probedHost{}} }

// Add begins to probe a host; nonce is random. A host that is there stays as it is, unless it moved
// to another port.
func (p *Probes) Add(l sid.Locator, port string, nonce uint64) {
	if h := p.hosts[l]; h != nil {
		h.port = port
		return
	}
	p.hosts[l] = &probedHost{port: port, first: nonce}
}

// Remove ends the probing of a host.
func (p *Probes) Remove(l sid.Locator) { delete(p.hosts, l) }

// Turn counts what is unanswered, and returns the changes and, through send, the next probes.
func (p *Probes) Turn(send func(l sid.Locator, nonce uint64)) (changes []Change) {
	for _, l := range p.locators() {
		h := p.hosts[l]
		changes = h.count(l, p.limits, changes)
		send(l, h.first+h.sent)
		h.sent++
		h.missed++
	}
	return changes
}

// count draws the conclusion from the probes missed so far.
func (h *probedHost) count(l sid.Locator, lim Limits, changes []Change) []Change {
	gone := lim.Gone
	if !h.seen {
		gone *= unseenFactor
	}
	switch {
	case h.state == Gone:
	case h.missed >= gone:
		return h.become(l, Gone, "probes", changes)
	case h.missed >= lim.Suspect && h.state != Suspect:
		return h.become(l, Suspect, "probes", changes)
	}
	return changes
}

func (h *probedHost) become(l sid.Locator, s State, reason string, changes []Change) []Change {
	h.state = s
	return append(changes, Change{l, s, h.missed, reason})
}

// Answered takes an answer to any probe that this host was sent.
func (p *Probes) Answered(l sid.Locator, nonce uint64) (changes []Change) {
	h := p.hosts[l]
	if h == nil || nonce-h.first >= h.sent || h.down {
		return nil
	}
	h.missed, h.seen = 0, true
	if h.state == Up {
		return nil
	}
	return h.become(l, Up, "probes", nil)
}

// Carrier says whether the port has one. Without, its hosts are gone at once; with, they are up when
// they answer.
func (p *Probes) Carrier(port string, on bool) (changes []Change) {
	for _, l := range p.locators() {
		h := p.hosts[l]
		if h.port != port || h.down != on {
			continue
		}
		h.down = !on
		if h.down && h.state != Gone {
			changes = h.become(l, Gone, "carrier", changes)
		}
	}
	return changes
}

func (p *Probes) locators() []sid.Locator {
	return slices.SortedFunc(maps.Keys(p.hosts), cmp.Compare[sid.Locator])
}

// SetLimits changes when conclusions are drawn, as when the pace changes.
func (p *Probes) SetLimits(l Limits) { p.limits = l }

// Len is how many hosts are probed.
func (p *Probes) Len() int { return len(p.hosts) }
