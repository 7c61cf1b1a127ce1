package spf

import "fmt"

// Cut takes an edge away, and returns the weights that it had. Every tree must be mended before the next change, with
// what Cut returned.
func (g *Graph) Cut(edge int) (weight [2]uint32) {
	weight = g.edges[edge].Weight
	g.set(edge, [2]uint32{})
	return weight
}

// Join puts an edge back, perhaps with other weights. Every tree must be mended before the next change. An edge that
// is not cut is an error: cut it before.
func (g *Graph) Join(edge int, weight [2]uint32) error {
	e := g.edges[edge]
	if e.Weight != [2]uint32{} {
		return fmt.Errorf("edge %d has weights %d and %d; cut it before it gets others", edge, e.Weight[0], e.Weight[1])
	}
	if err := g.check(edge, Edge{e.A, e.B, weight}); err != nil {
		return err
	}
	g.set(edge, weight)
	return nil
}

// AfterCut mends a tree after an edge was cut that had these weights. It returns the nodes whose costs or next hops
// are others now; they are the workspace's until it is used again. A tree of which the edge was no part costs nothing.
func (g *Graph) AfterCut(t *Tree, edge int, weight [2]uint32, w *Workspace) []int32 {
	w.fit(g)
	w.begin()
	e := g.edges[edge]
	for i, x := range [2]int{e.A, e.B} {
		y := e.A + e.B - x
		if a := (arc{peer: int32(y), out: weight[i]}); t.Cost[x] != Unreachable && a.tight(t, t.Cost[x]) {
			w.note(int32(x))
			g.orphan(t, w, int32(x))
			g.adopt(t, w)
		}
	}
	return w.changed
}

// orphan finds the nodes that have lost all their next hops, from one that has lost one.
func (g *Graph) orphan(t *Tree, w *Workspace, node int32) {
	w.line = w.line[:0]
	g.abandon(t, w, node)
	for i := 0; i < len(w.line); i++ {
		v := w.line[i]
		for _, a := range g.at(v) {
			if c := t.Cost[a.peer]; a.in != 0 && c != Unreachable && c > t.Cost[v] && c-t.Cost[v] == a.in {
				w.note(a.peer)
				g.abandon(t, w, a.peer)
			}
		}
	}
}

// abandon adds a node to the orphans if it is one.
func (g *Graph) abandon(t *Tree, w *Workspace, node int32) {
	if w.lost(node) {
		return
	}
	for _, a := range g.at(node) {
		if a.tight(t, t.Cost[node]) && !w.lost(a.peer) {
			return
		}
	}
	w.lose(node)
	w.line = append(w.line, node)
}

// adopt gives the orphans new ways: first from nodes that kept theirs, then from each other.
func (g *Graph) adopt(t *Tree, w *Workspace) {
	for _, v := range w.line {
		best := uint32(Unreachable)
		for _, a := range g.at(v) {
			if a.out != 0 && !w.lost(a.peer) && t.Cost[a.peer] != Unreachable {
				best = min(best, t.Cost[a.peer]+a.out)
			}
		}
		if w.cost[v] = best; best != Unreachable {
			w.queue.push(best, v)
		}
	}
	for _, v := range w.line {
		t.Cost[v] = w.cost[v]
	}
	for w.queue.len() > 0 {
		if cost, v := w.queue.pop(); cost == t.Cost[v] {
			g.relax(t, w, cost, v)
		}
	}
}

// AfterJoin mends a tree after an edge was joined. It returns what AfterCut does.
func (g *Graph) AfterJoin(t *Tree, edge int, w *Workspace) []int32 {
	w.fit(g)
	w.begin()
	e := g.edges[edge]
	for i, x := range [2]int{e.A, e.B} {
		if c := t.Cost[e.A+e.B-x]; e.Weight[i] != 0 && c != Unreachable {
			g.offer(t, w, c+e.Weight[i], int32(x))
		}
		for w.queue.len() > 0 {
			cost, v := w.queue.pop()
			if cost != t.Cost[v] {
				continue
			}
			for _, a := range g.at(v) {
				if a.in != 0 {
					g.offer(t, w, cost+a.in, a.peer)
				}
			}
		}
	}
	return w.changed
}

// offer shows a node a way, which may be better than its own or as good.
func (g *Graph) offer(t *Tree, w *Workspace, cost uint32, v int32) {
	if cost > t.Cost[v] || int(v) == t.To {
		return
	}
	w.note(v)
	if cost < t.Cost[v] {
		t.Cost[v] = cost
		w.queue.push(cost, v)
	}
}
