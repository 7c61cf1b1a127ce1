package boost

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

const (
	// maxText bounds identifiers and versions, in bytes.
	maxText = 256
	// maxAgents is how many agents a network has: each has a trunk to each of another site, and memory for it.
	maxAgents = 256
	// maxDoors is how many addresses an agent has (internal/boost/agent, MostAddresses).
	maxDoors = 8
	// announceKeyLen is the length of an agent's key for what it announces, in bytes.
	announceKeyLen = 32
	// maxHeld is how many lanes an agent may say that it has.
	maxHeld = 1 << 16
)

// Join admits an agent or says why not.
func (x *Boost) Join(s *Session, j *apiv1.BoostJoin) *apiv1.Refused {
	no := func(format string, args ...any) *apiv1.Refused {
		return &apiv1.Refused{Reason: fmt.Sprintf(format, args...)}
	}
	if name, err := names.Clean(j.Name, ""); err != nil || name != j.Name {
		return no("agent name %.80q: want letters, digits and hyphens, in lower case", j.Name)
	}
	doors, err := doorsOf(j)
	switch {
	case max(len(j.BootId), len(j.Version)) > maxText:
		return no("boot id or version of more than %d bytes", maxText)
	case err != nil:
		return no("%v", err)
	case len(j.Key) != ed25519.PublicKeySize:
		return no("a key of %d bytes, want an Ed25519 one of %d", len(j.Key), ed25519.PublicKeySize)
	case len(j.Held) > maxHeld:
		return no("%d lanes are said to be held, at most %d can be", len(j.Held), maxHeld)
	}
	protocol, err := versions.Agent().Agree("this controller", "agent "+j.Name, versions.Told(j.Speaks.GetFrom(), j.Speaks.GetTo()))
	if err != nil {
		return no("%v", err)
	}
	peer := gate.PeerOf(s.Context())
	if err := gate.Itself(peer, trust.Agent, j.Name, j.Key); err != nil {
		return no("%v", err)
	}
	if m, _ := x.Members.Member(trust.Agent, j.Name); peer.Leaf != nil && !bytes.Equal(m.Key, peer.Key) && !bytes.Equal(m.Next, peer.Key) {
		return no("agent %s has the key %08x, and this one shows %08x: is it started from a copy of before?", j.Name, wire.KeyID(m.Key), wire.KeyID(peer.Key))
	}
	a := x.agents[j.Name]
	switch {
	case a == nil && len(x.agents) >= maxAgents:
		return no("the network has %d agents, as many as it may: forget one that is gone, `scaffold boost agent forget NAME`", maxAgents)
	case a != nil && a.session != nil && a.bootID != j.BootId:
		return &apiv1.Refused{Retry: true, Reason: fmt.Sprintf("an agent named %s is connected already: give this one another name", j.Name)}
	}
	for _, o := range x.agents {
		if o.Name == j.Name {
			continue
		}
		for _, door := range doors {
			if o.Door == door || slices.Contains(o.Doors, door) {
				return no("agent %s has the door %v: two agents need two addresses or ports; if that one is gone for good: scaffold boost agent forget %s", o.Name, door, o.Name)
			}
		}
	}
	if a != nil && a.session != nil {
		a.session.End(session.ErrReplaced)
	}
	x.admit(s, j, doors, protocol)
	return nil
}

// doorsOf are where others reach an agent: its door, and the same with its further addresses where it says any.
func doorsOf(j *apiv1.BoostJoin) (list []string, err error) {
	if len(j.Doors) > maxDoors {
		return nil, fmt.Errorf("%d addresses, want %d at most", len(j.Doors), maxDoors)
	}
	all := j.Doors
	if len(all) == 0 {
		all = []string{j.Door}
	}
	for _, text := range all {
		door, err := netip.ParseAddrPort(text)
		if err != nil || door.Port() == 0 || door.Addr().Zone() != "" || !door.Addr().IsGlobalUnicast() && !door.Addr().IsLoopback() {
			return nil, fmt.Errorf("door %.80q: want an address of one machine and a port, where other agents reach this one", text)
		}
		list = append(list, door.String())
	}
	if first, err := netip.ParseAddrPort(j.Door); err != nil || first.String() != list[0] {
		return nil, fmt.Errorf("door %.80q: want an address of one machine and a port, the first of all of its addresses", j.Door)
	}
	return list, nil
}

func (x *Boost) admit(s *Session, j *apiv1.BoostJoin, doors []string, protocol uint32) {
	a := x.agents[j.Name]
	if a == nil {
		a = &agent{}
		x.agents[j.Name] = a
	}
	stored := store.BoostAgent{Name: j.Name, Door: doors[0], Key: j.Key, Draining: a.Draining}
	if len(j.Doors) > 0 {
		stored.Doors = doors
	}
	if a.Name == "" || a.Door != stored.Door || !slices.Equal(a.Doors, stored.Doors) || !bytes.Equal(a.Key, stored.Key) {
		a.BoostAgent = stored
		x.Saver.Later(store.PutBoostAgent(stored))
	}
	if x.waits[a.Name] {
		x.hold(j.Held, j.Generation)
		delete(x.waits, a.Name)
	}
	a.session, a.bootID, a.version, a.since = s, j.BootId, j.Version, x.clock()
	a.told, a.load, a.applied, a.trouble, a.retold = nil, nil, 0, "", false
	a.holds, a.late, a.names, a.rewrites = nil, time.Time{}, j.Names, j.Rewrites
	maps.DeleteFunc(a.has, func(number uint64, _ *apiv1.BoostLane) bool { // another process, for one, has none of them
		return !slices.ContainsFunc(j.Held, func(l *apiv1.BoostLane) bool { return l.Number == number })
	})
	a.announceKey, a.announced, a.heard = make([]byte, announceKeyLen), 0, x.clock()
	rand.Read(a.announceKey) // never fails (crypto/rand)
	x.switches.changed = true
	peer := gate.PeerOf(s.Context())
	x.Members.Succeeded(trust.Agent, a.Name, peer.Key)
	x.Events.Tell("boost.join", a.Name, "agent joined", "door", a.Door, "version", a.version)
	x.Members.RenewLater(s.Context(), peer, func(c *apiv1.Credential) {
		s.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Credential{Credential: c}})
	})
	joined := x.Accept()
	joined.Protocol, joined.Credential, joined.AnnounceKey = protocol, x.Members.Fresh(peer), a.announceKey
	s.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Joined{Joined: joined}})
	x.legs.Joined(a.Name, j.Legs)
	x.forwards(a, lane.Families(j.Stops))
	x.stale = true
}

// hold takes up who had which lane under the leader before, from an agent that was told. What it says is a wish: agents that
// are not of the lane's sites do not get it by that.
// An agent that was away for long may have heard less than others: the later word counts.
func (x *Boost) hold(list []*apiv1.BoostLane, generation uint64) {
	for _, l := range list {
		if l.Near == "" || len(l.Far) == 0 || l.Bits > 16 || l.Named {
			continue
		}
		told := lane.Lane{Number: l.Number, Entry: l.Entry, Slot: uint16(l.Slot), Bits: uint8(l.Bits), Near: l.Near, Far: l.Far[:1], Measured: true}
		if was, known := x.held[l.Number]; known && generation > was.generation || !known && len(x.held) < maxHeld {
			x.held[l.Number] = heldLane{told, generation}
		}
	}
}

// Lost notes that a stream has ended.
func (x *Boost) Lost(name string, s *Session, err error) {
	a := x.agents[name]
	if a == nil || a.session != s {
		return
	}
	a.session, a.since = nil, x.clock()
	text := "agent left: it was stopped, or starts again"
	if err != nil {
		text = events.Because("agent lost its stream; it goes on with the lanes that it has", events.Said(err))
	}
	x.Events.Tell("boost.lost", name, text)
	x.legs.Lost(name)
	x.Loop.After(x.Patience, func() {
		if a.session == nil && x.agents[name] == a {
			x.stale = true
		}
	})
	x.Loop.After(remembered, func() { x.expire(a) })
}

// Report takes what an agent says.
func (x *Boost) Report(name string, s *Session, m *apiv1.BoostReport) {
	a := x.agents[name]
	if a == nil || a.session != s {
		return
	}
	a.heard = x.clock()
	switch r := m.Report.(type) {
	case *apiv1.BoostReport_Load:
		x.loaded(a, r.Load)
	case *apiv1.BoostReport_Applied:
		x.haveApplied(a, r.Applied)
	case *apiv1.BoostReport_Sessions:
		x.sessionsOf(a, r.Sessions)
	case *apiv1.BoostReport_First:
		x.legs.Decided(name, r.First)
	case *apiv1.BoostReport_Leg:
		x.legs.Ask(name, r.Leg)
	case *apiv1.BoostReport_LegOver:
		x.legs.Over(name, r.LegOver)
	}
}

// loaded notes how an agent is. A round trip that was not known yet is a reason to order agents anew, one that is another
// than before is none: lanes would flap with it.
func (x *Boost) loaded(a *agent, load *apiv1.BoostLoad) {
	load.Trunks = slices.DeleteFunc(load.Trunks, func(t *apiv1.BoostTrunk) bool { return x.agents[t.Agent] == nil })
	load.Trunks = load.Trunks[:min(len(load.Trunks), maxAgents)]
	load.Load = part(load.Load)
	before := a.load
	a.load = load
	x.forwards(a, lane.Families(load.Stops))
	for _, t := range load.Trunks {
		t.Path = pathFrom(t.Path)
		x.ways(a, t, before)
		if t.RttUs == 0 {
			continue
		}
		rtt := time.Duration(t.RttUs) * time.Microsecond
		for _, p := range []pair{{a.Name, t.Agent}, {t.Agent, a.Name}} {
			if _, known := x.rtt[p]; !known {
				x.stale = true
			}
			x.rtt[p] = rtt
		}
	}
}

func (x *Boost) haveApplied(a *agent, applied *apiv1.BoostApplied) {
	a.applied, x.untold = applied.Generation, true
	if a.told != nil && applied.Generation == a.told.Generation && applied.Error == "" {
		a.holds = nearLanes(a.told, a.Name)
		a.has = make(map[uint64]*apiv1.BoostLane, len(a.told.Lanes))
		for _, l := range a.told.Lanes {
			if !l.Named { // else switches send it nothing
				a.has[l.Number] = l
			}
		}
	}
	if applied.Error != "" { // it may have been for want of something that is there in a while
		told := a.told
		x.Loop.After(x.Patience, func() {
			if a.told == told && a.trouble != "" {
				a.told, x.stale = nil, true
			}
		})
	}
	if why := events.Shortened(applied.Error); why != a.trouble {
		if a.trouble = why; why != "" {
			x.Events.Tell("boost.trouble", a.Name, "agent has not taken its lanes: "+events.Printable(why))
		}
	}
}
