package topo

import "fmt"

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
		for b := a + 1; b < len(points); b++ {
			if free(points, a, b) {
				g.join(a, b)
			}
		}
	}
	return nil
}

// free reports whether no third point lies in the sphere with poles a and b. Most pairs are far apart,
// so that one of the first points is in their sphere: a graph of n nodes takes n² log n steps.
func free(points [][3]float64, a, b int) bool {
	p, q := points[a], points[b]
	for i, r := range points {
		// The angle at r is more than a right one.
		if i != a && i != b && (p[0]-r[0])*(q[0]-r[0])+(p[1]-r[1])*(q[1]-r[1])+(p[2]-r[2])*(q[2]-r[2]) < 0 {
			return false
		}
	}
	return true
}
