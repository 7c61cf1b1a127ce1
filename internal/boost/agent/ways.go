package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"

	"scaffold.dev/scaffold/internal/boost/peering"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// MostAddresses is how many an agent may have: each has a listener, and each path to each other agent connections of its own.
const MostAddresses = 8

// An Address is one of this agent's, at which others reach it, and from which it calls them: one for each of its paths.
type Address struct {
	At    netip.AddrPort
	Limit float64 // bytes a second to each other agent, at most; 0: that of Config.Shape
}

// at are a peer's addresses, its door first.
func (p *Peer) at() []netip.AddrPort { return append([]netip.AddrPort{p.Door}, p.More...) }

// pairs are the paths between addresses of two agents, the same for both: of each family the first with the first, the second
// with the second. Where one has fewer, its own begin again: all paths of the other one are used, and each address of who has
// more is of one path alone. All combinations would be several paths over one link, which would take from each other, and
// each would be measured beside the others' traffic.
func pairs(own, others []netip.AddrPort) (list [][2]netip.AddrPort) {
	for _, first := range []bool{true, false} {
		mine, theirs := ofFamily(own, own[0].Addr().Is4() == first), ofFamily(others, own[0].Addr().Is4() == first)
		if len(mine) == 0 || len(theirs) == 0 {
			continue
		}
		for i := range max(len(mine), len(theirs)) {
			list = append(list, [2]netip.AddrPort{mine[i%len(mine)], theirs[i%len(theirs)]})
		}
	}
	return list
}

// ofFamily are the addresses of one family, IPv4 or IPv6.
func ofFamily(all []netip.AddrPort, v4 bool) (list []netip.AddrPort) {
	for _, a := range all {
		if a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port()); a.Addr().Is4() == v4 {
			list = append(list, a)
		}
	}
	return list
}

// errNoWay says that two agents have no path.
var errNoWay = errors.New("it has no address of a family in which this agent has one: there is no path to it")

// ways are the paths to another agent, and the doors at their ends. One of before knows of each agent one address, and calls
// from it, or expects calls from there, alone.
func (a *Agent) ways(p Peer) (ways []trunk.Way, doors map[trunk.Pair]netip.AddrPort) {
	doors = map[trunk.Pair]netip.AddrPort{}
	var own []netip.AddrPort
	limits := map[netip.Addr]float64{}
	for _, x := range a.Addresses {
		own = append(own, x.At)
		limits[x.At.Addr().Unmap()] = x.Limit
	}
	if p.Former {
		own = own[:1]
	}
	for _, ends := range pairs(own, p.at()) {
		pair := trunk.Pair{Own: ends[0].Addr(), Other: ends[1].Addr()}
		if _, twice := doors[pair]; !twice {
			ways = append(ways, trunk.Way{Pair: pair, Limit: limits[pair.Own]})
			doors[pair] = ends[1]
		}
	}
	return ways, doors
}

// use has the trunk go over the paths that there are to the agent, wherever it is now.
func (p *peer) use(in Peer) {
	ways, doors := p.a.ways(in)
	p.a.mu.Lock()
	p.at, p.doors = in.at(), doors
	p.a.mu.Unlock()
	p.trunk.Use(ways)
	if len(ways) == 0 {
		p.a.Report(Event{Agent: p.name, Err: errNoWay})
	}
	if !p.dials() {
		return
	}
	maps.DeleteFunc(p.dialed, func(pair trunk.Pair, _ *trunk.Path) bool { _, is := doors[pair]; return !is })
	for _, w := range ways {
		if path := p.trunk.Path(w.Pair); path != nil && p.dialed[w.Pair] != path {
			p.dialed[w.Pair] = path
			p.all.Go(func() { p.dial(path) })
		}
	}
}

// dial keeps a path connected until it ends.
func (p *peer) dial(path *trunk.Path) {
	d := peering.Dialer{
		Config: p.config(path), Connections: max(p.a.Most, p.a.Connections, p.a.Open), Numbers: &p.numbers,
		TLS: func(failed int) *tls.Config { return p.a.Client(p.name, failed) },
		TCP: func(ctx context.Context) (*net.TCPConn, error) { return p.tcp(ctx, path.Pair) },
		Failed: func(err error) {
			if !path.Failed(err) {
				p.a.Report(Event{Agent: p.name, Err: fmt.Errorf("path %v: %w", path.Pair, err)})
			}
		},
	}
	d.Run(path.Context())
}

// tcp connects to the other agent over a path.
func (p *peer) tcp(ctx context.Context, pair trunk.Pair) (*net.TCPConn, error) {
	p.a.mu.Lock()
	to := p.doors[pair]
	p.a.mu.Unlock()
	return p.a.Dial(ctx, pair.Own, to)
}

// pairOf is the path by which another agent calls.
func pairOf(c net.Conn) trunk.Pair {
	return trunk.Pair{Own: addressOf(c.LocalAddr()), Other: addressOf(c.RemoteAddr())}
}

func addressOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// errOffPath says that an agent calls by addresses that are no path between the two.
var errOffPath = errors.New("its two addresses are no path between the two agents: each has to know all of the other's, in their order")

// path is that of a control connection.
func (p *peer) path(c *tls.Conn) (*trunk.Path, error) {
	pair := pairOf(c)
	if path := p.trunk.Path(pair); path != nil {
		return path, nil
	}
	return nil, fmt.Errorf("it calls %v from %v: %w", pair.Own, pair.Other, errOffPath)
}
