package topo

import (
	"encoding/json"
	"slices"
	"time"
)

// jsonGraph is node-link JSON as networkx's node_link_graph(data, edges="edges") reads it.
type jsonGraph struct {
	Directed   bool           `json:"directed"`
	Multigraph bool           `json:"multigraph"`
	Graph      map[string]any `json:"graph"`
	Nodes      []jsonNode     `json:"nodes"`
	Links      []jsonLink     `json:"edges"`
}

type jsonNode struct {
	ID    string   `json:"id"`
	Label string   `json:"label"`
	Lat   *float64 `json:"latitude,omitempty"`
	Lon   *float64 `json:"longitude,omitempty"`
	X     *float64 `json:"x_km,omitempty"`
	Y     *float64 `json:"y_km,omitempty"`
}

type jsonLink struct {
	Source   string   `json:"source"`
	Target   string   `json:"target"`
	Key      int      `json:"key"`
	Length   float64  `json:"length,omitempty"` // km
	Delay    string   `json:"delay,omitempty"`
	Rate     uint64   `json:"rate,omitempty"` // bit/s
	Weight   float64  `json:"weight,omitempty"`
	Relation Relation `json:"relation,omitempty"`
}

// NodeLink writes the graph as node-link JSON, which Read reads again. Where the directions of a link
// differ it is a directed graph, with each link twice.
func (g *Graph) NodeLink() ([]byte, error) {
	out := jsonGraph{Multigraph: true, Graph: map[string]any{"name": g.Name}, Nodes: []jsonNode{}, Links: []jsonLink{}}
	out.Directed = slices.ContainsFunc(g.Links, func(l Link) bool { return l.Ways[0] != l.Ways[1] })
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, n.json())
	}
	keys := map[[2]int]int{}
	for _, l := range g.Links {
		pair := [2]int{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}
		out.Links = append(out.Links, g.way(l, 0, keys[pair]))
		if out.Directed {
			out.Links = append(out.Links, g.way(l, 1, keys[pair]))
		}
		keys[pair]++
	}
	return json.MarshalIndent(out, "", " ")
}

func (n Node) json() jsonNode {
	j := jsonNode{ID: n.Name, Label: n.Label}
	switch {
	case n.At == nil:
	case n.At.Flat:
		j.X, j.Y = &n.At.X, &n.At.Y
	default:
		j.Lat, j.Lon = &n.At.Lat, &n.At.Lon
	}
	return j
}

// way is one direction of a link; the second has no relation, which the first says for both.
func (g *Graph) way(l Link, i, key int) jsonLink {
	w := l.Ways[i]
	j := jsonLink{Source: g.Nodes[l.Ends[i]].Name, Target: g.Nodes[l.Ends[1-i]].Name, Key: key, Length: l.Length, Rate: w.Rate, Weight: w.Weight}
	if w.Delay > 0 {
		j.Delay = w.Delay.Round(time.Nanosecond).String()
	}
	if i == 0 {
		j.Relation = l.Relation
	}
	return j
}
