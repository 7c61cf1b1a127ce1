package spf

// A Tree is what every node's shortest paths to one destination cost.
type Tree struct {
	To   int
	Cost []uint32 // by node; Unreachable where there is no way
}

// Fill computes a tree from nothing.
func (g *Graph) Fill(t *Tree, w *Workspace) {
	if len(t.Cost) != g.Nodes() {
		t.Cost = make([]uint32, g.Nodes())
	}
	for i := range t.Cost {
		t.Cost[i] = Unreachable
	}
	t.Cost[t.To] = 0
	w.fit(g)
	if even := g.even; even != 0 {
		g.broad(t, w, even)
		return
	}
	w.queue.push(0, int32(t.To))
	for w.queue.len() > 0 {
		if cost, v := w.queue.pop(); cost == t.Cost[v] {
			g.relax(t, w, cost, v)
		}
	}
}

// relax offers the neighbours of a node the way through it.
func (g *Graph) relax(t *Tree, w *Workspace, cost uint32, v int32) {
	for _, a := range g.at(v) {
		if c := cost + a.in; a.in != 0 && c < t.Cost[a.peer] {
			t.Cost[a.peer] = c
			w.queue.push(c, a.peer)
		}
	}
}

// broad fills the tree in the order of hops, which is right where all edges cost the same.
func (g *Graph) broad(t *Tree, w *Workspace, even uint32) {
	line := append(w.line[:0], int32(t.To))
	for i := 0; i < len(line); i++ {
		c := t.Cost[line[i]] + even
		for _, a := range g.at(line[i]) {
			if a.in != 0 && t.Cost[a.peer] == Unreachable {
				t.Cost[a.peer] = c
				line = append(line, a.peer)
			}
		}
	}
	w.line = line
}

// Hops appends the numbers of the edges by which shortest paths leave a node, in ascending order: none at the
// destination, and none where there is no way.
func (g *Graph) Hops(t *Tree, node int, to []int32) []int32 {
	cost := t.Cost[node]
	if cost == Unreachable || node == t.To {
		return to
	}
	for _, a := range g.at(int32(node)) {
		if a.tight(t, cost) {
			to = append(to, a.edge)
		}
	}
	return to
}

// tight reports that a shortest path from a node of that cost leaves by the arc.
func (a *arc) tight(t *Tree, cost uint32) bool {
	c := t.Cost[a.peer]
	return a.out != 0 && c < cost && cost-c == a.out
}
