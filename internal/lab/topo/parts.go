package topo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An ApartError says that no path joins the parts of a graph.
type ApartError struct {
	Parts [][]string // names of nodes, the largest part first
}

func (e *ApartError) Error() string {
	const most = 5 // parts and nodes that are named
	parts := make([]string, 0, most)
	for _, p := range e.Parts[:min(most, len(e.Parts))] {
		names := strings.Join(p[:min(most, len(p))], ", ")
		if len(p) > most {
			names += ", ..."
		}
		parts = append(parts, fmt.Sprintf("%d of %s", len(p), names))
	}
	if left := len(e.Parts) - most; left > 0 {
		parts = append(parts, fmt.Sprintf("%d more", left))
	}
	return fmt.Sprintf("the graph falls apart into %d parts: %s", len(e.Parts), strings.Join(parts, "; "))
}

// parts numbers the connected parts of the graph: part[n] is that of node n.
func (g *Graph) parts() (part []int, count int) {
	at := g.neighbours()
	part = make([]int, len(g.Nodes)) // from 1
	for start := range g.Nodes {
		if part[start] > 0 {
			continue
		}
		count++
		part[start] = count
		for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
			for _, n := range at[queue[0]] {
				if part[n] == 0 {
					part[n] = count
					queue = append(queue, n)
				}
			}
		}
	}
	return part, count
}

// Connected is nil where a path joins any two nodes, an [ApartError] otherwise.
func (g *Graph) Connected() error {
	part, count := g.parts()
	if count <= 1 {
		return nil
	}
	e := &ApartError{Parts: make([][]string, count)}
	for n, p := range part {
		e.Parts[p-1] = append(e.Parts[p-1], g.Nodes[n].Name)
	}
	slices.SortStableFunc(e.Parts, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
	return e
}

// Largest is the connected part with most nodes, the first of those in the order of the nodes.
func (g *Graph) Largest() *Graph {
	part, count := g.parts()
	size := make([]int, count+1)
	for _, p := range part {
		size[p]++
	}
	largest := 0
	for p := range size {
		if size[p] > size[largest] {
			largest = p
		}
	}
	return g.only(func(n int) bool { return part[n] == largest })
}

// only keeps some nodes and the links between them.
func (g *Graph) only(keep func(n int) bool) *Graph {
	kept := &Graph{Name: g.Name}
	to := make([]int, len(g.Nodes))
	for n, node := range g.Nodes {
		to[n] = -1
		if keep(n) {
			to[n] = len(kept.Nodes)
			kept.Nodes = append(kept.Nodes, node)
		}
	}
	for _, l := range g.Links {
		if l.Ends = [2]int{to[l.Ends[0]], to[l.Ends[1]]}; l.Ends[0] >= 0 && l.Ends[1] >= 0 {
			kept.Links = append(kept.Links, l)
		}
	}
	return kept
}
