package emud

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/internal/core/spf"
)

// A routed program takes routes.
type routed interface {
	emu.Program
	SetRoutes([]forward.Route) error
	Add(forward.Route) error
	Delete(netip.Prefix) bool
}

// A destination is what some places announce together: the nearest of them gets the packets.
type destination struct {
	at       []int
	prefixes []netip.Prefix
	tree     spf.Tree
}

// A routing keeps paths and the routers' tables in step with the network.
type routing struct {
	cfg   Routing
	graph *spf.Graph
	up    []bool // by hop
	to    []*destination
	rows  []*row // by place, nil where no router of the engine is
}

// newRouting lays out the network. Behind the places of each destination is one node more, which stands for it.
func newRouting(e *engine) (*routing, error) {
	t := &routing{cfg: e.cfg.Routing, rows: make([]*row, len(e.cfg.Routing.Nodes))}
	t.to = destinations(t.cfg.Nodes)
	var edges []spf.Edge
	for _, h := range t.cfg.Edges {
		edges = append(edges, spf.Edge{A: h.Ends[0], B: h.Ends[1], Weight: h.weight()})
		t.up = append(t.up, true)
	}
	for i, d := range t.to {
		d.tree.To = len(t.cfg.Nodes) + i
		for _, at := range d.at {
			edges = append(edges, spf.Edge{A: at, B: d.tree.To, Weight: [2]uint32{1, 0}})
		}
	}
	var err error
	if t.graph, err = spf.New(len(t.cfg.Nodes)+len(t.to), edges); err != nil {
		return nil, fmt.Errorf("computed routes: %w", err)
	}
	for i, n := range t.cfg.Nodes {
		if r := e.routers[n.Name]; r != nil {
			t.rows[i] = newRow(r, len(t.to))
		}
	}
	t.findPorts(e)
	return t, nil
}

func (h *Hop) weight() [2]uint32 { return [2]uint32{uint32(h.Cost), uint32(h.Cost)} }

// findPorts tells the rows by which port each hop leaves.
func (t *routing) findPorts(e *engine) {
	for i, h := range t.cfg.Edges {
		if h.Link < 0 {
			continue
		}
		for _, end := range e.links[h.Link].ends {
			for _, place := range h.Ends {
				if r := t.rows[place]; r != nil && end.router == r.router {
					r.ports[int32(i)] = end.port
				}
			}
		}
	}
}

// destinations puts prefixes that the same places announce together.
func destinations(nodes []Place) (all []*destination) {
	at := map[netip.Prefix][]int{}
	var order []netip.Prefix
	for i, n := range nodes {
		for _, p := range n.Announce {
			if at[p] == nil {
				order = append(order, p)
			}
			if !slices.Contains(at[p], i) {
				at[p] = append(at[p], i)
			}
		}
	}
	of := map[string]*destination{}
	for _, p := range order {
		key := fmt.Sprint(at[p])
		if of[key] == nil {
			of[key] = &destination{at: at[p]}
			all = append(all, of[key])
		}
		of[key].prefixes = append(of[key].prefixes, p)
	}
	return all
}

// each calls f for all destinations, on all processors.
func (t *routing) each(f func(number int, d *destination, w *spf.Workspace)) {
	var wait sync.WaitGroup
	workers := runtime.NumCPU()
	for first := range workers {
		wait.Go(func() {
			var w spf.Workspace
			for i := first; i < len(t.to); i += workers {
				f(i, t.to[i], &w)
			}
		})
	}
	wait.Wait()
}

// fill computes everything.
func (t *routing) fill() {
	t.each(func(i int, d *destination, w *spf.Workspace) {
		t.graph.Fill(&d.tree, w)
		var hops []int32
		for place, r := range t.rows {
			if r != nil {
				hops = t.graph.Hops(&d.tree, place, hops[:0])
				r.lead(i, hops, t.cfg.ECMP)
			}
		}
	})
}

// follow brings all paths up to date with the hops that are up now.
func (t *routing) follow(up []bool) error {
	for hop, now := range up {
		if now == t.up[hop] {
			continue
		}
		t.up[hop] = now
		if err := t.flip(hop, now); err != nil {
			return err
		}
	}
	return nil
}

// flip cuts a hop or joins it again, and mends all paths.
func (t *routing) flip(hop int, up bool) error {
	weight := t.cfg.Edges[hop].weight()
	if up {
		if err := t.graph.Join(hop, weight); err != nil {
			return err
		}
	} else {
		t.graph.Cut(hop)
	}
	t.each(func(i int, d *destination, w *spf.Workspace) {
		var changed []int32
		if up {
			changed = t.graph.AfterJoin(&d.tree, hop, w)
		} else {
			changed = t.graph.AfterCut(&d.tree, hop, weight, w)
		}
		var hops []int32
		for _, place := range changed {
			if int(place) < len(t.rows) && t.rows[place] != nil {
				hops = t.graph.Hops(&d.tree, int(place), hops[:0])
				t.rows[place].lead(i, hops, t.cfg.ECMP)
			}
		}
	})
	return nil
}

// A row is what one router does with packets to each destination: the number of a set of its ports.
type row struct {
	router *router
	ports  map[int32]int // by hop
	fixed  map[netip.Prefix]bool

	mu     sync.Mutex // of what follows
	sets   [][]forward.NextHop
	number map[string]uint16 // of a set, by its ports
	ways   []uint16          // by destination; 0 is none
	stale  []int             // destinations whose way has changed
	key    []byte
}

func newRow(r *router, destinations int) *row {
	one := &row{router: r, ports: map[int32]int{}, fixed: map[netip.Prefix]bool{}, sets: [][]forward.NextHop{nil},
		number: map[string]uint16{"": 0}, ways: make([]uint16, destinations)}
	for _, s := range r.cfg.Static {
		one.fixed[s.To] = true
	}
	return one
}

// lead takes note of the hops by which a destination is reached now.
func (r *row) lead(to int, hops []int32, ecmp bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.key = r.key[:0]
	for _, h := range hops {
		port, inside := r.ports[h]
		if !inside {
			continue // the edge to the destination's own node
		}
		if r.key = binary.LittleEndian.AppendUint32(r.key, uint32(port)); !ecmp {
			break
		}
	}
	number, ok := r.number[string(r.key)]
	if !ok {
		number = uint16(len(r.sets))
		r.number[string(r.key)] = number
		var set []forward.NextHop
		for k := r.key; len(k) > 0; k = k[4:] {
			set = append(set, forward.NextHop{Port: int(binary.LittleEndian.Uint32(k))})
		}
		r.sets = append(r.sets, set)
	}
	if r.ways[to] != number {
		r.ways[to] = number
		r.stale = append(r.stale, to)
	}
}
