package topo

import (
	"fmt"
	"math"
)

// gabrielSquare throws nodes into a square and makes their Gabriel graph.
func gabrielSquare(o Options) (*Graph, error) {
	g, d := &Graph{}, newDice(o.Seed)
	for i := range o.Size {
		name := fmt.Sprint("r", i+1)
		g.add(name, name, &Position{X: d.share() * o.Side, Y: d.share() * o.Side, Flat: true})
	}
	return g, g.Gabriel()
}

// Gabriel replaces the links by those of the Gabriel graph of the nodes' positions: two nodes are
// joined where no third lies in the sphere that has them as poles (K. R. Gabriel, R. R. Sokal: A new
// statistical approach to geographic variation analysis, 1969). It is connected, has few crossings and
// looks as long-haul networks do (E. K. Çetinkaya and others: On the fitness of geographic graph
// generators for modelling physical level topologies, 2013).
func (g *Graph) Gabriel() error {
	points := make([][3]float64, len(g.Nodes))
	at := map[[3]float64]int{}
	for i, n := range g.Nodes {
		if n.At == nil {
			return fmt.Errorf("node %s has no position; a Gabriel graph needs one of each", n.Name)
		}
		points[i] = n.At.space()
		if first, twice := at[points[i]]; twice {
			return fmt.Errorf("nodes %s and %s are at the same place; a Gabriel graph needs different ones", g.Nodes[first].Name, n.Name)
		}
		at[points[i]] = i
	}
	g.Links = nil
	for a := range points {
		near := nearest(points, a)
		for b := a + 1; b < len(points); b++ {
			if free(points, a, b, near[:]) && free(points, a, b, nil) {
				g.join(a, b)
			}
		}
	}
	return nil
}

// nearby is how many of a node's nearest are asked first: of two nodes far apart one of them is nearly
// always between, so that a graph of n nodes takes little more than n² steps.
const nearby = 12

// nearest are the nodes nearest to a, or a itself where there are fewer.
func nearest(points [][3]float64, a int) (near [nearby]int) {
	var far [nearby]float64 // squares of their distances, ascending
	for i := range near {
		near[i], far[i] = a, math.Inf(1)
	}
	for b := range points {
		d := square(points[a], points[b])
		if b == a || d >= far[nearby-1] {
			continue
		}
		i := nearby - 1
		for ; i > 0 && far[i-1] > d; i-- {
			near[i], far[i] = near[i-1], far[i-1]
		}
		near[i], far[i] = b, d
	}
	return near
}

// free reports whether none of some nodes, or with nil of all, lies in the sphere with poles a and b.
func free(points [][3]float64, a, b int, some []int) bool {
	if some == nil {
		for i := range points {
			if i != a && i != b && between(points[i], points[a], points[b]) {
				return false
			}
		}
	}
	for _, i := range some {
		if i != a && i != b && between(points[i], points[a], points[b]) {
			return false
		}
	}
	return true
}

// between reports whether r lies in the sphere with poles p and q: the angle at r is more than a right one.
func between(r, p, q [3]float64) bool {
	return (p[0]-r[0])*(q[0]-r[0])+(p[1]-r[1])*(q[1]-r[1])+(p[2]-r[2])*(q[2]-r[2]) < 0
}
