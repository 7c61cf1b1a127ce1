package emu

import "slices"

// A group are nodes and ways that stay in one shard.
type group struct {
	routers []*Router
	edges   []*Edge
	ways    []*way
}

// groups are the parts of the network that no link joins, the larger ones first.
func (n *Net) groups() []*group {
	of := map[Node]*group{}
	find := func(node Node) *group {
		if of[node] == nil {
			of[node] = &group{}
			of[node].add(node)
		}
		return of[node]
	}
	join := func(a, b Node) *group {
		g, h := find(a), find(b)
		if g == h {
			return g
		}
		if g.weight() < h.weight() {
			g, h = h, g
		}
		for _, r := range h.routers {
			of[r] = g
		}
		for _, e := range h.edges {
			of[e] = g
		}
		g.routers, g.edges, g.ways = append(g.routers, h.routers...), append(g.edges, h.edges...), append(g.ways, h.ways...)
		return g
	}
	for _, r := range n.routers {
		find(r)
	}
	for _, e := range n.edges {
		find(e)
	}
	for _, l := range n.links {
		g := join(l.nodes[0], l.nodes[1])
		g.ways = append(g.ways, l.ways[:]...)
	}
	for _, r := range n.routers {
		for _, p := range r.ports {
			if p.local != nil {
				join(r, p.local)
			}
		}
	}
	return sorted(of)
}

func (g *group) add(node Node) {
	switch v := node.(type) {
	case *Router:
		g.routers = append(g.routers, v)
	case *Edge:
		g.edges = append(g.edges, v)
	}
}

func (g *group) weight() int { return len(g.routers) + len(g.edges) + len(g.ways) }

// first is a number by which groups of the same weight keep their order.
func (g *group) first() int {
	least := int(^uint(0) >> 1)
	for _, r := range g.routers {
		least = min(least, r.number)
	}
	for _, e := range g.edges {
		least = min(least, 1<<32+e.number)
	}
	return least
}

func sorted(of map[Node]*group) (groups []*group) {
	seen := map[*group]bool{}
	for _, g := range of {
		if !seen[g] {
			seen[g] = true
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(g, h *group) int {
		if d := h.weight() - g.weight(); d != 0 {
			return d
		}
		return g.first() - h.first()
	})
	return groups
}

// settle gives a group to a shard.
func (g *group) settle(s *shard) {
	slices.SortFunc(g.routers, func(a, b *Router) int { return a.number - b.number })
	for _, r := range g.routers {
		r.shard = s
	}
	for _, e := range g.edges {
		e.shard = s
	}
	for _, w := range g.ways {
		w.near = s
	}
	s.routers, s.edges = append(s.routers, g.routers...), append(s.edges, g.edges...)
	s.weight += g.weight()
}
