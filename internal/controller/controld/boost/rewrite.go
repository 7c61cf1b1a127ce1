package boost

import (
	"net/netip"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
)

// Connections of a lane that is rewritten come to agents by rules of their own (docs/protocol.md §9.5), which are legs': here is
// what they have to do with lanes.

// frozenAfter is how long a near agent says nothing until it is asked about no first packet: agents say how they are each 500 ms.
const frozenAfter = 2 * time.Second

// around is what legs see of a network.
type around struct{ x *Boost }

func (r around) Site(agent string) string  { return r.x.siteOf(agent) }
func (r around) At(host netip.Addr) string { return r.x.siteAt(netip.PrefixFrom(host, host.BitLen())) }

func (r around) Switches(site string) []string { return r.x.sites[site].Switches }

func (r around) Switch(name string) (up bool, has uint64) {
	if w := r.x.switches.byName[name]; w != nil {
		return w.up, w.legs
	}
	return false, 0
}

func (r around) Addresses(agent string) []netip.Addr {
	if a := r.x.agents[agent]; a != nil {
		return a.addresses()
	}
	return nil
}

func (r around) Listens(agent string) bool {
	a := r.x.agents[agent]
	return a != nil && a.session != nil && r.x.clock().Sub(a.heard) <= frozenAfter
}

func (r around) MayHave(agent string, number uint64, client, server netip.AddrPort) bool {
	a := r.x.agents[agent]
	if a == nil {
		return false
	}
	has, is := a.mayHave()[number]
	return is && has.Rewrite && slices.Contains(has.Far, agent) && laneOf(has).Takes(client, server)
}

func (r around) Order(agent string, o *apiv1.BoostOrder) {
	if a := r.x.agents[agent]; a != nil && a.session != nil {
		a.session.Send(o)
	}
}

func (r around) Driven() bool { return r.x.switches.session != nil }

func (r around) Steer(o *apiv1.SteerOrder) {
	if s := r.x.switches.session; s != nil {
		s.Send(o)
	}
}

func (r around) Generation() uint64              { return r.x.nextRules() }
func (r around) Tell(agent, text string)         { r.x.Events.Tell("boost.trouble", agent, text) }
func (r around) After(d time.Duration, f func()) { r.x.Loop.After(d, f) }
func (r around) Now() time.Time                  { return r.x.clock() }

// first takes a client's first packet that waits at a switch.
func (x *Boost) first(m *apiv1.SteerSYN) {
	client, err := lane.ParseEnd(m.Client)
	server, err2 := lane.ParseEnd(m.Server)
	l := x.rewrittenLane(m.Switch, client, server)
	if err != nil || err2 != nil || l == nil {
		x.legs.Pass(m.Number)
		return
	}
	x.legs.First(m.Number, l.Near, l.Number, client, server)
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
	for _, at := range (around{x}).Addresses(agent) {
		if at.Is4() == host.Is4() {
			list = append(list, netip.PrefixFrom(at, at.BitLen()).String())
		}
	}
	return list
}

// addresses are an agent's own: that of its door, and those of its other paths.
func (a *agent) addresses() (list []netip.Addr) {
	for _, text := range append([]string{a.Door}, a.Doors...) {
		if door, err := netip.ParseAddrPort(text); err == nil && !slices.Contains(list, door.Addr()) {
			list = append(list, door.Addr())
		}
	}
	return list
}

// rewritten is for whose connections an agent can have ports of its own: those of its addresses' families.
func (a *agent) rewritten() (of lane.Family) {
	if !a.rewrites {
		return 0
	}
	for _, at := range a.addresses() {
		of |= lane.FamilyOf(at)
	}
	return of
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
