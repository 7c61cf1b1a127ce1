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
		if at, ok := n.places[l]; ok && at.Router == r.Name {
			n.hostState(at, s, m.Reason)
			at.answered = at.answered || s == plan.HostUp
		} else if n.restored != nil {
			n.found(r, l)
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

// hostState acts on a change at one place of a host: the plan first, words later.
func (n *network) hostState(at *attachment, s plan.HostState, reason string) {
	if at.state == s {
		return
	}
	h, was, joining := at.host, at.state, !at.answered
	lived := n.state(h)
	at.state = s
	n.plan.SetHostState(at.Locator, s)
	where := []string{"was", was.String(), "locator", at.Locator.String()}
	switch life := n.state(h); {
	case joining && s != plan.HostGone: // it has just come, or is about to
	case s == plan.HostUp:
		n.event("host.back", h.Name, "host answers again", where...)
	case life == plan.HostUp || s == plan.HostGone && life != plan.HostGone:
		n.event("host.uplink", h.Name, because("host is "+s.String()+" at "+at.Router+" "+at.Port+", and reached elsewhere", reason), where...)
	case s == plan.HostSuspect:
		n.event("host.suspect", h.Name, because("host gets no new flows while it is suspect", reason), where...)
		n.silent(h)
	case lived != plan.HostGone:
		n.event("host.gone", h.Name, because("host is gone", reason), where...)
		n.silent(h)
		n.lease(h)
	}
	if lived == plan.HostUp && n.state(h) != plan.HostUp && h.silence == nil && !joining {
		n.silent(h) // its last uplink went another way than those before
	}
	if n.state(h) == plan.HostUp {
		h.silence, n.changedHands = nil, true
	}
}

// abandon says that nobody is at a locator of a host that lives on elsewhere, and that it went nowhere.
func (n *network) abandon(h *host, l sid.Locator) {
	for from, r := range n.redirects {
		if r.To == l {
			n.endRedirect(from)
			n.plan.SetLeft(from, true)
		}
	}
	n.plan.SetLeft(l, true)
	n.tellGone(h, nil, uint64(l))
}

// lease decides about the host in a while, unless something happens meanwhile.
func (n *network) lease(h *host) {
	h.absences++
	absence := h.absences
	n.loop.after(n.cfg.Lease, func() {
		if h.absences == absence {
			n.leaseOver(h)
		}
	})
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
	if h.Here {
		n.lease(h)
	}
}

// probed is what the first-hop router says of a place; ok is false where it says nothing.
func (n *network) probed(at *attachment) (plan.HostState, bool) {
	r, ok := n.routers[at.Router]
	if !ok || r.session == nil {
		return plan.HostUp, false
	}
	s, ok := r.states[at.Locator]
	return s, ok
}

// stateText is the state of a host for people.
func (n *network) stateText(h *host) string {
	state, answered := n.state(h), false
	for _, at := range n.at(h) {
		answered = answered || at.answered
	}
	if state == plan.HostSuspect && !answered {
		return "joining"
	}
	return state.String()
}

// leaseOver decides about a host that is gone, or whose daemon stayed away: the routers' word counts, and
// where no router can say anything its instances stay, for then it is us who see nothing.
func (n *network) leaseOver(h *host) {
	if h.session != nil || !h.Here {
		return // one that is gone and has a stream may lie unplugged: its flows wait for it
	}
	gone := n.state(h) == plan.HostGone
	probed, away := n.witnesses(h)
	switch {
	case gone && (probed || away == nil):
		n.leave(h, "neither its edge nor its daemon answers", true)
	case probed:
		n.event("host.silent", h.Name, "host's daemon is away; its edge answers probes, so its instances stay")
	case away != nil:
		n.event("host.silent", h.Name, "host's daemon and its router "+away.Name+" are away; its instances stay")
		n.unreachableHosts(away)
	default:
		n.leave(h, "its daemon is away and its router does not know it", true)
	}
}

// witnesses says whether a router probes the host, or which one is away that would.
func (n *network) witnesses(h *host) (probed bool, away *router) {
	for _, at := range n.at(h) {
		_, ok := n.probed(at)
		probed = probed || ok
		if r := n.routers[at.Router]; r != nil && r.session == nil {
			away = r
		}
	}
	return probed, away
}
