package controld

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

type routerSession = session[apiv1.RouterOrder]

// A router is one that ever joined; its block is its for life.
type router struct {
	store.Router
	session  *routerSession // nil while it is away: it forwards by what it knows
	synced   bool           // the session has had its snapshot
	reported bool           // the session has told its links
	whole    bool           // and all of them: it looks for no more
	bootID   string
	version  string                         // of its daemon
	protocol uint32                         // version of its stream
	said     []*apiv1.Neighbour             // its links, as it told last
	links    []*apiv1.Neighbour             // and those that count, perhaps of before the restart
	stored   []store.Link                   // the same in the store
	states   map[sid.Locator]plan.HostState // of its hosts, as the session told
	told     uint64                         // generation of the last rules sent to it
	applied  uint64                         // and of those that it has applied
	absences uint64                         // ends of streams
	offers   []*apiv1.TunnelOffer           // of the session, or the last one
	// tunnelSerial counts the orders of tunnels of this controller.
	tunnelSerial uint64
	counters     *apiv1.RouterCounters
	sendings     []sending // that it has not applied
}

func (n *network) knowRouter(r store.Router) *router {
	have := &router{Router: r, states: make(map[sid.Locator]plan.HostState)}
	n.routers[r.Name] = have
	n.blocks[r.Block] = r.Name
	n.plan.SetRouter(n.planRouter(r))
	return have
}

func (n *network) planRouter(r store.Router) plan.Router {
	return plan.Router{Name: r.Name, Service: r.Service, Locator: n.blockLocator(r.Block)}
}

// blockLocator is a block's first locator: the router's own.
func (n *network) blockLocator(block uint8) sid.Locator {
	return n.cfg.Space.Locator(uint16(block) << 8)
}

// joinRouter admits a router or says why not.
func (n *network) joinRouter(s *routerSession, j *apiv1.RouterJoin) *apiv1.Refused {
	name, err := names.Clean(j.Name, "")
	if err != nil || name != j.Name {
		return &apiv1.Refused{Reason: fmt.Sprintf("router name %.80q: want letters, digits and hyphens, in lower case", j.Name)}
	}
	if max(len(j.BootId), len(j.Version)) > maxText {
		return &apiv1.Refused{Reason: fmt.Sprintf("boot id or version of more than %d bytes", maxText)}
	}
	protocol, err := speaks("router "+name, j.Speaks)
	if err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	if err := itself(s.peer, trust.Router, name, nil); err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	if m := n.members[memberName{string(trust.Router), name}]; s.peer.leaf != nil && !bytes.Equal(m.Key, s.peer.Key) && !bytes.Equal(m.Next, s.peer.Key) {
		return &apiv1.Refused{Reason: fmt.Sprintf("router %s has the key %08x, and this one shows %08x: is it started from a copy of before?", name, wire.KeyID(m.Key), wire.KeyID(s.peer.Key))}
	}
	r, known := n.routers[name]
	if known && r.session != nil && r.bootID != j.BootId {
		return &apiv1.Refused{Retry: true, Reason: fmt.Sprintf("a router named %s is connected already: give this one another name", name)}
	}
	block, refused := n.blockFor(name, j.Block, j.Had)
	if refused != nil {
		return refused
	}
	want := store.Router{Name: name, Block: block, Service: j.Service}
	if known && r.session != nil {
		r.session.end(errReplaced)
	}
	n.admitRouter(s, want, j, protocol)
	return nil
}

func (n *network) admitRouter(s *routerSession, want store.Router, j *apiv1.RouterJoin, protocol uint32) {
	r, known := n.routers[want.Name]
	switch {
	case !known:
		r = n.knowRouter(want)
		n.saver.later(store.PutRouter(want))
	case r.Router != want:
		delete(n.blocks, r.Block)
		r.Router = want
		n.blocks[want.Block] = want.Name
		n.plan.SetRouter(n.planRouter(want))
		n.saver.later(store.PutRouter(want))
	}
	r.session, r.synced, r.reported, r.whole, r.bootID = s, false, false, false, j.BootId
	r.version, r.protocol = j.Version, protocol
	n.succeeded(trust.Router, r.Name, s.peer.Key)
	clear(r.states)
	n.trustAgain(r)
	n.event("router.join", r.Name, "router joined", "block", uitoa(r.Block), "holds", uitoa(j.Generation), "version", j.Version)
	n.renewLater(s.peer, func() bool { return r.session == s }, func(c *apiv1.Credential) {
		s.send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Credential{Credential: c}})
	})
	s.send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Joined{Joined: n.routerJoined(r)}})
	n.offeredTunnels(r, j)
}

func (n *network) routerJoined(r *router) *apiv1.RouterJoined {
	return &apiv1.RouterJoined{
		Network: n.cfg.Network, Space: n.space(), Locator: n.blockLocator(r.Block).String(), Protocol: r.protocol,
		ProbeIntervalMs: uint32(n.cfg.ProbeInterval.Milliseconds()),
		SuspectAfter:    n.cfg.SuspectAfter, GoneAfterMs: uint32(n.cfg.GoneAfter.Milliseconds()),
		Controllers: n.all(), NetworkId: n.id, Epoch: n.epoch,
		Trust: n.cfg.Trust, Credential: n.freshIfDue(r.session.peer),
	}
}

// blockFor is the block that the router asks for, had, or the lowest free one.
func (n *network) blockFor(name string, asked, had uint32) (uint8, *apiv1.Refused) {
	if _, known := n.routers[name]; !known && asked == 0 && had <= 255 {
		if owner, taken := n.blocks[uint8(had)]; !taken || owner == name {
			asked = had // of which the stored state does not know
		}
	}
	if asked > 255 {
		return 0, &apiv1.Refused{Reason: fmt.Sprintf("block %d: want 1 to 255, or 0 for any", asked)}
	}
	if owner, taken := n.blocks[uint8(asked)]; taken && owner != name {
		return 0, &apiv1.Refused{Reason: fmt.Sprintf("block %d belongs to router %s: ask for another one", asked, owner)}
	}
	if asked != 0 {
		return uint8(asked), nil
	}
	if r, ok := n.routers[name]; ok {
		return r.Block, nil
	}
	if n.grace != nil && n.careful() {
		return 0, &apiv1.Refused{Retry: true, Reason: errWaiting.Error()}
	}
	for b := 1; b <= 255; b++ {
		if _, taken := n.blocks[uint8(b)]; !taken {
			return uint8(b), nil
		}
	}
	err := errors.New("all 255 blocks of the network are taken, each by a router that ever joined: no further router can join")
	n.full(n.cfg.Network, err)
	return 0, &apiv1.Refused{Reason: err.Error()}
}

// lostRouter is told that a stream ended. The router stays in the plan: its kernel forwards on.
func (n *network) lostRouter(name string, s *routerSession, err error) {
	r, ok := n.routers[name]
	if !ok || r.session != s {
		return
	}
	r.session, r.synced, r.reported, r.whole, r.sendings = nil, false, false, false, nil
	reason := "its stream ended"
	if err != nil {
		reason = err.Error()
	}
	if err == errSlow {
		n.metrics.dropped.Inc()
	}
	n.event("router.gone", name, because("router is not connected; it goes on forwarding by what it knows", reason))
	r.absences++
	absence := r.absences
	n.loop.after(n.cfg.Lease, func() {
		if r.absences == absence {
			n.unreachableHosts(r)
		}
	})
}

// unreachableHosts puts a limit to trusting a router that stays away: once all neighbours say that
// it does not greet, its silent hosts are suspect, so that others are preferred where there are any.
func (n *network) unreachableHosts(r *router) {
	if r.session != nil || n.anyLinkTo(r.Name) {
		return
	}
	for _, at := range n.places {
		if at.Router == r.Name && at.host.session == nil && at.state == plan.HostUp {
			n.hostState(at, plan.HostSuspect, "its first-hop router "+r.Name+" is silent")
		}
	}
}

// trustAgain takes back what unreachableHosts said: the router's own word follows, where it differs.
func (n *network) trustAgain(r *router) {
	for _, at := range n.places {
		if at.Router == r.Name && at.state == plan.HostSuspect {
			n.hostState(at, plan.HostUp, "")
		}
	}
}

func (n *network) anyLinkTo(name string) bool {
	for _, r := range n.routers {
		if slices.ContainsFunc(r.links, func(l *apiv1.Neighbour) bool { return l.Peer == name && l.Up }) {
			return true
		}
	}
	return false
}

func (n *network) connectedRouters() (count int) {
	for _, r := range n.routers {
		if r.session != nil {
			count++
		}
	}
	return count
}

// routerReport works on one message of a router's stream.
func (n *network) routerReport(name string, s *routerSession, m *apiv1.RouterReport) {
	r, ok := n.routers[name]
	if !ok || r.session != s {
		return // of a stream that was replaced meanwhile
	}
	switch m := m.Report.(type) {
	case *apiv1.RouterReport_Neighbours:
		n.neighbours(r, m.Neighbours)
	case *apiv1.RouterReport_Hosts:
		n.hostStates(r, m.Hosts.GetHosts())
	case *apiv1.RouterReport_Counters:
		r.counters = m.Counters
	case *apiv1.RouterReport_TunnelsMade:
		n.tunnelsMade(r, m.TunnelsMade)
	case *apiv1.RouterReport_Applied:
		n.applied(r, m.Applied)
	}
}

func (n *network) applied(r *router, a *apiv1.Applied) {
	r.applied = a.GetGeneration()
	n.metrics.arrived(r)
	if a.GetError() != "" {
		n.event("router.error", r.Name, because("router could not apply its rules", a.Error), "generation", uitoa(a.Generation))
	}
}
