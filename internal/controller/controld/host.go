package controld

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/places"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

type hostSession = session.Session[apiv1.HostOrder]

// A host is one that ever joined. It is in the plan while it is Here, at each of its places.
type host struct {
	places.Host
	signed   gate.Signatures
	session  *hostSession // nil while its daemon is away
	reported bool         // the session has told its registrations
	failed   bool         // it did not leave by itself: listed as gone
	absences uint64       // ends of streams, and times that it was gone: the lease of one does not end a later one
	version  string
	protocol uint32 // version of its stream
	joined   time.Time
	away     time.Time     // when its stream ended, or it was given up
	ahead    time.Duration // of its clock, before ours
	load     *apiv1.Load
	ordered  map[sid.ServiceID]string // drain modes that the session knows
	meter    events.Meter             // of its events

	heard    uint64 // edition of the network's keys that the session knows
	succeeds bool   // its daemon knows successions of keys
	carriers bool   // and says which instances an agent of boost serves
}

// at is where the host is; nil for one that is not known.
func (h *host) at() *places.Host {
	if h == nil {
		return nil
	}
	return &h.Host
}

// joinHost admits a host or says why not.
func (n *network) joinHost(s *hostSession, j *apiv1.Join) *apiv1.Refused {
	name, err := names.Clean(j.Name, "")
	if err != nil || name != j.Name {
		return &apiv1.Refused{Reason: fmt.Sprintf("host name %.80q: want letters, digits and hyphens, in lower case", j.Name)}
	}
	if err := places.CheckJoin(j); err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	protocol, err := speaks("host "+name, j.Speaks)
	if err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	h := n.hosts[name]
	if refused := n.proves(gate.PeerOf(s.Context()), h, j); refused != nil {
		return refused
	}
	if h != nil && n.alive(h) && !sameHost(h, j) {
		return &apiv1.Refused{Retry: true, Reason: fmt.Sprintf("a host named %s is alive already, on port %s of router %s: give this one another name", name, h.Port, h.Router)}
	}
	if other := n.identityOwner(j.Identity); other != nil && other.Name != name {
		return &apiv1.Refused{Reason: fmt.Sprintf("host %s has the identity %v already: remove the state directory of one of them if it is a copy", other.Name, n.cfg.Space.Identity(j.Identity))}
	}
	first, err := n.places.For(h.at(), name, j.Attachment, j.Locator, nil)
	if err != nil {
		return &apiv1.Refused{Retry: true, Reason: err.Error(), NoRouter: places.ForgottenRouter(err)}
	}
	n.admitHost(s, j, first, protocol)
	return nil
}

// alive reports whether somebody answers for the host: its daemon, or its edge to the routers' probes.
func (n *network) alive(h *host) bool {
	if !h.Here || h.Doubted {
		return false // what answers at a place of yesterday may be somebody else
	}
	answers, silent := n.places.Probes(&h.Host)
	return answers || h.session != nil && !silent
}

// sameHost tells a restarted daemon, or a machine that booted again in its old place, from a second
// host that took the name. A daemon that still runs may be in a new place: its host moved.
func sameHost(h *host, j *apiv1.Join) bool {
	return sameDaemon(h, j) || slices.ContainsFunc(h.All(), func(p store.Place) bool {
		a := j.Attachment
		return p.Router == a.Router && p.Port == a.Port && bytes.Equal(p.MAC, a.Mac) && len(a.Mac) > 0
	})
}

func sameDaemon(h *host, j *apiv1.Join) bool { return h.BootID == j.BootId && h.Netns == j.Netns }

func (n *network) identityOwner(identity uint64) *host {
	if h := n.identities[identity]; h != nil && h.Identity == identity && h.Here && !h.Doubted {
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
		h.session.End(session.ErrReplaced)
	}
	was, before, moved := h.Here, h.All(), sameHost(h, j)
	if h.Doubted {
		n.places.ComeTrue(&h.Host)
		was, before = false, nil
	}
	others, answers := n.places.Others(&h.Host, j, first)
	h.Host.Host = store.Host{Name: j.Name, Key: n.pinned(h, j), Identity: j.Identity, Here: true, BootID: j.BootId, Netns: j.Netns, Place: first, Others: others}
	n.places.Own(&h.Host)
	n.identify(h)
	h.signed.Note(j.Signature, j.SignedUnix, time.Now())
	h.succeeds, h.carriers = j.Succeeds, j.KnowsCarriers
	n.registrations.Joined(h.Name, j.Key, n.members.Succeeded(trust.Host, j.Name, j.Key))
	h.version, h.protocol, h.failed = j.Version, protocol, false
	n.silences.End(h.Name)
	h.session, h.reported, h.ordered = s, false, make(map[sid.ServiceID]string)
	n.settleHost(h)
	n.certificates.During(s.Context(), h.Name)
	h.heard = n.members.Edition()
	n.members.RenewLater(s.Context(), gate.PeerOf(s.Context()), func(c *apiv1.Credential) {
		s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Credential{Credential: c}})
	})
	n.access.Move() // who serves hears where it is before the host does
	n.registrations.Flush()
	s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Joined{Joined: n.hostJoined(h, answers)}})
	if m, _ := n.members.Member(trust.Host, h.Name); len(m.Former) > 0 {
		n.certificates.RenewLeft(h.Name)
	}
	for _, p := range before {
		if p.Locator != 0 && !h.Has(p.Locator) {
			n.places.Quit(&h.Host, p, moved)
		}
	}
	n.places.Save(&h.Host)
	n.joinEvent(h, was, before)
}

func (n *network) joinEvent(h *host, was bool, before []store.Place) {
	l := h.Locator.String()
	switch {
	case was && before[0].Locator != h.Locator:
		n.events.Tell("host.move", h.Name, "host moved to "+h.Router+" "+h.Port, "locator", l, "from", before[0].Locator.String(), "router", h.Router)
	case was:
		n.events.Tell("host.back", h.Name, "host's daemon joined again", "locator", l, "router", h.Router)
	default:
		h.joined = time.Now()
		n.events.Tell("host.join", h.Name, "host joined at "+h.Router+" "+h.Port, "locator", l, "router", h.Router, "version", h.version)
	}
}

// settleHost puts the host into the plan at all its places.
func (n *network) settleHost(h *host) {
	n.places.Settle(&h.Host)
	n.registrations.Settle(h.Name)
}

func (n *network) hostJoined(h *host, others []*apiv1.Attached) *apiv1.Joined {
	j := &apiv1.Joined{
		Network: n.cfg.Network, Locator: h.Locator.String(), Space: n.space(), Domain: n.cfg.Domain, Epoch: n.epoch,
		ProbeIntervalMs: uint32(n.cfg.ProbeInterval.Milliseconds()), Trust: n.cfg.Trust, Others: others, Protocol: h.protocol,
		Controllers: n.controllers.All(), NetworkId: n.id,
		Certificate: n.certificates.For(h.Name, h.Key, h.Locator), Succession: n.members.Succession(h.Name, h.Key), Challenge: n.registrations.Challenge(h.Name),
		Credential: n.members.Fresh(gate.PeerOf(h.session.Context())), Revoked: n.members.RevokedForHosts(), OrdersOnce: true,
	}
	if n.members.Key() != nil {
		j.NetworkKey, j.NetworkKeys = n.members.Key().Public().(ed25519.PublicKey), n.members.PublicKeys()
	}
	for _, p := range h.All() {
		if block, _ := n.routers.Block(p.Router); !slices.Contains(j.Routers, block.String()) {
			j.Routers = append(j.Routers, block.String())
		}
	}
	return j
}

// leave withdraws everything of a host. One that failed is still listed, as gone.
func (n *network) leave(h *host, why string, failed bool) {
	n.places.Leave(&h.Host)
	n.tunnels.Forsake(h.Name, "")
	if since, silent := n.silences.Since(h.Name); silent {
		h.away = since
	}
	n.silences.End(h.Name)
	h.Here, h.failed, h.load = false, failed, nil
	n.registrations.Left(h.Name)
	n.places.Save(&h.Host)
	n.events.Tell("host.leave", h.Name, events.Because("host left", why), "locator", h.Locator.String())
	if failed {
		n.tellGone(h, nil, h.Locators()...)
	}
}
