package controld

import (
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
)

// No router can tell a host that is cut off for good from one that is back in three seconds, here or elsewhere:
// both answer no probe. What is done about the flows to it is a matter of each service, docs/protocol.md §5.3:
// where others serve it, and after as much patience as its policy has. Where nobody else does, its flows wait.

// A silence is from the last answer of a host's last place to the first of any.
type silence struct {
	since  time.Time
	warned map[sid.ServiceID]bool // services of which the other hosts were told
}

// silent is told that no place of a host answers any more, or that a router has given it up by now: then all
// are told once more, for it may have answered them then. Who else is silent is known once the router's whole report
// was read: at the next flush.
func (n *network) silent(h *host) {
	again := h.silence != nil
	if !again {
		h.silence = &silence{since: time.Now()}
	}
	h.silence.warned = make(map[sid.ServiceID]bool)
	n.changedHands = true
	if again {
		return
	}
	this := h.silence
	for _, p := range n.patiences(h) {
		n.loop.after(p, func() {
			if h.silence == this {
				n.warn(h)
			}
		})
	}
}

// patiences are the different ones of what the host serves, but none at all.
func (n *network) patiences(h *host) (list []time.Duration) {
	seen := map[time.Duration]bool{0: true}
	for id := range h.triples() {
		if r, ok := n.names.ByID(id); ok && !seen[r.Policy.Waits()] {
			seen[r.Policy.Waits()] = true
			list = append(list, r.Policy.Waits())
		}
	}
	return list
}

// warn tells the other hosts of the services of a silent host that others serve and that need not wait longer.
func (n *network) warn(h *host) {
	var services []*apiv1.ServiceRef
	for id, triples := range h.triples() {
		r, exists := n.names.ByID(id)
		if !exists || h.silence.warned[id] || time.Since(h.silence.since) < r.Policy.Waits() || !n.replaceable(h, triples) {
			continue
		}
		h.silence.warned[id] = true
		services = append(services, &apiv1.ServiceRef{Ss: id.SS, Suffix: uint64(id.Suffix)})
	}
	if len(services) > 0 {
		n.tellGone(h, services, h.locators()...)
	}
}

// replaceable reports whether others serve all that the host serves of a service, and no new flow is sent to it.
func (n *network) replaceable(h *host, triples []sid.Triple) bool {
	for _, t := range triples {
		if itself, others := n.plan.Takers(t, h.Name); itself || !others {
			return false
		}
	}
	return true
}

// replaced looks again at the hosts that do not answer, when an instance appeared.
func (n *network) replaced() {
	for _, h := range n.hosts {
		if h.Here && h.silence != nil {
			n.warn(h)
		}
	}
}

// locators are those of all places of the host.
func (h *host) locators() (list []uint64) {
	for _, p := range h.all() {
		list = append(list, uint64(p.Locator))
	}
	return list
}
