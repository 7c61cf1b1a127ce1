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
	"scaffold.dev/scaffold/internal/core/lane"
)

// Connections of a lane that is rewritten come to agents by rules of their own (docs/protocol.md §9.5): a switch holds the client's
// first packet until the near agent has said at which of its ports it waits, and a far agent connects once the switches of its site
// know from which of its ports.

const (
	// maxLegs is how many a site has at most: each is two rules in each of its switches, beside those of lanes and pins.
	maxLegs = 2048
	// maxFirsts is how many first packets wait for agents at a time; more go on unboosted.
	maxFirsts = 1024
	// lateSegments is how long the rules of a leg stay that is over: what its ends say last may have to be said again.
	lateSegments = 5 * time.Second
	// frozenAfter is how long a near agent says nothing until it is asked about no first packet: agents say how they are each 500 ms.
	frozenAfter = 2 * time.Second
	// switchPatience is how long a leg waits for its switches: one that does not take its rules says nothing.
	switchPatience = 2 * time.Second
	// complainEach is how often it is told that connections of an agent are not rewritten.
	complainEach = time.Minute
)

// legs are what agents have ports of their own for.
type legs struct {
	all     map[legKey]*leg
	waiting map[*leg]bool // whose switches do not have all of their rules yet
	asked   map[uint64]asked
	last    uint64                        // number of the last first packet
	decided map[apiv1.BoostVerdict]uint64 // how often
	news    map[string]*apiv1.SteerLegs   // by switch, what it is to be told at the end of the turn
	told    map[string]time.Time          // by agent, when it was last said what is wrong
}

// A legKey is a connection at one of its ends.
type legKey struct {
	agent          string
	far            bool
	client, server netip.AddrPort
}

type leg struct {
	legKey
	site   string
	at     netip.AddrPort
	needs  map[string]uint64 // switches that are to have its rules, and since which generation
	number uint64            // of the agent's question; 0: it asks nothing
	syn    uint64            // number of the first packet that waits for it, by the switches' driver; 0: none
	over   bool
	silent map[string]bool // switches that have heard nothing of the agent for long
}

// asked is a first packet about which a near agent is to decide.
type asked struct {
	legKey
	site string
	syn  uint64
}

func newLegs() legs {
	return legs{all: map[legKey]*leg{}, waiting: map[*leg]bool{}, asked: map[uint64]asked{}, decided: map[apiv1.BoostVerdict]uint64{}, news: map[string]*apiv1.SteerLegs{}, told: map[string]time.Time{}}
}

// message is a leg as its switches are told.
func (l *leg) message() *apiv1.SteerLeg {
	host, other := l.client, l.server
	if l.far {
		host, other = other, host
	}
	return &apiv1.SteerLeg{Host: host.String(), Other: other.String(), Agent: l.at.String()}
}

// first takes a client's first packet that waits at a switch.
func (x *Boost) first(m *apiv1.SteerSYN) {
	client, err := addressOf(m.Client)
	server, err2 := addressOf(m.Server)
	l := x.rewrittenLane(m.Switch, client, server)
	if err != nil || err2 != nil || l == nil {
		x.decide(m.Number, apiv1.BoostVerdict_BOOST_VERDICT_PASS)
		return
	}
	key := legKey{l.Near, false, client, server}
	near, was := x.agents[l.Near], x.legs.all[key]
	lives := near != nil && near.session != nil && !x.frozen(near)
	if was != nil && !was.over && lives { // it was lost on its way to the agent, or to the client
		x.release(was, m.Number)
		return
	}
	if was != nil { // the client begins anew
		x.endLeg(was)
	}
	if !lives || len(x.legs.asked) >= maxFirsts || x.legsOfSite(x.siteOf(l.Near)) >= maxLegs {
		x.decide(m.Number, apiv1.BoostVerdict_BOOST_VERDICT_PASS)
		return
	}
	x.legs.last++
	number := x.legs.last
	x.legs.asked[number] = asked{key, x.siteOf(l.Near), m.Number}
	near.session.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Syn{Syn: &apiv1.BoostSYN{
		Number: number, Lane: l.Number, Client: client.String(), Server: server.String(),
	}}})
	x.watchFirst(number, x.clock())
}

// frozen reports whether an agent has said nothing for a while, though its stream stands.
func (x *Boost) frozen(a *agent) bool { return x.clock().Sub(a.heard) > frozenAfter }

// watchFirst lets a first packet go on about which nobody decides: its agent stands still, or asks others for too long.
func (x *Boost) watchFirst(number uint64, since time.Time) {
	x.Loop.After(frozenAfter, func() {
		of, waits := x.legs.asked[number]
		switch a := x.agents[of.agent]; {
		case !waits:
		case a == nil || x.frozen(a) || x.clock().Sub(since) >= x.Patience:
			x.passFirst(number)
		default:
			x.watchFirst(number, since)
		}
	})
}

// rewrittenLane is that of a connection whose first packet came to a switch; nil: it has none.
func (x *Boost) rewrittenLane(at string, client, server netip.AddrPort) *lane.Lane {
	for i := range x.lanes {
		l := &x.lanes[i]
		if l.Rewrite && l.Takes(client, server) && slices.Contains(x.sites[x.siteOf(l.Near)].Switches, at) {
			return l
		}
	}
	return nil
}

// decide says what is to become of a first packet.
func (x *Boost) decide(syn uint64, verdict apiv1.BoostVerdict) {
	x.legs.decided[verdict]++
	if x.switches.session != nil {
		x.switches.session.Send(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_First{First: &apiv1.SteerFirst{Number: syn, Verdict: verdict}}})
	}
}

// passFirst lets a first packet go on about which nobody has decided.
func (x *Boost) passFirst(number uint64) {
	if of, waits := x.legs.asked[number]; waits {
		delete(x.legs.asked, number)
		x.decide(of.syn, apiv1.BoostVerdict_BOOST_VERDICT_PASS)
	}
}

// passFirsts lets those go on about which an agent does not decide any more.
func (x *Boost) passFirsts(agent string) {
	for _, number := range slices.Sorted(maps.Keys(x.legs.asked)) {
		if x.legs.asked[number].agent == agent {
			x.passFirst(number)
		}
	}
}

// decided takes what a near agent says of a first packet.
func (x *Boost) decided(a *agent, m *apiv1.BoostFirst) {
	of, waits := x.legs.asked[m.Number]
	if !waits || of.agent != a.Name {
		return
	}
	delete(x.legs.asked, m.Number)
	if m.Verdict != apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT {
		x.decide(of.syn, m.Verdict)
		return
	}
	at, err := x.ownPort(a, m.At, of.client)
	if err == nil {
		err = x.setLeg(&leg{legKey: of.legKey, site: of.site, at: at, syn: of.syn})
	}
	if err != nil {
		x.complain(a, fmt.Sprintf("a connection of %v to %v passes unboosted: %v", of.client, of.server, err))
		x.decide(of.syn, apiv1.BoostVerdict_BOOST_VERDICT_PASS)
	}
}

// complain says what is wrong with an agent's connections, now and then: hosts may make many of them.
func (x *Boost) complain(a *agent, text string) {
	if last, is := x.legs.told[a.Name]; !is || x.clock().Sub(last) >= complainEach {
		x.legs.told[a.Name] = x.clock()
		x.Events.Tell("boost.trouble", a.Name, text)
	}
}

// ownPort reads where an agent says that it has a connection: a port of one of its own addresses, whatever else it says, for
// switches send packets there.
func (x *Boost) ownPort(a *agent, text string, host netip.AddrPort) (at netip.AddrPort, err error) {
	if at, err = addressOf(text); err != nil || at.Port() == 0 {
		return at, fmt.Errorf("its port %.80q is none", text)
	}
	for _, door := range a.addresses() {
		if door.Addr() == at.Addr() && at.Addr().Is4() == host.Addr().Is4() {
			return at, nil
		}
	}
	return at, fmt.Errorf("%v is none of the agent's addresses of that family", at)
}

// addresses are an agent's own: its door and those of its other paths.
func (a *agent) addresses() (list []netip.AddrPort) {
	for _, door := range append([]string{a.Door}, a.Doors...) {
		if d, err := netip.ParseAddrPort(door); err == nil {
			list = append(list, d)
		}
	}
	return list
}

// legOf takes a leg that a far agent asks for.
func (x *Boost) legOf(a *agent, m *apiv1.BoostLeg) {
	l, err := x.readLeg(a, m)
	if err == nil {
		err = x.mayRewrite(a, m.Lane, l)
	}
	if err == nil {
		err = x.setLeg(l)
	}
	if err != nil {
		a.session.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_LegReady{LegReady: &apiv1.BoostLegReady{Number: m.Number, Refused: err.Error()}}})
	}
}

// readLeg reads what an agent says of one of its legs.
func (x *Boost) readLeg(a *agent, m *apiv1.BoostLeg) (*leg, error) {
	l := &leg{legKey: legKey{agent: a.Name, far: m.Far}, site: x.siteOf(a.Name), number: m.Number}
	var err, err2 error
	l.client, err = addressOf(m.Client)
	l.server, err2 = addressOf(m.Server)
	if err = cmp.Or(err, err2); err == nil {
		l.at, err = x.ownPort(a, m.At, l.client)
	}
	return l, err
}

// mayRewrite says why an agent does not get the packets of a connection: it is of no lane at whose far end it is.
func (x *Boost) mayRewrite(a *agent, number uint64, l *leg) error {
	if has, is := a.mayHave()[number]; is && l.far && has.Rewrite && slices.Contains(has.Far, a.Name) && laneOf(has).Takes(l.client, l.server) {
		return nil
	}
	return fmt.Errorf("no lane of the agent's has a connection of %v to %v", l.client, l.server)
}

// legsOf takes all the legs that an agent says it has, when it joins. They are those of connections that it carries, whose lanes may
// be gone: of hosts of two sites, its own one of them, whatever it says.
func (x *Boost) legsOf(a *agent, all []*apiv1.BoostLeg) {
	has := map[legKey]bool{}
	for _, m := range all[:min(len(all), maxLegs)] {
		l, err := x.readLeg(a, m)
		if err != nil || !x.isHostOf(l) {
			continue
		}
		has[l.legKey] = true
		if was := x.legs.all[l.legKey]; was != nil && was.at == l.at && l.number == 0 {
			continue
		}
		if err := x.setLeg(l); err != nil && l.number != 0 {
			a.session.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_LegReady{LegReady: &apiv1.BoostLegReady{Number: l.number, Refused: err.Error()}}})
		}
	}
	for key, l := range x.legs.all {
		if key.agent == a.Name && !has[key] {
			x.endLeg(l)
		}
	}
}

// isHostOf reports whether the end host of a leg is one of its agent's site, and the other one of another.
func (x *Boost) isHostOf(l *leg) bool {
	host, other := l.client.Addr(), l.server.Addr()
	if l.far {
		host, other = other, host
	}
	at := x.siteAt(netip.PrefixFrom(other, other.BitLen()))
	return l.site != "" && x.siteAt(netip.PrefixFrom(host, host.BitLen())) == l.site && at != "" && at != l.site
}

// legsOfSite are how many connections of a site are rewritten, but for those that are over.
func (x *Boost) legsOfSite(site string) (n int) {
	for _, l := range x.legs.all {
		if l.site == site && !l.over {
			n++
		}
	}
	return n
}

// sharing is another leg that has the same port of an agent's towards the same end host: switches could not tell the two apart. The
// port of one that is over may have been given again.
func (x *Boost) sharing(l *leg) *leg {
	host := l.message().Host
	for _, o := range x.legs.all {
		if o.legKey != l.legKey && o.at == l.at && o.message().Host == host {
			return o
		}
	}
	return nil
}

// setLeg has the switches of a site rewrite a connection. One that nobody waits for is there already: those who drive switches hear
// of it whenever they come.
func (x *Boost) setLeg(l *leg) error {
	was, up := x.legs.all[l.legKey], false
	for _, name := range x.sites[l.site].Switches {
		up = up || x.switchNamed(name).up
	}
	other := x.sharing(l)
	switch waits := l.syn != 0 || l.number != 0; {
	case was == nil && x.legsOfSite(l.site) >= maxLegs:
		return fmt.Errorf("site %q has %d connections that are rewritten, as many as it may", l.site, maxLegs)
	case other != nil && !other.over:
		return fmt.Errorf("the agent has a connection of %v to %v at %v already", other.client, other.server, l.at)
	case waits && x.switches.session == nil:
		return fmt.Errorf("nobody drives the switches of site %q", l.site)
	case waits && !up:
		return fmt.Errorf("no switch of site %q is connected", l.site)
	}
	if other != nil {
		x.endLeg(other)
	}
	l.needs = map[string]uint64{}
	for _, name := range x.sites[l.site].Switches {
		l.needs[name] = x.tellLegs(name, l.message(), nil)
	}
	delete(x.legs.waiting, was)
	x.legs.all[l.legKey], x.legs.waiting[l] = l, true
	x.heldLegs()
	if x.legs.waiting[l] {
		x.Loop.After(switchPatience, func() { x.giveUp(l) })
	}
	return nil
}

// giveUp lets a connection go on without its leg, whose rules a switch does not take.
func (x *Boost) giveUp(l *leg) {
	if !x.legs.waiting[l] || l.syn == 0 && l.number == 0 {
		return
	}
	if l.syn != 0 {
		x.decide(l.syn, apiv1.BoostVerdict_BOOST_VERDICT_PASS)
	}
	if a := x.agents[l.agent]; a != nil {
		x.complain(a, fmt.Sprintf("a connection of %v to %v is not rewritten: a switch of site %q does not take its rules", l.client, l.server, l.site))
		if l.number != 0 && a.session != nil {
			a.session.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_LegReady{LegReady: &apiv1.BoostLegReady{Number: l.number, Refused: "a switch does not take the rules"}}})
		}
	}
	x.endLeg(l)
}

// forgetFirsts is for who drives the switches no more: all first packets that waited there have gone on, unboosted.
func (x *Boost) forgetFirsts() {
	clear(x.legs.asked)
	for _, l := range x.legs.all {
		if l.syn != 0 {
			x.endLeg(l)
		}
	}
}

// tellLegs has a switch be told of a leg at the end of the turn, and returns the generation of that.
func (x *Boost) tellLegs(at string, set, unset *apiv1.SteerLeg) uint64 {
	m := x.legs.news[at]
	if m == nil {
		m = &apiv1.SteerLegs{Switch: at, Generation: x.nextRules()}
		x.legs.news[at] = m
	}
	if set != nil { // the last word on it counts
		m.Unset = slices.DeleteFunc(m.Unset, func(o *apiv1.SteerLeg) bool { return proto.Equal(o, set) })
		m.Set = append(m.Set, set)
	}
	if unset != nil {
		m.Set = slices.DeleteFunc(m.Set, func(o *apiv1.SteerLeg) bool { return proto.Equal(o, unset) })
		m.Unset = append(m.Unset, unset)
	}
	return m.Generation
}

// flushLegs tells switches what has changed in this turn: of an agent that has gone it may be thousands.
func (x *Boost) flushLegs() {
	for _, name := range slices.Sorted(maps.Keys(x.legs.news)) {
		if x.switches.session != nil {
			x.switches.session.Send(&apiv1.SteerOrder{Order: &apiv1.SteerOrder_Legs{Legs: x.legs.news[name]}})
		}
	}
	clear(x.legs.news)
}

// heldLegs lets those go on whose switches have come to have their rules. Of a switch that is away nobody waits: what is at it does
// not get anywhere either.
func (x *Boost) heldLegs() {
	for l := range x.legs.waiting {
		if x.isHeld(l) {
			delete(x.legs.waiting, l)
			x.isThere(l)
		}
	}
}

func (x *Boost) isHeld(l *leg) bool {
	up := false
	for name, generation := range l.needs {
		w := x.switches.byName[name]
		if w == nil || !w.up {
			continue
		}
		if up = true; w.legs < generation {
			return false
		}
	}
	return up
}

// isThere tells who waits for a leg that it is there.
func (x *Boost) isThere(l *leg) {
	if l.syn != 0 {
		x.decide(l.syn, apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT)
		l.syn = 0
	}
	if a := x.agents[l.agent]; l.number != 0 && a != nil && a.session != nil {
		a.session.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_LegReady{LegReady: &apiv1.BoostLegReady{Number: l.number}}})
		l.number = 0
	}
}

// release sends a first packet that came again to the agent that waits for it.
func (x *Boost) release(l *leg, syn uint64) {
	if x.legs.waiting[l] { // the one before goes nowhere: its switch has it no more
		l.syn = syn
		return
	}
	x.decide(syn, apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT)
}

// legOver takes that an agent has no more to do with a connection.
func (x *Boost) legOver(a *agent, m *apiv1.BoostLegOver) {
	client, err := addressOf(m.Client)
	server, err2 := addressOf(m.Server)
	l := x.legs.all[legKey{a.Name, m.Far, client, server}]
	if l == nil || cmp.Or(err, err2) != nil || l.at.String() != m.At { // the next one of the same hosts may be there
		return
	}
	l.over = true
	x.Loop.After(lateSegments, func() {
		if x.legs.all[l.legKey] == l {
			x.endLeg(l)
		}
	})
}

// endLeg takes a leg's rules out of the switches.
func (x *Boost) endLeg(l *leg) {
	delete(x.legs.all, l.legKey)
	delete(x.legs.waiting, l)
	for name := range l.needs {
		x.tellLegs(name, nil, l.message())
	}
}

// endLegs takes those of an agent out.
func (x *Boost) endLegs(agent string) {
	x.passFirsts(agent)
	delete(x.legs.told, agent)
	for key, l := range x.legs.all {
		if key.agent == agent {
			x.endLeg(l)
		}
	}
}

// idleLegs takes that a switch has taken rules out by itself, for no packet was of them. A leg whose agent no switch has heard for long
// is over, whatever the end host still sends; and so is one that no switch has any more. Where several switches are on the way each
// sees one half of it.
func (x *Boost) idleLegs(m *apiv1.SteerLegs) {
	silent := map[string]bool{} // by leg: only the agent is
	for _, l := range m.GetUnset() {
		silent[l.Host+" "+l.Other+" "+l.Agent] = l.Silent
	}
	for _, l := range x.legs.all {
		said := l.message()
		only, is := silent[said.Host+" "+said.Other+" "+said.Agent]
		if !is {
			continue
		}
		if l.silent == nil {
			l.silent = map[string]bool{}
		}
		if l.silent[m.Switch] = true; !only {
			delete(l.needs, m.Switch)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(l.needs)), func(name string) bool { return !l.silent[name] }) {
			x.endLeg(l)
		}
	}
}

// legsAt are all that a switch is to have, in order.
func (x *Boost) legsAt(name string) (list []*apiv1.SteerLeg) {
	for _, l := range x.legs.all {
		if _, is := l.needs[name]; is {
			list = append(list, l.message())
		}
	}
	slices.SortFunc(list, func(a, b *apiv1.SteerLeg) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Other, b.Other))
	})
	return list
}

// punts are the segments that begin connections of lanes that are rewritten, as far as they come by the switches of the sites that
// have the lanes' ends: what clients and servers say, and what agents do. All of them go by who drives the switches: a switch may go
// on by what it has looked up before for a while after it has new rules, and one such segment with the wrong address ends the
// connection. What comes behind them is said again where it gets lost.
func (x *Boost) punts(name string) (list []*apiv1.SteerPunt) {
	seen := map[string]bool{}
	add := func(p *apiv1.SteerPunt) {
		if text := p.String(); !seen[text] {
			seen[text] = true
			list = append(list, p)
		}
	}
	for i := range x.lanes {
		l := &x.lanes[i]
		if !l.Rewrite {
			continue
		}
		client, server, port := l.Client.String(), l.Server.String(), uint32(l.Port)
		if slices.Contains(x.sites[x.siteOf(l.Near)].Switches, name) {
			add(&apiv1.SteerPunt{Source: client, Destination: server, DestinationPort: port, Waits: true})
			for _, at := range x.addressesOf(l.Near, l.Client.Addr()) {
				add(&apiv1.SteerPunt{Source: at, Destination: client, Answer: true})
			}
		}
		for _, far := range l.Far {
			if !slices.Contains(x.sites[x.siteOf(far)].Switches, name) {
				continue
			}
			add(&apiv1.SteerPunt{Source: server, SourcePort: port, Destination: client, Answer: true})
			for _, at := range x.addressesOf(far, l.Server.Addr()) {
				add(&apiv1.SteerPunt{Source: at, Destination: server, DestinationPort: port})
			}
		}
	}
	return list
}

// addressesOf are an agent's, of the family that a host has, as prefixes.
func (x *Boost) addressesOf(agent string, host netip.Addr) (list []string) {
	a := x.agents[agent]
	if a == nil {
		return nil
	}
	for _, door := range append([]string{a.Door}, a.Doors...) {
		d, err := netip.ParseAddrPort(door)
		if err != nil || d.Addr().Is4() != host.Is4() {
			continue
		}
		if p := netip.PrefixFrom(d.Addr(), d.Addr().BitLen()).String(); !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// unpunted is a switch that does not hold a lane's first packets yet; "": none.
func (x *Boost) unpunted(l *lane.Lane) string {
	for _, name := range x.sites[x.siteOf(l.Near)].Switches {
		if w := x.switches.byName[name]; w == nil || w.told == nil || w.held < w.told.Generation {
			return name
		}
	}
	return ""
}
