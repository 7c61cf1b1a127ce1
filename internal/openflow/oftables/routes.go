package oftables

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// A neighbour is a next hop: an address on a port.
type neighbour struct {
	port string
	via  netip.Addr
}

// SetPort says which number the switch has for a port; what leads there is put in.
func (t *Tables) SetPort(name string, number ofp.Port) {
	if old, ok := t.ports[name]; ok && old == number {
		return
	}
	t.RemovePort(name)
	for other, n := range t.ports {
		if n == number {
			t.RemovePort(other)
		}
	}
	t.ports[name] = number
	t.renderPorts()
	t.touchPort(name)
}

// RemovePort takes out what leads to a port.
func (t *Tables) RemovePort(name string) {
	number, ok := t.ports[name]
	if !ok {
		return
	}
	for _, key := range t.portKeys(number) {
		t.flows.unset(key)
	}
	delete(t.ports, name)
	t.renderSize(name, number)
	t.touchPort(name)
}

// SetNeighbour says the MAC of a next hop; a zero one is forgotten. Routes that it was wanted for are put in.
func (t *Tables) SetNeighbour(port string, via netip.Addr, mac ofp.MAC) {
	n := neighbour{port, via.WithZone("")}
	if t.neighbours[n] == mac {
		return
	}
	if t.neighbours[n] = mac; mac == (ofp.MAC{}) {
		delete(t.neighbours, n)
	}
	for p := range t.byPort[port] {
		if t.routes[p].Via == n.via {
			t.renderRoute(p)
		}
	}
}

func (t *Tables) touchPort(name string) {
	for p := range t.byPort[name] {
		t.renderRoute(p)
	}
}

// setRoute keeps the route; it is in the switch once its port and MAC are known.
func (t *Tables) setRoute(r plan.Route) {
	r.Prefix, r.Via = r.Prefix.Masked(), r.Via.WithZone("")
	t.dropRoute(r.Prefix)
	t.routes[r.Prefix] = r
	if t.byPort[r.Port] == nil {
		t.byPort[r.Port] = map[netip.Prefix]struct{}{}
	}
	t.byPort[r.Port][r.Prefix] = struct{}{}
	t.renderRoute(r.Prefix)
}

func (t *Tables) removeRoute(p netip.Prefix) {
	p = p.Masked()
	t.dropRoute(p)
	t.renderRoute(p)
}

// dropRoute forgets the route; the switch keeps it until renderRoute.
func (t *Tables) dropRoute(p netip.Prefix) {
	old, ok := t.routes[p]
	if !ok {
		return
	}
	delete(t.routes, p)
	delete(t.byPort[old.Port], p)
	if len(t.byPort[old.Port]) == 0 {
		delete(t.byPort, old.Port)
	}
}

// renderRoute puts in what leads to the prefix, or takes it out.
func (t *Tables) renderRoute(p netip.Prefix) {
	r, ok := t.routes[p]
	key, e := t.flow(t.table(tableRoutes), routePriority(p), PuntNothing, ofp.Match{ipv6, ofp.Prefix(ofp.IPv6Dst, p)})
	outer, entrance := t.ours(p)
	foreign := !t.space.Services.Overlaps(p) && !t.space.AS.Overlaps(p)
	number, there := t.ports[r.Port]
	mac := t.nextHop(r)
	if ok && there && mac == (ofp.MAC{}) && t.own != 0 && t.keep(key, number) {
		if foreign {
			t.flows.set(outer, entrance)
		}
		return
	}
	delete(t.had, key)
	if !ok || !there || mac == (ofp.MAC{}) || t.own == 0 {
		t.flows.unset(key)
		if foreign {
			t.flows.unset(outer)
		}
		return
	}
	e.instructions = []ofp.Instruction{
		ofp.ApplyActions{Actions: []ofp.Action{
			ofp.DecTTL{},
			ofp.SetField{OXM: ofp.HW(ofp.EthSrc, t.o.MAC)},
			ofp.SetField{OXM: ofp.HW(ofp.EthDst, mac)},
		}},
		ofp.WriteMetadata{Metadata: uint64(number), Mask: outMask},
		t.goTo(tableOutput),
	}
	t.flows.set(key, e)
	if foreign {
		t.flows.set(outer, entrance)
	}
}

// keep leaves a route in the switch that it had when it was read, if that leads out of the port, and reports whether it does.
// A controller that has just begun does not know the MACs of next hops. One that is a switch too may come to it some seconds
// later, and says nothing before: what would be taken out until then is what carries its hosts' packets.
func (t *Tables) keep(key flowKey, number ofp.Port) bool {
	e, had := t.had[key]
	if !had {
		return false
	}
	for _, i := range e.instructions {
		if w, ok := i.(ofp.WriteMetadata); ok && w.Mask == outMask && w.Metadata == uint64(number) {
			t.flows.set(key, e)
			return true
		}
	}
	return false
}

// routePriority lets the longest prefix win.
func routePriority(p netip.Prefix) uint16 { return uint16(p.Bits()) + 1 }

func (t *Tables) nextHop(r plan.Route) ofp.MAC {
	if r.MAC != [6]byte{} {
		return r.MAC
	}
	return t.neighbours[neighbour{r.Port, r.Via}]
}

// renderPorts is the table output: a packet that leaves by the port that it came in by has to be told so.
func (t *Tables) renderPorts() {
	for name, number := range t.ports {
		t.renderSize(name, number)
		for i, key := range t.portKeys(number) {
			if t.own == 0 {
				t.flows.unset(key)
				continue
			}
			out := number
			if i == 0 {
				out = ofp.PortIn
			}
			is := ofp.Apply(ofp.Output{Port: out})
			if i == 1 && t.mtus[name] != 0 {
				is = t.measured(t.mtus[name])
			}
			t.flows.set(key, entry{cookie: cookieOf(0, PuntNothing), match: portMatches(number)[i], instructions: is})
		}
	}
}

// portMatches are those of a packet that goes back, and of one that goes on.
func portMatches(number ofp.Port) [2]ofp.Match {
	out := ofp.UintMasked(ofp.Metadata, uint64(number), outMask)
	return [2]ofp.Match{canonical(ofp.Match{ofp.Uint(ofp.InPort, uint64(number)), out}), canonical(ofp.Match{out})}
}

func (t *Tables) portKeys(number ofp.Port) (keys [2]flowKey) {
	const back, on = 2, 1
	for i, m := range portMatches(number) {
		keys[i] = flowKey{t.table(tableOutput), [2]uint16{back, on}[i], text(m)}
	}
	return keys
}
