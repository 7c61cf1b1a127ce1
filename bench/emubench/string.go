package emubench

import (
	"fmt"
	"net/netip"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
)

// A Mode is how routers find the way.
type Mode string

// The two modes.
const (
	LPM   Mode = "lpm"   // the longest prefix, in each router's own table
	Class Mode = "class" // of destinations, found once
)

// A row of routers is in a network between two nodes, with port 0 towards the first and port 1 towards the second.
type row struct {
	from, to emu.Node
	routers  int
	mode     Mode
	links    [2]emu.Params  // of every link
	beyond   []netip.Prefix // that lie behind the second node; the first has the network of link 0
}

// join puts the routers into the network.
func (r row) join(net *emu.Net) error {
	last, p := r.from, r.links
	for i := range r.routers + 1 {
		next := r.to
		if i < r.routers {
			program, err := r.router(i)
			if err != nil {
				return err
			}
			next = net.Router(fmt.Sprintf("r%d", i+1), program)
		}
		p[0].Seed, p[1].Seed = r.links[0].Seed<<16+uint64(2*i), r.links[1].Seed<<16+uint64(2*i+1)
		if _, err := net.Link(last, next, p); err != nil {
			return err
		}
		last = next
	}
	if r.mode == Class {
		_, err := forward.Compile(net)
		return err
	}
	return nil
}

// router is the program of router i, between links i and i+1.
func (r row) router(i int) (emu.Program, error) {
	f, err := forward.New(forward.Config{Ports: []forward.PortConfig{
		{Addresses: []netip.Prefix{netip.PrefixFrom(address(i, right), 64)}},
		{Addresses: []netip.Prefix{netip.PrefixFrom(address(i+1, left), 64)}},
	}})
	if err != nil {
		return nil, err
	}
	var routes []forward.Route
	if i > 0 {
		routes = append(routes, forward.To(network(0), 0))
	}
	for _, p := range r.beyond {
		if p != network(i+1) {
			routes = append(routes, forward.To(p, 1))
		}
	}
	return f, f.SetRoutes(routes)
}
