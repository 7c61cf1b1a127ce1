package places

import (
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// Whether a host lives is the word of its first-hop router, whose probes the host's kernel answers.
// Its daemon's stream is a second, slower witness, heard where the first one has nothing to say: a
// daemon that died or restarts leaves sockets behind that serve well without it.

// Joined is told that a session of a router began: it has said nothing. What was believed of its hosts while it was silent
// is taken back, its own word follows where it differs.
func (x *Places) Joined(router string) {
	x.said[router], x.came[router] = make(map[sid.Locator]plan.HostState), time.Now()
	for _, at := range x.all {
		if at.Router == router && at.state == plan.HostSuspect {
			x.change(at, plan.HostUp, "")
		}
	}
}

// Said takes the word of a first-hop router.
func (x *Places) Said(router string, states []*apiv1.HostState) {
	block, _ := x.Routers.Block(router)
	for _, m := range states {
		s, ok := parseState(m.State)
		if !ok {
			continue
		}
		l := sid.Locator(m.Locator)
		at, ok := x.all[l]
		ours := ok && at.Router == router
		if !ours && !locators.In(block, l) {
			continue // not its to tell, and there are 2^64 of them
		}
		x.said[router][l] = s
		if ours {
			x.change(at, s, m.Reason)
			at.answered = at.answered || s == plan.HostUp
		} else if x.Restored() {
			x.found(block, l)
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

// change acts on a change at one place of a host: the plan first, words later.
func (x *Places) change(at *attachment, s plan.HostState, reason string) {
	if at.state == s {
		return
	}
	h, was, joining := at.host, at.state, !at.answered
	lived := x.State(h)
	at.state = s
	x.Plan.SetHostState(at.Locator, s)
	where := []string{"was", was.String(), "locator", at.Locator.String()}
	switch life := x.State(h); {
	case joining && s != plan.HostGone: // it has just come, or is about to
	case s == plan.HostUp:
		x.Events.Tell("host.back", h.Name, "host answers again", where...)
	case life == plan.HostUp || s == plan.HostGone && life != plan.HostGone:
		x.Events.Tell("host.uplink", h.Name, events.Because("host is "+s.String()+" at "+at.Router+" "+at.Port+", and reached elsewhere", reason), where...)
	case s == plan.HostSuspect:
		x.Events.Tell("host.suspect", h.Name, events.Because("host gets no new flows while it is suspect", reason), where...)
		x.silent(h)
	case lived != plan.HostGone:
		x.Events.Tell("host.gone", h.Name, events.Because("host is gone", reason), where...)
		x.silent(h)
		x.Hosts.Lease(h.Name)
	}
	if _, silent := x.Silences.Since(h.Name); lived == plan.HostUp && x.State(h) != plan.HostUp && !silent && !joining {
		x.silent(h) // its last uplink went another way than those before
	}
	if x.State(h) == plan.HostUp {
		x.Silences.End(h.Name)
		x.Changed()
		if lived != plan.HostUp {
			x.Hosts.Back(h.Name)
		}
	}
}

// silent is told that no place of a host answers any more.
func (x *Places) silent(h *Host) {
	x.Silences.Begin(h.Name)
	x.Changed()
}

// State is that of the host's place that is most alive.
func (x *Places) State(h *Host) plan.HostState {
	best := plan.HostGone
	for _, at := range x.at(h) {
		best = min(best, at.state)
	}
	return best
}

// Text is the state of a host for people.
func (x *Places) Text(h *Host) string {
	state, answered := x.State(h), false
	for _, at := range x.at(h) {
		answered = answered || at.answered
	}
	if state == plan.HostSuspect && !answered {
		return "joining"
	}
	return state.String()
}

// probed is what the first-hop router says of a place; ok is false where it says nothing.
func (x *Places) probed(at *attachment) (plan.HostState, bool) {
	if !x.Routers.Here(at.Router) {
		return plan.HostUp, false
	}
	s, ok := x.said[at.Router][at.Locator]
	return s, ok
}

// Probes say whether a host answers at one of its places, and whether it does not at one.
func (x *Places) Probes(h *Host) (answers, silent bool) {
	for _, at := range x.at(h) {
		state, probed := x.probed(at)
		answers = answers || probed && state == plan.HostUp
		silent = silent || probed && state != plan.HostUp
	}
	return answers, silent
}

// Witnesses says whether a router probes the host, or which one is away that would.
func (x *Places) Witnesses(h *Host) (probed bool, away string) {
	for _, at := range x.at(h) {
		_, ok := x.probed(at)
		probed = probed || ok
		if _, known := x.Routers.Block(at.Router); known && !x.Routers.Here(at.Router) {
			away = at.Router
		}
	}
	return probed, away
}

// Early reports whether a router of the host came less than a while ago: it has to be told whom to probe, and to probe, before it
// can say a word.
func (x *Places) Early(h *Host, while time.Duration) bool {
	return slices.ContainsFunc(x.at(h), func(at *attachment) bool {
		return x.Routers.Here(at.Router) && time.Since(x.came[at.Router]) < while
	})
}

// Unreachable is for a router that stays away, and that no neighbour hears: its hosts that say nothing themselves are
// suspect, so that others are preferred where there are any.
func (x *Places) Unreachable(router string) {
	for _, at := range x.all {
		if at.Router == router && !x.Hosts.Connected(at.host.Name) && at.state == plan.HostUp {
			x.change(at, plan.HostSuspect, "its first-hop router "+router+" is silent")
		}
	}
}

// Forget is for a router that is none of the network's any more. To its hosts it is as if they had been unplugged there;
// they are returned, once for each place.
func (x *Places) Forget(router string) (hosts []string) {
	delete(x.said, router)
	delete(x.came, router)
	for _, at := range x.all {
		if at.Router == router {
			x.change(at, plan.HostGone, "its router "+router+" was forgotten")
			hosts = append(hosts, at.host.Name)
		}
	}
	return hosts
}

// HostsAt are the hosts that are attached at a router, as far as anybody knows.
func (x *Places) HostsAt(router string) (names []string) {
	for _, at := range x.all {
		if at.Router == router && at.state != plan.HostGone && !slices.Contains(names, at.host.Name) {
			names = append(names, at.host.Name)
		}
	}
	slices.Sort(names)
	return names
}
