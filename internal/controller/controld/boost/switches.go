package boost

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/boost/announce"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/lane"
)

// The rules of switches follow what agents have, not what they are to have (docs/protocol.md §9.3): a switch goes on to send
// a lane's connections to the agent that has not given it up yet, and a far agent gets a lane once its switch sends it what
// servers answer. So no agent ever has a connection whose packets go elsewhere.

// A SteerSession is the stream of who drives the switches.
type SteerSession = session.Session[apiv1.SteerOrder]

const (
	// unseenAfter is how long an agent may announce nothing at its switch, and say nothing here, until it counts as dark:
	// three announcements are lost by then.
	unseenAfter = 3500 * time.Millisecond
	// lookEach is how often that is looked at.
	lookEach = time.Second
	// remembered is for how long connections of an agent that is away and dark have rules: its peers have reset them by then.
	remembered = 30 * time.Second
	// maxPins is how many connections of an agent may have rules of their own: a switch has room for four such agents beside
	// lanes (internal/openflow/switchd).
	maxPins = 4096
	// maxSwitches is how many a site may have.
	maxSwitches = 64
)

// switches are those of sites, and where agents are at them.
type switches struct {
	session    *SteerSession // nil: nobody drives switches here
	generation uint64
	byName     map[string]*steeredSwitch
	places     map[string]*sight // by agent
	unseen     map[string]bool   // agents of before whose place is not known yet; empty: nothing is waited for
	lanes      map[uint64]lane.Lane
	pinned     map[lane.Session]bool
	changed    bool // something that rules follow from
	crowd      bool // lanes wait until their connections are fewer
	watched    bool // a timer looks for dark agents
}

// A steeredSwitch is one that came, or that a site names.
type steeredSwitch struct {
	up    bool
	told  *apiv1.SteerRules // nil: nothing yet
	since map[lane.Rule]uint64
	held  uint64 // generation that it has
	legs  uint64 // and of legs

	answers map[answersTo]uint64 // since which generation a far agent gets a lane's answers
}

type answersTo struct {
	lane uint64
	far  string
}

// A sight is where an agent is.
type sight struct {
	lane.Place
	seen time.Time
}

func newSwitches() switches {
	return switches{byName: map[string]*steeredSwitch{}, places: map[string]*sight{}, unseen: map[string]bool{}}
}

// JoinSwitches takes the stream of who drives the switches. A newer one replaces it.
func (x *Boost) JoinSwitches(s *SteerSession, j *apiv1.SteerJoin) *apiv1.Refused {
	protocol, err := versions.Agent().Agree("this controller", "who drives the switches", versions.Told(j.Speaks.GetFrom(), j.Speaks.GetTo()))
	if err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	if x.switches.session != nil {
		x.switches.session.End(session.ErrReplaced)
		x.legs.Undriven()
	}
	x.switches.session, x.switches.changed = s, true
	for _, w := range x.switches.byName {
		w.told, w.up = nil, false
	}
	in := x.Accept()
	s.Send(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_Joined{Joined: &apiv1.SteerJoined{
		Network: in.Network, NetworkId: in.NetworkId, Epoch: in.Epoch, Protocol: protocol, Controllers: in.Controllers,
	}}})
	return nil
}

// LostSwitches notes that the stream has ended. Switches go on by the rules that they have.
func (x *Boost) LostSwitches(_ string, s *SteerSession, _ error) {
	if x.switches.session == s {
		x.switches.session = nil
		x.legs.Undriven()
	}
}

// ReportSwitches takes what happened at switches.
func (x *Boost) ReportSwitches(_ string, s *SteerSession, m *apiv1.SteerReport) {
	if x.switches.session != s {
		return
	}
	switch r := m.Report.(type) {
	case *apiv1.SteerReport_Sighting:
		x.sighted(r.Sighting)
	case *apiv1.SteerReport_PortDown:
		for _, name := range slices.Sorted(maps.Keys(x.switches.places)) {
			if at := x.switches.places[name]; at.Switch == r.PortDown.Switch && at.Port == r.PortDown.Port {
				x.unsee(name, "the port is down")
			}
		}
	case *apiv1.SteerReport_State:
		w := x.switchNamed(r.State.Switch)
		if w.up = r.State.Up; w.up {
			for _, at := range x.switches.places { // nothing was heard by it while it was away
				if at.Switch == r.State.Switch {
					at.seen = x.clock()
				}
			}
		}
		x.switches.changed = true
		x.legs.SwitchesChanged() // nobody waits for one that is away
	case *apiv1.SteerReport_Steered:
		w := x.switchNamed(r.Steered.Switch)
		if r.Steered.Generation > w.held {
			w.held, x.untold = r.Steered.Generation, true
		}
		if r.Steered.Legs > w.legs {
			w.legs = r.Steered.Legs
			x.legs.SwitchesChanged()
		}
	case *apiv1.SteerReport_Syn:
		x.first(r.Syn)
	case *apiv1.SteerReport_LegsOver:
		x.legs.Idle(r.LegsOver)
	}
}

func (x *Boost) switchNamed(name string) *steeredSwitch {
	w := x.switches.byName[name]
	if w == nil {
		w = &steeredSwitch{since: map[lane.Rule]uint64{}}
		x.switches.byName[name] = w
	}
	return w
}

// sighted takes an agent's announcement as a switch punted it. Whoever is at a port of the switch may have made it: it
// counts if it proves that it is of the agent, is newer than those before, and came to a switch of the agent's site.
func (x *Boost) sighted(m *apiv1.Sighting) {
	a := x.agents[m.Agent]
	if a == nil || a.announceKey == nil || len(m.Mac) != 6 || m.Made <= a.announced || !slices.Contains(x.sites[x.siteOf(a.Name)].Switches, m.Switch) {
		return
	}
	said := announce.Announcement{Agent: m.Agent, Port: m.AgentPort, MAC: [6]byte(m.Mac), Made: m.Made}
	if len(m.Proof) != len(said.Proof) {
		return
	}
	copy(said.Proof[:], m.Proof)
	if !said.Proves(a.announceKey) {
		return
	}
	a.announced = m.Made
	at := lane.Place{Switch: m.Switch, Port: m.Port, MAC: said.MAC}
	was := x.switches.places[a.Name]
	switch {
	case was == nil:
		x.Events.Tell("boost.seen", a.Name, fmt.Sprintf("agent is at port %s of switch %s", at.Port, at.Switch))
	case was.Place == at:
		was.seen = x.clock()
		return
	case x.clock().Sub(was.seen) < unseenAfter && (was.Switch != at.Switch || was.Port != at.Port):
		return // it has several ports at switches: the one by which it was seen first stays, while it is heard there
	default:
		x.Events.Tell("boost.seen", a.Name, fmt.Sprintf("agent is at port %s of switch %s now; it was at port %s of %s", at.Port, at.Switch, was.Port, was.Switch))
	}
	x.switches.places[a.Name] = &sight{Place: at, seen: x.clock()}
	delete(x.switches.unseen, a.Name)
	x.stale, x.switches.changed = true, true
	x.watchPlaces()
}

// unsee forgets where an agent is.
func (x *Boost) unsee(name, why string) {
	at := x.switches.places[name]
	if at == nil {
		return
	}
	delete(x.switches.places, name)
	x.stale, x.switches.changed = true, true
	if a := x.agents[name]; a != nil {
		x.Loop.After(remembered, func() { x.expire(a) })
	}
	x.Events.Tell("boost.unseen", name, fmt.Sprintf("agent is no longer at port %s of switch %s: %s", at.Port, at.Switch, why))
}

// watchPlaces looks for agents that have gone dark, as long as there is one whose place is known.
func (x *Boost) watchPlaces() {
	if x.switches.watched || len(x.switches.places) == 0 {
		return
	}
	x.switches.watched = true
	x.Loop.After(lookEach, func() {
		x.switches.watched = false
		for _, name := range slices.Sorted(maps.Keys(x.switches.places)) {
			if at := x.switches.places[name]; x.dark(x.agents[name], at) {
				x.unsee(name, "nothing is heard of it")
			}
		}
		x.watchPlaces()
	})
}

// dark reports whether nothing is heard of an agent, neither at its switch nor here. One that was killed is dark: its machine
// forwards, but needs nothing to be sent to it. While the switch is away only the agent itself can say that it lives.
func (x *Boost) dark(a *agent, at *sight) bool {
	if a == nil {
		return true
	}
	w := x.switches.byName[at.Switch]
	silent := func(since time.Time) bool { return x.clock().Sub(since) > unseenAfter }
	return w != nil && w.up && silent(at.seen) && (a.session == nil || silent(a.heard))
}

// alive reports whether an agent is here, or was seen at its switch a moment ago.
func (x *Boost) alive(a *agent) bool {
	at := x.switches.places[a.Name]
	return a.session != nil || at != nil && x.clock().Sub(at.seen) <= unseenAfter
}

// mayHave are the lanes that an agent may act upon, by number: what it has applied, and what it was told since.
func (a *agent) mayHave() map[uint64]*apiv1.BoostLane {
	all := map[uint64]*apiv1.BoostLane{}
	maps.Copy(all, a.has)
	if a.told != nil && a.applied != a.told.Generation {
		for _, l := range a.told.Lanes {
			if all[l.Number] == nil && !l.Named {
				all[l.Number] = l
			}
		}
	}
	return all
}

// heldLanes are the planned lanes, with the agents that have them still in place of those that are to have them, and lanes
// that are not planned any more and that somebody has still. A planned one that would take packets of those has to wait.
func (x *Boost) heldLanes() (all []lane.Lane) {
	planned, wanted := make(map[uint64]*lane.Lane, len(x.lanes)), make(map[uint64]*lane.Lane, len(x.lanes))
	for i := range x.lanes {
		l := x.lanes[i]
		l.Far = []string{l.Far[0]}
		planned[l.Number], wanted[l.Number] = &l, &x.lanes[i]
	}
	old := map[uint64]*lane.Lane{}
	for _, name := range slices.Sorted(maps.Keys(x.agents)) {
		a := x.agents[name]
		if !x.alive(a) {
			continue
		}
		for number, has := range a.mayHave() {
			l := laneOf(has)
			if was := old[number]; was != nil && was.Same(l) {
				l = was
			} else if now := planned[number]; now != nil && now.Same(l) {
				l = now
			} else if was == nil {
				old[number] = l
			} else {
				continue // of three that have the number only two can be in the switches; the agent gets to it in its turn
			}
			to := wanted[number] // who is to have it gives way to who has
			switch isOld := l == old[number]; {
			case has.Near == name && (isOld || to.Near != name):
				l.Near = name
			case has.Far[0] == name && (isOld || to.Far[0] != name):
				l.Far[0] = name
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(old)) {
		all = append(all, *old[number])
	}
	for _, number := range slices.Sorted(maps.Keys(planned)) {
		if !slices.ContainsFunc(all[:len(old)], func(o lane.Lane) bool { return o.Number == number || o.Overlaps(planned[number]) }) {
			all = append(all, *planned[number])
		}
	}
	return all
}

// laneOf is a lane that an agent was told, without agents.
func laneOf(told *apiv1.BoostLane) *lane.Lane {
	return &lane.Lane{
		Number: told.Number, Entry: told.Entry, Slot: uint16(told.Slot), Bits: uint8(told.Bits), Far: []string{""}, Port: uint16(told.Port),
		Client: netip.MustParsePrefix(told.Client), Server: netip.MustParsePrefix(told.Server), // this controller's own words
		Rewrite: told.Rewrite,
	}
}

// steer tells who drives the switches what differs for them.
func (x *Boost) steer() {
	if x.switches.session == nil || len(x.switches.byName) == 0 { // no site names a switch, and none came
		return
	}
	x.switches.changed = false
	s := lane.Steering{Lanes: x.crowded(x.heldLanes()), Places: map[string]lane.Place{}}
	x.switches.lanes = make(map[uint64]lane.Lane, len(s.Lanes))
	for _, l := range s.Lanes {
		x.switches.lanes[l.Number] = l
	}
	for name, at := range x.switches.places {
		s.Places[name] = at.Place
	}
	x.switches.pinned = map[lane.Session]bool{}
	for _, name := range slices.Sorted(maps.Keys(x.agents)) {
		a := x.agents[name]
		pins := x.strays(a, x.switches.lanes)
		pins = pins[:min(len(pins), maxPins)] // more are of lanes that this controller does not know
		for _, of := range pins {
			x.switches.pinned[of] = true
		}
		s.Sessions = append(s.Sessions, pins...)
	}
	rules := map[string][]lane.Rule{}
	for _, r := range lane.Steer(s) {
		rules[r.Switch] = append(rules[r.Switch], r)
	}
	for _, name := range slices.Sorted(maps.Keys(x.switches.byName)) {
		x.steerSwitch(name, rules[name])
	}
}

// strays are the connections of an agent that its lanes do not keep at it, in order. Only hosts of the two agents' sites are
// among them, whatever the agent says: no packets of others' hosts are sent to it.
func (x *Boost) strays(a *agent, lanes map[uint64]lane.Lane) (list []lane.Session) {
	sites := planned(x.sites)
	within := func(agent string, host netip.Addr) bool {
		i := slices.IndexFunc(sites, func(s lane.Site) bool { return s.Name == x.siteOf(agent) })
		return i >= 0 && slices.ContainsFunc(sites[i].Prefixes, func(p netip.Prefix) bool { return p.Contains(host) })
	}
	for _, c := range a.sessions {
		if l, is := lanes[c.of.Lane]; c.Rewritten || is && l.Kept(&c.of) {
			continue
		}
		if within(c.of.Near, c.of.Client.Addr()) && within(c.of.Far, c.of.Server.Addr()) {
			list = append(list, c.of)
		}
	}
	slices.SortFunc(list, func(p, q lane.Session) int {
		return cmp.Or(p.Client.Compare(q.Client), p.Server.Compare(q.Server))
	})
	return list
}

// crowded has lanes stay in switches where they were as long as an agent that has given them up has more connections of them
// than may have rules of their own. New connections pass it unboosted meanwhile.
func (x *Boost) crowded(all []lane.Lane) []lane.Lane {
	now := make(map[uint64]lane.Lane, len(all))
	for _, l := range all {
		now[l.Number] = l
	}
	stay := map[uint64]lane.Lane{}
	for _, a := range x.agents {
		if len(a.sessions) <= maxPins {
			continue
		}
		strays := x.strays(a, now)
		if len(strays) <= maxPins {
			continue
		}
		for i := range strays {
			if was, is := x.switches.lanes[strays[i].Lane]; is && was.Kept(&strays[i]) {
				stay[was.Number] = was
			}
		}
	}
	if x.switches.crowd = len(stay) > 0; !x.switches.crowd {
		return all
	}
	var kept []lane.Lane
	for _, number := range slices.Sorted(maps.Keys(stay)) {
		kept = append(kept, stay[number])
	}
	for i := range all {
		if !slices.ContainsFunc(kept[:len(stay)], func(o lane.Lane) bool { return o.Number == all[i].Number || o.Overlaps(&all[i]) }) {
			kept = append(kept, all[i])
		}
	}
	return kept
}

func (x *Boost) steerSwitch(name string, rules []lane.Rule) {
	w := x.switches.byName[name]
	now := &apiv1.SteerRules{Switch: name}
	for _, agent := range slices.Sorted(maps.Keys(x.switches.places)) {
		if at := x.switches.places[agent]; at.Switch == name && !slices.Contains(now.Exempt, at.Port) {
			now.Exempt = append(now.Exempt, at.Port)
		}
	}
	for _, r := range rules {
		now.Rules = append(now.Rules, &apiv1.SteerRule{
			Source: r.Source.String(), Destination: r.Destination.String(), Port: r.Port, Mac: r.MAC[:], Kind: apiv1.SteerKind(r.Kind + 1),
			SourcePort: uint32(r.From.Value), SourceMask: uint32(r.From.Mask), DestinationPort: uint32(r.To.Value), DestinationMask: uint32(r.To.Mask),
		})
	}
	now.Punts = x.punts(name)
	now.Generation = w.told.GetGeneration()
	if w.told != nil && proto.Equal(now, w.told) {
		return
	}
	now.Generation = x.nextRules()
	since := make(map[lane.Rule]uint64, len(rules))
	for _, r := range rules {
		since[r] = cmp.Or(w.since[r], now.Generation)
	}
	w.told, w.since, w.answers = now, since, map[answersTo]uint64{}
	for r, generation := range since {
		if r.Kind == lane.Answers {
			w.answers[answersTo{r.Lane, r.Agent}] = generation
		}
	}
	told := proto.CloneOf(now)
	told.Legs = x.legs.On(name)
	x.switches.session.Send(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_Rules{Rules: told}})
}

// nextRules is the generation of what a switch is told next: above those of leaders before.
func (x *Boost) nextRules() uint64 {
	x.switches.generation++
	return x.generation&^(1<<32-1) + x.switches.generation
}

// unanswered reports whether the far agent of a lane would not get what servers answer: its switch does not send it that yet.
func (x *Boost) unanswered(l *apiv1.BoostLane) bool {
	far := l.Far[0]
	if l.Named || l.Rewrite || len(x.sites[x.siteOf(far)].Switches) == 0 {
		return false
	}
	at := x.switches.places[far]
	if at == nil {
		return true
	}
	w := x.switches.byName[at.Switch]
	since, is := w.answers[answersTo{l.Number, far}]
	return !is || w.held < since
}

// unsteered is a switch that does not send a lane's packets to its agents yet; "": none.
func (x *Boost) unsteered(l *lane.Lane) string {
	if l.Rewrite {
		return x.unpunted(l)
	}
	for _, name := range []string{l.Near, l.Far[0]} {
		if at := x.switches.places[name]; at != nil {
			if w := x.switches.byName[at.Switch]; w.told == nil || w.held < w.told.Generation {
				return at.Switch
			}
		}
	}
	return ""
}

// place says where an agent was seen.
func (x *Boost) place(name string) (at, port string) {
	if p := x.switches.places[name]; p != nil {
		return p.Switch, p.Port
	}
	return "", ""
}

// expire forgets the connections of agents that are away and dark for long.
func (x *Boost) expire(a *agent) {
	if a.session == nil && x.switches.places[a.Name] == nil && x.clock().Sub(a.since) >= remembered {
		a.sessions, a.load = nil, nil
		x.switches.changed = true
	}
}

// checkSwitches reads which switches a site is to have.
func checkSwitches(site string, list []string) (sorted []string, err error) {
	if len(list) > maxSwitches {
		return nil, invalid("site %q: %d switches, at most %d can be", site, len(list), maxSwitches)
	}
	for _, name := range list {
		if err := checkName("switch", name); err != nil {
			return nil, err
		}
	}
	sorted = slices.Clone(list)
	slices.Sort(sorted)
	return slices.Compact(sorted), nil
}

// leaveSwitches forgets where agents are that are of other sites now, or whose sites have other switches.
func (x *Boost) leaveSwitches() {
	for _, name := range slices.Sorted(maps.Keys(x.switches.places)) {
		if !slices.Contains(x.sites[x.siteOf(name)].Switches, x.switches.places[name].Switch) {
			x.unsee(name, "its site has other switches")
		}
	}
}

// nameSwitches makes the switches of a site ones that are told.
func (x *Boost) nameSwitches(s store.BoostSite) {
	for _, name := range s.Switches {
		x.switchNamed(name)
	}
}
