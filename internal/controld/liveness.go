package controld

import (
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// Whether a host lives is the word of its first-hop router, whose probes the host's kernel answers.
// Its daemon's stream is a second, slower witness, heard where the first one has nothing to say: a
// daemon that died or restarts leaves sockets behind that serve well without it.

// hostStates takes the word of a first-hop router.
func (n *network) hostStates(r *router, states []*apiv1.HostState) {
	for _, m := range states {
		s, ok := parseState(m.State)
		if !ok {
			continue
		}
		l := sid.Locator(m.Locator)
		r.states[l] = s
		if h, ok := n.places[l]; ok && h.Router == r.Name {
			n.hostState(h, s, m.Reason)
			h.answered = h.answered || s == plan.HostUp
		}
	}
}

func parseState(s string) (plan.HostState, bool) {
	for _, state := range []plan.HostState{plan.HostUp, plan.HostSuspect, plan.HostGone} {
		if s == state.String() {
			return state, true
		}
	}
	return 0, false
}

// hostState acts on a change: the plan first, words later.
func (n *network) hostState(h *host, s plan.HostState, reason string) {
	if h.state == s {
		return
	}
	was, joining := h.state, !h.answered
	h.state = s
	n.plan.SetHostState(h.Locator, s)
	switch {
	case joining && s != plan.HostGone: // it has just come, or is about to
	case s == plan.HostSuspect:
		n.event("host.suspect", h.Name, because("host gets no new flows while it is suspect", reason), "was", was.String())
	case s == plan.HostUp:
		n.event("host.back", h.Name, "host answers again", "was", was.String())
	default:
		n.event("host.gone", h.Name, because("host is gone", reason), "was", was.String())
		n.tellGone(h.Locator)
		n.abandoned(h)
	}
}

// abandoned ends the stay of a host that neither answers nor has a stream.
func (n *network) abandoned(h *host) {
	if h.Here && h.session == nil && h.state == plan.HostGone {
		n.leave(h, "neither its edge nor its daemon answers", true)
	}
}

// lostHost is told that a host's stream ended. Nothing is withdrawn by that alone.
func (n *network) lostHost(name string, s *hostSession, err error) {
	h, ok := n.hosts[name]
	if !ok || h.session != s {
		return
	}
	h.session, h.reported = nil, false
	if err == errSlow {
		n.metrics.dropped.Inc()
	}
	if !h.Here {
		return
	}
	if h.state == plan.HostGone {
		n.abandoned(h)
		return
	}
	h.absences++
	absence := h.absences
	n.loop.after(n.cfg.Lease, func() {
		if h.absences == absence {
			n.leaseOver(h)
		}
	})
}

// hasAnswered reports whether the router has heard the host answer.
func (n *network) hasAnswered(h *host) bool {
	s, probed := n.probed(h)
	return probed && s == plan.HostUp
}

// stateText is the state of a host for people.
func (h *host) stateText() string {
	if h.state == plan.HostSuspect && !h.answered {
		return "joining"
	}
	return h.state.String()
}

// leaseOver decides about a host whose daemon stayed away: the router's word counts, and where no
// router can say anything its instances stay, for then it is us who see nothing.
func (n *network) leaseOver(h *host) {
	if h.session != nil || !h.Here {
		return
	}
	r := n.routers[h.Router]
	_, probed := n.probed(h)
	switch {
	case probed:
		n.event("host.silent", h.Name, "host's daemon is away; its edge answers probes, so its instances stay")
	case r.session == nil:
		n.event("host.silent", h.Name, "host's daemon and its router "+r.Name+" are away; its instances stay")
		n.unreachableHosts(r)
	default:
		n.leave(h, "its daemon is away and its router does not know it", true)
	}
}
