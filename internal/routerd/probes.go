package routerd

import (
	"cmp"
	"maps"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// A probeState is what answers and silence say of a host, docs/protocol.md §5.3.
type probeState string

const (
	hostUnknown probeState = ""
	hostUp      probeState = "up"
	hostSuspect probeState = "suspect"
	hostGone    probeState = "gone"
)

// unseenFactor is how much longer a host may be silent that never answered: it may be about to set
// itself up, and its weight is 0 by then.
const unseenFactor = 5

// limits are numbers of unanswered probes.
type limits struct {
	suspect uint32
	gone    uint32
}

// A hostChange is a report of the prober.
type hostChange struct {
	Locator sid.Locator
	State   probeState
	Missed  uint32
	Reason  string // "probes", "carrier"
}

// probes counts the unanswered probes of each host. It has no clock: its owner says when a round of
// probes goes out, after it has handed over all answers that had arrived.
type probes struct {
	limits limits
	hosts  map[sid.Locator]*probedHost
}

type probedHost struct {
	port   string
	first  uint64 // nonce of the first probe, so that old answers cannot be taken for new ones
	sent   uint64
	missed uint32 // probes sent since the last answer
	state  probeState
	seen   bool // has answered once
	down   bool // its port has no carrier
}

func newProbes(l limits) *probes { return &probes{limits: l, hosts: map[sid.Locator]*probedHost{}} }

// add begins to probe a host; nonce is random. A host that is there stays as it is, unless it moved
// to another port.
func (p *probes) add(l sid.Locator, port string, nonce uint64) {
	if h := p.hosts[l]; h != nil {
		h.port = port
		return
	}
	p.hosts[l] = &probedHost{port: port, first: nonce}
}

func (p *probes) remove(l sid.Locator) { delete(p.hosts, l) }

// round counts what is unanswered, and returns the changes and, through send, the next probes.
func (p *probes) round(send func(l sid.Locator, nonce uint64)) (changes []hostChange) {
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
func (h *probedHost) count(l sid.Locator, lim limits, changes []hostChange) []hostChange {
	gone := lim.gone
	if !h.seen {
		gone *= unseenFactor
	}
	switch {
	case h.state == hostGone:
	case h.missed >= gone:
		return h.become(l, hostGone, "probes", changes)
	case h.missed >= lim.suspect && h.state != hostSuspect:
		return h.become(l, hostSuspect, "probes", changes)
	}
	return changes
}

func (h *probedHost) become(l sid.Locator, s probeState, reason string, changes []hostChange) []hostChange {
	h.state = s
	return append(changes, hostChange{l, s, h.missed, reason})
}

// answered takes an answer to any probe that this host was sent.
func (p *probes) answered(l sid.Locator, nonce uint64) (changes []hostChange) {
	h := p.hosts[l]
	if h == nil || nonce-h.first >= h.sent || h.down {
		return nil
	}
	h.missed, h.seen = 0, true
	if h.state == hostUp {
		return nil
	}
	return h.become(l, hostUp, "probes", nil)
}

// carrier says whether the port has one. Without, its hosts are gone at once; with, they are up when
// they answer.
func (p *probes) carrier(port string, on bool) (changes []hostChange) {
	for _, l := range p.locators() {
		h := p.hosts[l]
		if h.port != port || h.down != on {
			continue
		}
		h.down = !on
		if h.down && h.state != hostGone {
			changes = h.become(l, hostGone, "carrier", changes)
		}
	}
	return changes
}

func (p *probes) locators() []sid.Locator {
	return slices.SortedFunc(maps.Keys(p.hosts), cmp.Compare[sid.Locator])
}
