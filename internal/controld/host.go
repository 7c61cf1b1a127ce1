package controld

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

type hostSession = session[apiv1.HostOrder]

// A host is one that ever joined. It is in the plan while it is Here, at each of its places.
type host struct {
	store.Host
	signed   signatures
	session  *hostSession // nil while its daemon is away
	reported bool         // the session has told its registrations
	doubted  bool         // only a restored backup says that it is here
	failed   bool         // it did not leave by itself: listed as gone
	silence  *silence     // nil while it answers somewhere
	absences uint64       // ends of streams, and times that it was gone: the lease of one does not end a later one
	version  string
	protocol uint32 // version of its stream
	joined   time.Time
	load     *apiv1.Load
	wanted   map[sid.Triple]wish      // all that it registered, also what was refused
	told     map[sid.ServiceID]uint64 // edition of the policies that the session knows
	ordered  map[sid.ServiceID]string // drain modes that the session knows
	meter    meter                    // of its events
	owns     []sid.Locator            // as counted in the network's owned

	heard     uint64 // edition of the network's keys that the session knows
	succeeds  bool   // its daemon knows successions of keys
	shown     []byte // the public key of the session's Join, proven only in a network with keys
	challenge []byte // that the session's signatures quote
}

// A wish is a registration as the host sent it. Those for services that do not exist yet, or that it may
// not serve, are kept: they count as soon as it may.
type wish struct {
	ready   plan.Readiness
	since   time.Time
	up      bool   // it is an instance
	told    bool   // of an instance: that it is ready is known
	refused string // why it is none

	permit    []byte // as it was shown
	signature []byte
	proved    bool  // both were looked at
	until     int64 // when the permit ends that is watched
	warned    bool  // that it ends soon
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
	protocol, err := speaks("host "+name, j.Speaks)
	if err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	h := n.hosts[name]
	if refused := n.proves(s.peer, h, j); refused != nil {
		return refused
	}
	if h != nil && n.alive(h) && !sameHost(h, j) {
		return &apiv1.Refused{Retry: true, Reason: fmt.Sprintf("a host named %s is alive already, on port %s of router %s: give this one another name", name, h.Port, h.Router)}
	}
	if other := n.identityOwner(j.Identity); other != nil && other.Name != name {
		return &apiv1.Refused{Reason: fmt.Sprintf("host %s has the identity %v already: remove the state directory of one of them if it is a copy", other.Name, n.cfg.Space.Identity(j.Identity))}
	}
	first, err := n.placeFor(h, name, j.Attachment, j.Locator, nil)
	if err != nil {
		return &apiv1.Refused{Retry: true, Reason: err.Error()}
	}
	n.admitHost(s, j, first, protocol)
	return nil
}

// alive reports whether somebody answers for the host: its daemon, or its edge to the routers' probes.
func (n *network) alive(h *host) bool {
	if !h.Here || h.doubted {
		return false // what answers at a place of yesterday may be somebody else
	}
	answers, silent := false, false
	for _, at := range n.at(h) {
		state, probed := n.probed(at)
		answers = answers || probed && state == plan.HostUp
		silent = silent || probed && state != plan.HostUp
	}
	return answers || h.session != nil && !silent
}

// sameHost tells a restarted daemon, or a machine that booted again in its old place, from a second
// host that took the name. A daemon that still runs may be in a new place: its host moved.
func sameHost(h *host, j *apiv1.Join) bool {
	return sameDaemon(h, j) || slices.ContainsFunc(h.all(), func(p store.Place) bool {
		a := j.Attachment
		return p.Router == a.Router && p.Port == a.Port && bytes.Equal(p.MAC, a.Mac) && len(a.Mac) > 0
	})
}

func sameDaemon(h *host, j *apiv1.Join) bool { return h.BootID == j.BootId && h.Netns == j.Netns }

func (n *network) identityOwner(identity uint64) *host {
	if h := n.identities[identity]; h != nil && h.Identity == identity && h.Here && !h.doubted {
		return h
	}
	return nil
}

// identify notes whose an identity is. What a host had before is told by its record, which has another one now.
func (n *network) identify(h *host) {
	if h.Identity != 0 {
		n.identities[h.Identity] = h
	}
}

// admitHost puts the host where it says it is, first at its new places, then away from those that it no
// longer names: what still comes there is sent after it.
func (n *network) admitHost(s *hostSession, j *apiv1.Join, first store.Place, protocol uint32) {
	h := n.hosts[j.Name]
	if h == nil {
		h = &host{}
		n.hosts[j.Name] = h
	}
	if h.session != nil {
		h.session.end(errReplaced)
	}
	was, before, moved := h.Here, h.all(), sameHost(h, j)
	if h.doubted {
		n.comeTrue(h)
		was, before = false, nil
	}
	others, answers := n.othersOf(h, j, first)
	h.Host = store.Host{Name: j.Name, Key: n.pinned(h, j), Identity: j.Identity, Here: true, BootID: j.BootId, Netns: j.Netns, Place: first, Others: others}
	n.own(h)
	n.identify(h)
	h.signed.note(j)
	h.succeeds = j.Succeeds
	n.showKey(h, j.Key, n.succeeded(trust.Host, j.Name, j.Key))
	h.version, h.protocol, h.failed, h.silence = j.Version, protocol, false, nil
	h.session, h.reported, h.told, h.ordered = s, false, make(map[sid.ServiceID]uint64), make(map[sid.ServiceID]string)
	delete(n.news, h)
	if h.wanted == nil {
		h.wanted = make(map[sid.Triple]wish)
	}
	n.settleHost(h)
	n.certifyLater(h, s)
	h.heard = n.keysEdition
	n.renewLater(s.peer, func() bool { return h.session == s }, func(c *apiv1.Credential) {
		s.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Credential{Credential: c}})
	})
	n.moveGuards() // who serves hears where it is before the host does
	n.tellNews()
	s.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Joined{Joined: n.hostJoined(h, answers)}})
	if m := n.members[memberName{string(trust.Host), h.Name}]; len(m.Former) > 0 {
		n.certifyFormer(h)
	}
	for _, p := range before {
		if p.Locator != 0 && !h.has(p.Locator) {
			n.quit(h, p, moved)
		}
	}
	n.save(h)
	n.joinEvent(h, was, before)
}

func (n *network) joinEvent(h *host, was bool, before []store.Place) {
	l := h.Locator.String()
	switch {
	case was && before[0].Locator != h.Locator:
		n.event("host.move", h.Name, "host moved to "+h.Router+" "+h.Port, "locator", l, "from", before[0].Locator.String(), "router", h.Router)
	case was:
		n.event("host.back", h.Name, "host's daemon joined again", "locator", l, "router", h.Router)
	default:
		h.joined = time.Now()
		n.event("host.join", h.Name, "host joined at "+h.Router+" "+h.Port, "locator", l, "router", h.Router, "version", h.version)
	}
}

// settleHost puts the host into the plan at all its places.
func (n *network) settleHost(h *host) {
	for _, p := range h.all() {
		n.settle(h, p)
	}
	n.plan.Prefer(h.Locator)
	for t, w := range h.wanted { // of before: until the snapshot replaces them
		if w.up {
			_ = n.plan.Register(h.Name, t, w.ready) // fails for services that do not exist any more
		}
	}
}

func (n *network) hostJoined(h *host, others []*apiv1.Attached) *apiv1.Joined {
	j := &apiv1.Joined{
		Network: n.cfg.Network, Locator: h.Locator.String(), Space: n.space(), Domain: n.cfg.Domain, Epoch: n.epoch,
		ProbeIntervalMs: uint32(n.cfg.ProbeInterval.Milliseconds()), Trust: n.cfg.Trust, Others: others, Protocol: h.protocol,
		Controllers: n.all(), NetworkId: n.id,
		Certificate: n.certificate(h.Key, h.Locator), Succession: n.succession(h), Challenge: h.challenge,
		Credential: n.freshIfDue(h.session.peer), Revoked: n.revokedForHosts(),
	}
	if n.key != nil {
		j.NetworkKey, j.NetworkKeys = n.key.Public().(ed25519.PublicKey), n.networkKeys()
	}
	for _, p := range h.all() {
		if r := n.blockLocator(n.routers[p.Router].Block).String(); !slices.Contains(j.Routers, r) {
			j.Routers = append(j.Routers, r)
		}
	}
	return j
}

// leave withdraws everything of a host. One that failed is still listed, as gone.
func (n *network) leave(h *host, why string, failed bool) {
	n.stopFollowing(h)
	if h.Here {
		for _, p := range h.all() {
			n.vacate(p)
			n.hold(p.Locator, h.Name)
			n.plan.SetLeft(p.Locator, true)
		}
	}
	n.forsake(h.Name, "")
	h.Here, h.failed, h.wanted, h.load, h.silence = false, failed, nil, nil, nil
	n.save(h)
	n.event("host.leave", h.Name, because("host left", why), "locator", h.Locator.String())
	if failed {
		n.tellGone(h, nil, h.locators()...)
	}
}
