package spf

// A Workspace is memory for the computation of one tree after the other. The zero value is ready.
type Workspace struct {
	queue   queue
	line    []int32
	cost    []uint32
	changed []int32
	round   uint32
	noted   []uint32 // round in which a node was noted as changed
	lostIn  []uint32 // round in which a node lost all next hops
}

func (w *Workspace) fit(g *Graph) {
	if len(w.cost) < g.Nodes() {
		*w = Workspace{cost: make([]uint32, g.Nodes()), noted: make([]uint32, g.Nodes()), lostIn: make([]uint32, g.Nodes())}
	}
}

// begin forgets what was noted.
func (w *Workspace) begin() {
	w.changed = w.changed[:0]
	if w.round++; w.round == 0 {
		clear(w.noted)
		clear(w.lostIn)
		w.round = 1
	}
}

// note takes a node among the changed, once.
func (w *Workspace) note(v int32) {
	if w.noted[v] != w.round {
		w.noted[v] = w.round
		w.changed = append(w.changed, v)
	}
}

func (w *Workspace) lost(v int32) bool { return w.lostIn[v] == w.round }
func (w *Workspace) lose(v int32)      { w.lostIn[v] = w.round }
