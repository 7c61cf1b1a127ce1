package topo

import "time"

// Limits of a graph. The largest that people study, all autonomous systems of the Internet, has 80,000
// nodes and 700,000 links.
const (
	MaxNodes = 100_000
	MaxLinks = 1_000_000
)

// A Graph is a network: nodes, and links that carry packets in both directions. Several links may join
// the same two nodes; none begins and ends at the same one.
type Graph struct {
	Name  string // as the source calls it, "" where it does not
	Nodes []Node
	Links []Link
}

// A Node is a router, or an autonomous system.
type Node struct {
	Name  string    // unique, 1 to 32 of a-z, 0-9 and inner dashes
	Label string    // what the source calls it
	At    *Position // nil where nobody said
	AS    uint32    // number of an autonomous system, 0 for what is none
}

// A Link joins two different nodes.
type Link struct {
	Ends     [2]int  // numbers of nodes
	Length   float64 // km, 0 where nobody said
	Ways     [2]Way  // [0] from Ends[0] to Ends[1], [1] back
	Relation Relation
}

// A Way is one direction of a link. Zero values are what nobody said.
type Way struct {
	Delay  time.Duration
	Rate   uint64  // bit/s
	Weight float64 // what a routing protocol takes for its cost
}

// A Relation is what two autonomous systems are to each other.
type Relation string

// The relations of a link; "" where nobody said.
const (
	Provider Relation = "provider" // Ends[0] sells transit to Ends[1]
	Peer     Relation = "peer"     // they exchange their customers' traffic
)

// add appends a node.
func (g *Graph) add(name, label string, at *Position) int {
	g.Nodes = append(g.Nodes, Node{Name: name, Label: label, At: at})
	return len(g.Nodes) - 1
}

// join appends a link of which nothing is known.
func (g *Graph) join(a, b int) { g.Links = append(g.Links, Link{Ends: [2]int{a, b}}) }

// neighbours lists the far ends of each node's links; a node at the end of two links stands twice.
func (g *Graph) neighbours() [][]int {
	at := make([][]int, len(g.Nodes))
	for _, l := range g.Links {
		at[l.Ends[0]] = append(at[l.Ends[0]], l.Ends[1])
		at[l.Ends[1]] = append(at[l.Ends[1]], l.Ends[0])
	}
	return at
}
