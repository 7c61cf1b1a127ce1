package controld

import (
	"net/netip"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
)

// neighbours takes what a router says of its links. They are stored, so that after a restart paths
// through a router that is still away are kept: its kernel forwards on.
func (n *network) neighbours(r *router, m *apiv1.Neighbours) {
	links := m.GetLinks()
	if err := checkLinks(links); err != nil {
		n.event("router.error", r.Name, because("router reports links that are not believed", err.Error()))
		links = nil
	}
	r.said, r.reported, r.whole = links, true, !m.GetPartial()
	n.believe(r)
	if !r.whole {
		return
	}
	for _, x := range n.routers { // what was kept for as long as nobody had heard r
		if x != r && x.session != nil && x.whole && slices.ContainsFunc(x.links, func(l *apiv1.Neighbour) bool { return l.Peer == r.Name }) {
			n.believe(x)
		}
	}
}

// believe settles what counts of a router's links: what it says, and what was known of ports that it says nothing of,
// while it looks for its neighbours, or while the neighbour there does not greet because it is away.
func (n *network) believe(r *router) {
	links := slices.Clone(r.said)
	for _, l := range elsewhere(r.links, r.said) {
		switch peer, known := n.routers[l.Peer]; {
		case !r.whole:
			links = append(links, l)
		case known && (peer.session == nil || !peer.whole):
			links = append(links, silent(l))
		}
	}
	n.linkEvents(r, links)
	r.links = links
	n.plan.SetLinks(r.Name, planLinks(links))
	record := store.Links{Router: r.Name, Links: storedLinks(links)}
	if !slices.Equal(record.Links, r.stored) {
		r.stored = record.Links
		n.saver.later(store.PutLinks(record))
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

// rememberLinks puts the links of before the restart into the plan, until the router tells its own.
func (n *network) rememberLinks(record store.Links) {
	r, ok := n.routers[record.Router]
	if !ok {
		return
	}
	r.stored = record.Links
	for _, l := range record.Links {
		r.links = append(r.links, &apiv1.Neighbour{
			Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Via: l.Via, Up: l.Up, Reason: l.Reason, Cost: l.Cost,
		})
	}
	n.plan.SetLinks(r.Name, planLinks(r.links))
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

type linkKey struct{ port, peer string }

func (n *network) linkEvents(r *router, links []*apiv1.Neighbour) {
	old := make(map[linkKey]*apiv1.Neighbour)
	for _, l := range r.links {
		old[linkKey{l.Port, l.Peer}] = l
	}
	for _, l := range links {
		key := linkKey{l.Port, l.Peer}
		was := old[key].GetUp()
		delete(old, key)
		if l.Up != was {
			n.linkEvent(r, l, l.Up, l.Reason)
		}
	}
	for _, l := range old {
		if l.Up {
			n.linkEvent(r, l, false, "it is not reported any more")
		}
	}
}

func (n *network) linkEvent(r *router, l *apiv1.Neighbour, up bool, why string) {
	kind, text := "link.down", because("link to "+l.Peer+" on "+l.Port+" is down", why)
	if up {
		kind, text = "link.up", "link to "+l.Peer+" on "+l.Port+" is up"
	}
	n.event(kind, r.Name, text, "port", l.Port, "peer", l.Peer, "peer_port", l.PeerPort)
}
