package emu

import (
	"errors"
	"fmt"
	"slices"
)

// A group are nodes that stay in one shard.
type group struct {
	routers []*Router
	edges   []*Edge
	fixed   int // the shard, -1 for any
}

// Pin fixes the shard of a router before the start, from 0, as for the placements of the paper's Figures 5 and 7. A
// network that has pinned routers is divided.
func (r *Router) Pin(shard int) { r.pinned = shard + 1 }

// Shard is the number of the shard that the router belongs to; to be called inside [Net.Do].
func (r *Router) Shard() int { return r.shard.number }

// divided reports whether what links join may be in several shards.
func (n *Net) divided() bool {
	return n.opt.Split || slices.ContainsFunc(n.routers, func(r *Router) bool { return r.pinned > 0 })
}

// place gives every router and edge a shard, and every way the shards of its ends.
func (n *Net) place() error {
	groups, of, err := n.groups()
	if err != nil {
		return err
	}
	shards := n.opt.Shards
	if !n.divided() {
		shards = max(1, min(shards, len(groups)))
	}
	for i := range shards {
		s, err := newShard(n, i)
		if err != nil {
			return errors.Join(err, n.Close())
		}
		n.shards = append(n.shards, s)
	}
	n.connect()
	where := Assign(n.load(groups, of), shards)
	for i, g := range groups {
		g.settle(n.shards[where[i]])
	}
	n.border()
	return nil
}

// border finds out which ways cross.
func (n *Net) border() {
	n.crossing = nil
	for _, l := range n.links {
		l.settle()
		for _, w := range l.ways {
			if w.crosses() {
				n.crossing = append(n.crossing, w)
			}
		}
	}
}

// load is what is known of a network before any packet: its shape.
func (n *Net) load(groups []*group, of map[Node]int) Load {
	l := Load{Work: make([]float64, len(groups)), Fixed: make([]int, len(groups))}
	for i, g := range groups {
		l.Work[i] = float64(len(g.routers) + len(g.edges))
		l.Fixed[i] = g.fixed
	}
	for _, link := range n.links {
		a, b := of[link.nodes[0]], of[link.nodes[1]]
		l.Pairs = append(l.Pairs, Traffic{a, b, 0.1}) // that a tie is there, not that it is busy
	}
	return l
}

// groups are the nodes that have to stay together, and the number of each one's group.
func (n *Net) groups() (groups []*group, of map[Node]int, err error) {
	f := newForest(n)
	for _, r := range n.routers {
		for _, p := range r.ports {
			if p.local != nil {
				f.join(r, p.local)
			}
		}
	}
	divided := n.divided()
	for _, l := range n.links {
		if !divided || n.opt.Virtual && min(l.ways[0].line.p.latency(), l.ways[1].line.p.latency()) == 0 {
			f.join(l.nodes[0], l.nodes[1])
		}
	}
	of = map[Node]int{}
	number := map[Node]int{}
	for _, node := range f.nodes {
		top := f.find(node)
		i, ok := number[top]
		if !ok {
			i = len(groups)
			number[top] = i
			groups = append(groups, &group{fixed: -1})
		}
		of[node] = i
		if err := groups[i].add(node, n.opt.Shards); err != nil {
			return nil, nil, err
		}
	}
	return groups, of, nil
}

func (g *group) add(node Node, shards int) error {
	r, ok := node.(*Router)
	if !ok {
		g.edges = append(g.edges, node.(*Edge))
		return nil
	}
	g.routers = append(g.routers, r)
	switch {
	case r.pinned == 0:
		return nil
	case r.pinned > shards:
		return fmt.Errorf("router %s is to be in shard %d; there are %d, from 0", r.name, r.pinned-1, shards)
	case g.fixed >= 0 && g.fixed != r.pinned-1:
		return fmt.Errorf("router %s is to be in shard %d, and one that it is joined to without delay in shard %d", r.name, r.pinned-1, g.fixed)
	}
	g.fixed = r.pinned - 1
	return nil
}

// settle gives a group to a shard.
func (g *group) settle(s *shard) {
	for _, r := range g.routers {
		r.shard = s
	}
	for _, e := range g.edges {
		e.shard = s
	}
	s.routers, s.edges = append(s.routers, g.routers...), append(s.edges, g.edges...)
}

// settle finds out between which shards the link is.
func (l *Link) settle() {
	for i, w := range l.ways {
		w.near, w.far = shardOf(l.nodes[i]), shardOf(l.nodes[1-i])
		w.plain = w.line.p.plain() && !w.crosses() && w.timer.slot == idle
	}
}

func shardOf(n Node) *shard {
	if r, ok := n.(*Router); ok {
		return r.shard
	}
	return n.(*Edge).shard
}

// A forest joins nodes to sets.
type forest struct {
	nodes []Node
	up    map[Node]Node
}

func newForest(n *Net) *forest {
	f := &forest{up: map[Node]Node{}}
	for _, r := range n.routers {
		f.nodes = append(f.nodes, r)
	}
	for _, e := range n.edges {
		f.nodes = append(f.nodes, e)
	}
	return f
}

func (f *forest) find(n Node) Node {
	for f.up[n] != nil {
		if next := f.up[f.up[n]]; next != nil {
			f.up[n] = next
		}
		n = f.up[n]
	}
	return n
}

func (f *forest) join(a, b Node) {
	if a, b = f.find(a), f.find(b); a != b {
		f.up[b] = a
	}
}
