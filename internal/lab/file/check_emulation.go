package file

import (
	"net/netip"
	"slices"
	"strings"
)

// Limits of networks inside the engine: their addresses are given out of prefixes of these sizes.
const (
	maxIPRouters = 1<<16 - 2 // of RouterPrefix4
	maxEdgeLinks = 1 << 14   // of EdgePrefix4, a /30 each
	maxPorts     = 1 << 14   // of a router, as in package emu
)

// checkEmulation finds what is wrong with routers inside the engine.
func (c *checker) checkEmulation() {
	at := c.Neighbours()
	routers := 0
	for _, n := range c.Nodes {
		if n.Kind.IP() {
			routers++
		}
		if n.Kind.InEngine() {
			c.checkEngineRouter(n, at[n.Name])
		}
	}
	if routers > maxIPRouters {
		c.r.errorf(1, "%d IP routers; expected at most %d, the number of their addresses", routers, maxIPRouters)
	}
	if edges := c.edgeLinks(); edges > maxEdgeLinks {
		c.r.errorf(1, "%d links between IP routers and hosts; expected at most %d, the number of their subnets", edges, maxEdgeLinks)
	}
	c.checkMixed()
	c.checkBare()
}

// enginePrograms are what emulated routers may run in the lab's own engine.
var enginePrograms = []string{ForwardProgram, ScaffoldProgram, LoadProgram}

func (c *checker) checkEngineRouter(n *Node, links []*Link) {
	if len(links) > maxPorts {
		c.r.errorf(n.Line, "router %q has %d links; expected at most %d", n.Name, len(links), maxPorts)
	}
	if n.Kind == Emulated && c.Network.Engine == "" && !slices.Contains(enginePrograms, n.Runs) {
		c.r.errorf(n.Line, "router %q: unknown program %q; expected one of %s, or engine: under network that names an engine with more",
			n.Name, n.Runs, strings.Join(enginePrograms, ", "))
	}
	for _, s := range n.Static {
		if s.Via != Blackhole && !slices.ContainsFunc(links, func(l *Link) bool { return l.far(n.Name) == s.Via }) {
			c.r.errorf(s.Line, "router %q: a route to %v via %q, which is no neighbour; expected the other end of one of its links, or %s",
				n.Name, s.To, s.Via, Blackhole)
		}
	}
	for _, p := range n.Announce {
		for _, used := range []netip.Prefix{RouterPrefix, RouterPrefix4, EdgePrefix, EdgePrefix4} {
			if p.Overlaps(used) && p.Bits() >= used.Bits() {
				c.r.errorf(n.Line, "router %q announces %v, which overlaps %v, which the lab itself uses", n.Name, p, used)
			}
		}
	}
	if n.Feed == FPMFeed && len(n.Protocols) == 0 {
		c.r.errorf(n.Line, "router %q: no protocols, and a feed of FRR's; expected one of %s, %s, %s, or feed: %s for the routes of other daemons",
			n.Name, OSPF6, OSPF, BGP, KernelFeed)
	}
}

// edgeLinks counts links that are subnets of their own.
func (f *File) edgeLinks() (count int) {
	for _, l := range f.Links {
		if a, b := f.Node(l.Ends[0]), f.Node(l.Ends[1]); a != nil && b != nil && (a.EdgeTo(b) || b.EdgeTo(a)) {
			count++
		}
	}
	return count
}

// EdgeTo reports whether a link to the node leaves the network of IP routers there: it is a subnet then.
func (n *Node) EdgeTo(far *Node) bool {
	return n.IP() && (far.Kind.IsHost() || far.Kind == Outside)
}

// checkMixed refuses daemons that would not know of a part of the network.
func (c *checker) checkMixed() {
	daemon := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.Kind == FRR })
	if daemon < 0 || c.Network.Routes == StaticRoutes {
		return
	}
	for _, n := range c.Nodes {
		if n.IsRouter() || n.Kind == Emulated || n.Kind == Plain {
			c.r.errorf(n.Line, "%s %q and frr %q in one network: the daemons would not know of its prefixes; expected one of the two kinds, or routes: %s under network",
				n.Kind, n.Name, c.Nodes[daemon].Name, StaticRoutes)
			return
		}
	}
}

// checkBare refuses what only a controller can do.
func (c *checker) checkBare() {
	if !c.Bare {
		return
	}
	for _, s := range c.Services {
		c.r.errorf(s.Line, "service %q in a network without a controller; expected a node of kind controller, and routers that it drives", s.Name)
	}
}
