// Package links knows what the routers of a network report of their links, and what of it counts. The loop owns it.
package links

import (
	"net/netip"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
)

// Links are those of all routers of a network.
type Links struct {
	routers map[string]*router
	plan    Plan
	saver   Saver
	events  Events
	refused Counter // reports
}

// A router is one that ever joined.
type router struct {
	name    string
	here    bool               // its session stands
	whole   bool               // and has told all links: it looks for no more
	exceeds bool               // and some that were refused
	said    []*apiv1.Neighbour // its links, as it told last
	links   []*apiv1.Neighbour // and those that count, perhaps of before the restart
	stored  []store.Link       // the same in the store
}

// A Plan makes routes of links.
type Plan interface {
	SetLinks(router string, links []plan.Link)
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// New makes the links of a network without routers.
func New(plan Plan, saver Saver, events Events, refused Counter) *Links {
	return &Links{routers: make(map[string]*router), plan: plan, saver: saver, events: events, refused: refused}
}

// Know takes a router that is known and not here.
func (x *Links) Know(name string) { x.routers[name] = &router{name: name} }

// Joined is told that a session of a router that is known began: it has told nothing.
func (x *Links) Joined(name string) {
	r := x.routers[name]
	r.here, r.whole = true, false
}

// Left is told that a router's session ended: its links stay what they were.
func (x *Links) Left(name string) {
	r := x.routers[name]
	r.here, r.whole = false, false
}

// Forgotten is told that a router is none of the network's any more.
func (x *Links) Forgotten(name string) { delete(x.routers, name) }

// Report takes what a router says of its links. They are stored, so that after a restart paths
// through a router that is still away are kept: its kernel forwards on.
func (x *Links) Report(name string, m *apiv1.Neighbours) {
	r := x.routers[name]
	links, refused := x.thatCount(r, m.GetLinks())
	if refused != nil {
		x.refused.Inc()
	}
	if refused != nil && !r.exceeds { // whoever greets a router can have it report again and again
		x.events.Tell("router.error", r.name, events.Because("some of the links that the router reports are refused, the others count", refused.Error()))
	}
	r.exceeds = refused != nil
	r.said, r.whole = links, !m.GetPartial()
	x.believe(r)
	if !r.whole {
		return
	}
	for _, other := range x.routers { // what was kept for as long as nobody had heard r
		if other != r && other.here && other.whole && slices.ContainsFunc(other.links, func(l *apiv1.Neighbour) bool { return l.Peer == name }) {
			x.believe(other)
		}
	}
}

// believe settles what counts of a router's links: what it says, and what was known of ports that it says nothing of,
// while it looks for its neighbours, or while the neighbour there does not greet because it is away.
func (x *Links) believe(r *router) {
	links := slices.Clone(r.said)
	for _, l := range elsewhere(r.links, r.said) {
		switch peer, known := x.routers[l.Peer]; {
		case !r.whole:
			links = append(links, l)
		case known && (!peer.here || !peer.whole):
			links = append(links, silent(l))
		}
	}
	x.tell(r, links)
	r.links = links
	x.plan.SetLinks(r.name, planLinks(links))
	record := store.Links{Router: r.name, Links: storedLinks(links)}
	if !slices.Equal(record.Links, r.stored) {
		r.stored = record.Links
		x.saver.Later(store.PutLinks(record))
	}
}

// silent is a link on which nobody greets any more.
func silent(l *apiv1.Neighbour) *apiv1.Neighbour {
	if !l.Up {
		return l
	}
	return &apiv1.Neighbour{Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: l.Via, Cost: l.Cost, Reason: "hello"}
}

// elsewhere are the links on ports that none of those named is on.
func elsewhere(links, named []*apiv1.Neighbour) (rest []*apiv1.Neighbour) {
	for _, l := range links {
		if !slices.ContainsFunc(named, func(x *apiv1.Neighbour) bool { return x.Port == l.Port }) {
			rest = append(rest, l)
		}
	}
	return rest
}

// Restore puts the links of before the restart into the plan, until the router tells its own.
func (x *Links) Restore(record store.Links) {
	r, ok := x.routers[record.Router]
	if !ok {
		return
	}
	r.stored = record.Links
	for _, l := range record.Links {
		r.links = append(r.links, &apiv1.Neighbour{
			Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: l.Via, Up: l.Up, Reason: l.Reason, Cost: l.Cost,
		})
	}
	x.plan.SetLinks(r.name, planLinks(r.links))
}

func storedLinks(links []*apiv1.Neighbour) []store.Link {
	list := make([]store.Link, 0, len(links))
	for _, l := range links {
		list = append(list, store.Link{
			Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: l.Via, Up: l.Up, Reason: l.Reason, Cost: l.Cost,
		})
	}
	return list
}

func planLinks(links []*apiv1.Neighbour) []plan.Link {
	list := make([]plan.Link, 0, len(links))
	for _, l := range links {
		via, _ := netip.ParseAddr(l.Via)
		list = append(list, plan.Link{
			Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: via.WithZone(""), State: linkState(l), Cost: l.Cost,
		})
	}
	return list
}

func linkState(l *apiv1.Neighbour) plan.LinkState {
	switch {
	case l.Up:
		return plan.LinkUp
	case strings.HasPrefix(l.Reason, "carrier"):
		return plan.LinkDown
	}
	return plan.LinkSilent
}

type linkKey struct{ port, peer, peerPort string }

func keyOf(l *apiv1.Neighbour) linkKey { return linkKey{l.Port, l.Peer, l.PeerPort} }

func (x *Links) tell(r *router, links []*apiv1.Neighbour) {
	old := make(map[linkKey]*apiv1.Neighbour)
	for _, l := range r.links {
		old[keyOf(l)] = l
	}
	for _, l := range links {
		key := keyOf(l)
		was := old[key].GetUp()
		delete(old, key)
		if l.Up != was {
			x.event(r, l, l.Up, l.Reason)
		}
	}
	for _, l := range old {
		if l.Up {
			x.event(r, l, false, "it is not reported any more")
		}
	}
}

func (x *Links) event(r *router, l *apiv1.Neighbour, up bool, why string) {
	which := "link to " + events.Printable(l.Peer) + " on " + events.Printable(l.Port)
	kind, text := "link.down", events.Because(which+" is down", why)
	if up {
		kind, text = "link.up", which+" is up"
	}
	x.events.Tell(kind, r.name, text, "port", l.Port, "peer", l.Peer, "peer_port", l.PeerPort)
}

// AnyTo reports whether a router says that it has a link to another one, which that one confirms.
func (x *Links) AnyTo(name string) bool {
	for _, r := range x.routers {
		if slices.ContainsFunc(r.links, func(l *apiv1.Neighbour) bool {
			return l.Peer == name && l.Up && confirmed(x.routers[name], r.name, l)
		}) {
			return true
		}
	}
	return false
}

// Of are a router's links that count, as people are shown them.
func (x *Links) Of(name string) (list []*apiv1.Link) {
	r := x.routers[name]
	for _, l := range r.links {
		peer := x.routers[l.Peer]
		list = append(list, &apiv1.Link{Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Up: l.Up, Cost: l.Cost, Via: l.Via, Reason: l.Reason,
			OneSided: peer == nil || !confirmed(peer, name, l)})
	}
	return list
}
