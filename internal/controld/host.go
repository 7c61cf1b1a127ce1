package controld

import (
	"bytes"
	"fmt"
	"net/netip"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

type hostSession = session[apiv1.HostOrder]

// A host is one that ever joined. It is in the plan while it is Here.
type host struct {
	store.Host
	session  *hostSession // nil while its daemon is away
	reported bool         // the session has told its registrations
	failed   bool         // it did not leave by itself: listed as gone
	answered bool         // a probe, in this stay: silence before that is a host that sets itself up
	absences uint64       // ends of streams, so that the lease of one does not end a later one
	state    plan.HostState
	version  string
	joined   time.Time
	load     *apiv1.Load
	wanted   map[sid.Triple]wish      // all that it registered, also what was refused
	told     map[sid.ServiceID]uint64 // version of the policies that the session knows
}

// A wish is a registration as the host sent it. Those for services that do not exist yet are kept:
// they count as soon as it does.
type wish struct {
	ready plan.Readiness
	since time.Time
}

// joinHost admits a host or says why not.
func (n *network) joinHost(s *hostSession, j *apiv1.Join) *apiv1.Refused {
	name, err := names.Clean(j.Name, "")
	if err != nil || name != j.Name {
		return &apiv1.Refused{Reason: fmt.Sprintf("host name %.80q: want letters, digits and hyphens, in lower case", j.Name)}
	}
	if err := checkJoin(j); err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	r, ok := n.routers[j.GetAttachment().GetRouter()]
	if !ok {
		return &apiv1.Refused{Retry: true, Reason: fmt.Sprintf("first-hop router %.80q has not joined the network yet", j.GetAttachment().GetRouter())}
	}
	h := n.hosts[name]
	if h != nil && n.alive(h) && !sameHost(h, j) {
		return &apiv1.Refused{Retry: true, Reason: fmt.Sprintf("a host named %s is alive already, on port %s of router %s: give this one another name", name, h.Port, h.Router)}
	}
	if other := n.identityOwner(j.Identity); other != nil && other.Name != name {
		return &apiv1.Refused{Reason: fmt.Sprintf("host %s has the identity %v already: remove the state directory of one of them if it is a copy", other.Name, n.cfg.Space.Identity(j.Identity))}
	}
	asked, _ := netip.ParsePrefix(j.Locator)
	l, err := n.locatorFor(h, name, r, locatorOf(asked))
	if err != nil {
		return &apiv1.Refused{Retry: true, Reason: err.Error()}
	}
	n.admitHost(s, j, l)
	return nil
}

func locatorOf(p netip.Prefix) sid.Locator {
	if !p.IsValid() || !p.Addr().Is6() {
		return 0
	}
	return sid.LocatorOf(p.Addr())
}

// alive reports whether somebody answers for the host: its daemon, or its edge to the router's probes.
func (n *network) alive(h *host) bool {
	state, probed := n.probed(h)
	return h.Here && (h.session != nil && (!probed || state == plan.HostUp) || probed && state == plan.HostUp)
}

// probed is what the first-hop router says of the host; ok is false where it says nothing.
func (n *network) probed(h *host) (plan.HostState, bool) {
	r, ok := n.routers[h.Router]
	if !ok || r.session == nil {
		return plan.HostUp, false
	}
	s, ok := r.states[h.Locator]
	return s, ok
}

// sameHost tells a restarted daemon, or a machine that booted again in its old place, from a second
// host that took the name.
func sameHost(h *host, j *apiv1.Join) bool {
	a := j.Attachment
	daemon := h.BootID == j.BootId && h.Netns == j.Netns
	place := h.Router == a.Router && h.Port == a.Port && bytes.Equal(h.MAC, a.Mac) && len(a.Mac) > 0
	return daemon || place
}

func mac(b []byte) (m [6]byte) {
	if len(b) == len(m) {
		copy(m[:], b)
	}
	return m
}

func (n *network) identityOwner(identity uint64) *host {
	for _, h := range n.hosts {
		if identity != 0 && h.Identity == identity && h.Here {
			return h
		}
	}
	return nil
}

func (n *network) admitHost(s *hostSession, j *apiv1.Join, l sid.Locator) {
	h := n.hosts[j.Name]
	if h == nil {
		h = &host{}
		n.hosts[j.Name] = h
	}
	if h.session != nil {
		h.session.end(errReplaced)
	}
	was := h.Here && n.places[h.Locator] == h
	stays := was && h.Locator == l
	if was && !stays {
		n.vacate(h)
	}
	h.place(j, l)
	h.session, h.reported, h.told = s, false, make(map[sid.ServiceID]uint64)
	delete(n.news, h)
	if h.wanted == nil {
		h.wanted = make(map[sid.Triple]wish)
	}
	n.settleHost(h)
	if !stays {
		h.answered = n.hasAnswered(h)
	}
	n.saver.later(store.PutHost(h.Host), store.DeleteQuarantine(h.Locator))
	if was {
		n.event("host.back", h.Name, "host's daemon joined again", "locator", l.String(), "router", h.Router)
	} else {
		h.joined = time.Now()
		n.event("host.join", h.Name, "host joined at "+h.Router+" "+h.Port, "locator", l.String(), "router", h.Router, "version", h.version)
	}
	s.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Joined{Joined: n.hostJoined(h)}})
}

func (h *host) place(j *apiv1.Join, l sid.Locator) {
	a := j.Attachment
	h.Host = store.Host{
		Name: j.Name, Key: j.Key, Locator: l, Identity: j.Identity, Here: true,
		Router: a.Router, Port: a.Port, LinkLocal: a.LinkLocal, MAC: a.Mac, BootID: j.BootId, Netns: j.Netns,
	}
	h.version, h.failed = j.Version, false
}

// settleHost puts the host into the plan as its router sees it.
func (n *network) settleHost(h *host) {
	h.state = plan.HostUp
	if s, ok := n.probed(h); ok {
		h.state = s
	}
	ll, _ := netip.ParseAddr(h.LinkLocal)
	n.places[h.Locator] = h
	delete(n.quarantine, h.Locator)
	n.plan.SetHost(plan.Host{
		Name: h.Name, Locator: h.Locator, Router: h.Router, Port: h.Port, LinkLocal: ll.WithZone(""), MAC: mac(h.MAC), State: h.state,
	})
	for t, w := range h.wanted { // of before: until the snapshot replaces them
		_ = n.plan.Register(h.Locator, t, w.ready) // fails for services that do not exist
	}
}

func (n *network) hostJoined(h *host) *apiv1.Joined {
	return &apiv1.Joined{
		Network: n.cfg.Network, Locator: h.Locator.String(), Space: n.space(), Domain: n.cfg.Domain, Epoch: n.epoch,
		ProbeIntervalMs: uint32(n.cfg.ProbeInterval.Milliseconds()),
		Routers:         []string{n.blockLocator(n.routers[h.Router].Block).String()},
	}
}

// vacate takes the host out of the plan; its locator is kept for it for a while.
func (n *network) vacate(h *host) {
	n.plan.RemoveHost(h.Locator)
	delete(n.places, h.Locator)
	if r, ok := n.routers[h.Router]; ok {
		delete(r.states, h.Locator)
	}
	n.hold(h.Locator, h.Name)
}

// leave withdraws everything of a host. One that failed is still listed, as gone.
func (n *network) leave(h *host, why string, failed bool) {
	if h.Here {
		n.vacate(h)
	}
	h.Here, h.failed, h.state, h.wanted, h.load = false, failed, plan.HostGone, nil, nil
	n.saver.later(store.PutHost(h.Host))
	n.event("host.leave", h.Name, because("host left", why), "locator", h.Locator.String())
	if failed {
		n.tellGone(h.Locator)
	}
}
