// Package spf finds shortest paths with all ways of equal cost, and keeps them right while edges come and go.
//
// A [Graph] is nodes and edges by number. A [Tree] holds the cost from every node to one destination; the next hops
// follow from it. Trees are independent of each other: several threads may fill or mend trees of one graph,
// each with a [Workspace] of its own, as long as nobody changes the graph meanwhile.
package spf
