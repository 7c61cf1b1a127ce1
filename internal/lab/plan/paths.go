package plan

import (
	"net/netip"
)

// A hop is how a node is reached from another: through which of its ports, over how many links.
type hop struct {
	port *Port
	hops int
}

// reach computes shortest paths from a node to all others by breadth, in the order of the file, so
// that the result is always the same. through says which nodes may be crossed.
func (p *Plan) reach(from *Node, through func(*Node) bool) map[*Node]hop {
	found := map[*Node]hop{from: {}}
	for queue := []*Node{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && !through(at) {
			continue
		}
		for _, port := range at.Data() {
			if _, seen := found[port.Far]; seen {
				continue
			}
			first := found[at].port
			if at == from {
				first = port
			}
			found[port.Far] = hop{first, found[at].hops + 1}
			queue = append(queue, port.Far)
		}
	}
	return found
}

// staticRoutes are what a plain router needs to carry Scaffold's packets: one route per block, and the
// service prefix towards the nearest service router.
func (p *Plan) staticRoutes(from *Node) (routes []Route) {
	found := p.reach(from, func(n *Node) bool { return !n.Kind.Ends() })
	nearest, hops := hop{}, 0
	for _, n := range p.Nodes {
		h, ok := found[n]
		if !ok || !n.IsRouter() {
			continue
		}
		routes = append(routes, p.route(p.Prefix(n), h))
		if n.Service && (nearest.port == nil || h.hops < hops) {
			nearest, hops = h, h.hops
		}
	}
	if nearest.port != nil {
		routes = append(routes, p.route(p.File.Network.Space.Services, nearest))
	}
	return routes
}

func (p *Plan) route(prefix netip.Prefix, h hop) Route {
	return Route{Prefix: prefix, Via: h.port.Far.LinkLocal, Dev: h.port.Dev}
}

// peers are the routers that a router reaches through plain routers alone: it cannot hear their
// HELLOs on its links. One that is also a direct neighbour is left out.
func (p *Plan) peers(from *Node) (peers []Peer) {
	found := p.reach(from, func(n *Node) bool { return n.IP() })
	for _, n := range p.Nodes {
		h, ok := found[n]
		if !ok || n == from || !n.IsRouter() || h.hops < 2 {
			continue
		}
		peers = append(peers, Peer{Name: n.Name, Dev: h.port.Dev, Via: h.port.Far.LinkLocal, Hops: h.hops})
	}
	return peers
}
