package spf

import (
	"fmt"
	"math"
)

// An Edge joins two nodes. Its number is its place among the edges.
type Edge struct {
	A, B   int
	Weight [2]uint32 // from A to B, and from B to A; 0: nothing passes in this direction
}

// A Graph is nodes 0 to N-1, and edges between them that may be cut and joined again.
type Graph struct {
	edges []Edge  // with weights 0 where cut
	arcs  []arc   // of all nodes, those of one node by the number of the edge
	first []int32 // place of a node's first arc; one more at the end
	ends  [][2]int32
	even  uint32 // weight that all edges have in both directions, 0 if they differ or did at a time
	limit uint32 // of a weight, so that no path is longer than a number
}

// An arc is an edge seen from one of its ends.
type arc struct {
	peer, edge int32
	out, in    uint32 // weight to the peer and from it, 0 for no way
}

// Unreachable is the cost from where there is no way.
const Unreachable = math.MaxUint32

// New returns a graph of so many nodes.
func New(nodes int, edges []Edge) (*Graph, error) {
	if nodes < 1 || nodes > math.MaxInt32/2 {
		return nil, fmt.Errorf("graph of %d nodes; expected 1 to %d", nodes, math.MaxInt32/2)
	}
	g := &Graph{edges: append([]Edge(nil), edges...), ends: make([][2]int32, len(edges)), first: make([]int32, nodes+1),
		limit: uint32((math.MaxUint32 - 1) / max(1, nodes-1))}
	for i, e := range edges {
		if err := g.check(i, e); err != nil {
			return nil, err
		}
		g.first[e.A+1]++
		g.first[e.B+1]++
	}
	for n := range nodes {
		g.first[n+1] += g.first[n]
	}
	g.lay()
	g.level()
	return g, nil
}

// lay puts every edge among the arcs of both its ends.
func (g *Graph) lay() {
	g.arcs = make([]arc, 2*len(g.edges))
	next := append([]int32(nil), g.first...)
	for i, e := range g.edges {
		g.ends[i] = [2]int32{next[e.A], next[e.B]}
		g.arcs[next[e.A]] = arc{int32(e.B), int32(i), e.Weight[0], e.Weight[1]}
		next[e.A]++
		g.arcs[next[e.B]] = arc{int32(e.A), int32(i), e.Weight[1], e.Weight[0]}
		next[e.B]++
	}
}

func (g *Graph) check(i int, e Edge) error {
	n := g.Nodes()
	switch {
	case e.A < 0 || e.A >= n || e.B < 0 || e.B >= n:
		return fmt.Errorf("edge %d joins %d and %d; nodes are 0 to %d", i, e.A, e.B, n-1)
	case e.A == e.B:
		return fmt.Errorf("edge %d joins node %d with itself; no shortest path has such an edge, leave it out", i, e.A)
	case max(e.Weight[0], e.Weight[1]) > g.limit:
		return fmt.Errorf("edge %d has weights %d and %d; with %d nodes a weight is at most %d: use a larger unit",
			i, e.Weight[0], e.Weight[1], n, g.limit)
	}
	return nil
}

// Nodes is how many nodes there are.
func (g *Graph) Nodes() int { return len(g.first) - 1 }

// Edges is how many edges there are, cut ones included.
func (g *Graph) Edges() int { return len(g.edges) }

// Edge is an edge as it is now: the weights of a cut one are 0.
func (g *Graph) Edge(i int) Edge { return g.edges[i] }

// at are the arcs of a node.
func (g *Graph) at(node int32) []arc { return g.arcs[g.first[node]:g.first[node+1]] }

// set changes the weights of an edge.
func (g *Graph) set(i int, weight [2]uint32) {
	g.edges[i].Weight = weight
	for _, x := range weight {
		if x != 0 && x != g.even {
			g.even = 0
		}
	}
	a, b := &g.arcs[g.ends[i][0]], &g.arcs[g.ends[i][1]]
	a.out, a.in = weight[0], weight[1]
	b.out, b.in = weight[1], weight[0]
}

// level finds out whether all edges have the same weight in both directions.
func (g *Graph) level() {
	g.even = 0
	for i := range g.edges {
		for _, x := range g.edges[i].Weight {
			if x != 0 && g.even == 0 {
				g.even = x
			}
			if x != 0 && x != g.even {
				g.even = 0
				return
			}
		}
	}
}
