package topo

import "time"

// A Summary says how a graph is shaped. Means and the diameter are of connected graphs.
type Summary struct {
	Name     string        `json:"name"`
	Nodes    int           `json:"nodes"`
	Links    int           `json:"links"`
	Parallel int           `json:"parallel"` // links beside another one between the same nodes
	Degree   Spread        `json:"degree"`   // links at a node
	Hops     float64       `json:"hops"`     // mean length of the shortest path of two different nodes, in links
	Diameter int           `json:"diameter"` // the longest shortest path, in links
	Sampled  bool          `json:"sampled"`  // the graph is large: hops and diameter are of paths from some nodes
	Placed   int           `json:"placed"`   // nodes with a position
	Length   float64       `json:"length"`   // km of all links together whose length is known
	Delayed  int           `json:"delayed"`  // links whose delay is known
	MinDelay time.Duration `json:"min_delay"`
	MaxDelay time.Duration `json:"max_delay"`
}

// A Spread is what a number ranges over.
type Spread struct {
	Min  int     `json:"min"`
	Mean float64 `json:"mean"`
	Max  int     `json:"max"`
}

// maxSteps bounds the search for shortest paths: about a second of work. Larger graphs are searched
// from as many of their nodes as that allows.
const maxSteps = 200_000_000

// Summary measures the graph.
func (g *Graph) Summary() Summary {
	s := Summary{Name: g.Name, Nodes: len(g.Nodes), Links: len(g.Links)}
	if s.Nodes == 0 {
		return s
	}
	at := g.neighbours()
	s.Degree = spread(at)
	g.measureLinks(&s)
	for _, n := range g.Nodes {
		if n.At != nil {
			s.Placed++
		}
	}
	stride := 1 + s.Nodes*(s.Nodes+2*s.Links)/maxSteps
	s.Sampled = stride > 1
	g.measurePaths(&s, at, stride)
	return s
}

func spread(at [][]int) Spread {
	s, sum := Spread{Min: len(at[0])}, 0
	for _, far := range at {
		s.Min, s.Max = min(s.Min, len(far)), max(s.Max, len(far))
		sum += len(far)
	}
	s.Mean = float64(sum) / float64(len(at))
	return s
}

func (g *Graph) measureLinks(s *Summary) {
	seen := map[[2]int]bool{}
	for _, l := range g.Links {
		pair := [2]int{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}
		if seen[pair] {
			s.Parallel++
		}
		seen[pair] = true
		if km, ok := g.Length(l); ok {
			s.Length += km
		}
		delays, ok := g.Delays(l)
		if !ok {
			continue
		}
		for _, d := range delays {
			if s.Delayed == 0 || d < s.MinDelay {
				s.MinDelay = d
			}
			s.MaxDelay = max(s.MaxDelay, d)
		}
		s.Delayed++
	}
}

// measurePaths searches breadth first from every stride-th node.
func (g *Graph) measurePaths(s *Summary, at [][]int, stride int) {
	hops := make([]int, len(at))
	queue := make([]int, 0, len(at))
	sum, pairs := 0, 0
	for start := 0; start < len(at); start += stride {
		for n := range hops {
			hops[n] = -1
		}
		hops[start], queue = 0, append(queue[:0], start)
		for i := 0; i < len(queue); i++ {
			for _, n := range at[queue[i]] {
				if hops[n] < 0 {
					hops[n] = hops[queue[i]] + 1
					queue = append(queue, n)
				}
			}
		}
		for _, n := range queue[1:] {
			sum += hops[n]
		}
		pairs += len(queue) - 1
		s.Diameter = max(s.Diameter, hops[queue[len(queue)-1]])
	}
	if pairs > 0 {
		s.Hops = float64(sum) / float64(pairs)
	}
}
