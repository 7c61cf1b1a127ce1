package plan

import (
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/lab/file"
)

// ComputesRoutes reports whether the engine computes the routes of its routers.
func (p *Plan) ComputesRoutes() bool {
	daemons := slices.ContainsFunc(p.Nodes, func(n *Node) bool { return n.Kind == file.FRR })
	return p.File.Network.Routes == file.ComputedRoutes && !daemons // which compute them themselves
}

// TakesPart reports whether computed routes go by the node.
func (n *Node) TakesPart() bool { return n.Kind.IP() || n.IsRouter() }

// Announced are the destinations at a router: those of plain IP, or of Scaffold.
func (p *Plan) Announced(n *Node) []netip.Prefix {
	if !n.IsRouter() {
		return n.Owns()
	}
	all := append(n.Owns(), p.Prefix(n))
	if n.Service {
		all = append(all, p.File.Network.Space.Services)
	}
	return all
}

// Towards is the number of the port to a neighbour, nil for none.
func (n *Node) Towards(far string) *int {
	i := slices.IndexFunc(n.Ports, func(p *Port) bool { return p.Far.Name == far })
	if i < 0 {
		return nil
	}
	return &i
}

// FRRRouters are the routers whose daemons the lab runs.
func (p *Plan) FRRRouters() (nodes []*Node) {
	for _, n := range p.Nodes {
		if n.Kind == file.FRR && len(n.Protocols) != 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
