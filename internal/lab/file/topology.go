package file

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab/topo"
)

// A Topology stands for nodes and links that a lab file does not write one by one: a graph, and what its nodes and
// links have in common.
type Topology struct {
	Graph *topo.Graph
	Kind  Kind   // of each node
	Seed  uint64 // of what is drawn on links; 0: each link's follows from its ends, as always
	Link  []Pair // what each link has, over what the graph says: keys and values of a lab file
	// DefaultDelay is that of links of which the graph says neither delay nor length, where it says one of others.
	DefaultDelay string
	// Cost of each link: a number, costWeight, costDelay, or "" for what a link has anyway.
	Cost string

	written *written
}

// What a cost may follow from.
const (
	costWeight = "weight" // what the graph calls a link's weight, cost or metric
	costDelay  = "delay"  // one for each 10 µs, so that shortest paths are the fastest
)

// maxTopology bounds the nodes of a lab's topology.
const maxTopology = topo.MaxGenerated

// costUnit is the delay that costs one: 2 km of fibre.
const costUnit = 10 * time.Microsecond

// noDelay in place of a delay leaves links without one, whatever their length.
const noDelay = "none"

// A wire is a link of a topology, as a lab file would write it.
type wire struct {
	ends [2]string
	both []Pair
	way  [2][]Pair // of one direction, where they differ
}

// wires are all links.
func (t *Topology) wires() ([]wire, error) {
	if err := t.checkDelays(); err != nil {
		return nil, err
	}
	wires := make([]wire, len(t.Graph.Links))
	for i, l := range t.Graph.Links {
		w := wire{ends: [2]string{t.Graph.Nodes[l.Ends[0]].Name, t.Graph.Nodes[l.Ends[1]].Name}}
		t.delay(&w, l)
		if err := t.rate(&w, l); err != nil {
			return nil, err
		}
		if err := t.cost(&w, l); err != nil {
			return nil, err
		}
		if t.Seed != 0 {
			w.both = append(w.both, Pair{"seed", strconv.FormatUint(emu.Seeds(t.Seed + uint64(i))[0], 10)})
		}
		for _, p := range t.Link {
			if p != (Pair{"delay", noDelay}) {
				w.both = append(w.both, p)
			}
		}
		wires[i] = w
	}
	return wires, nil
}

// has reports whether all links are given a parameter.
func (t *Topology) has(key string) bool {
	for _, p := range t.Link {
		if p.Key == key {
			return true
		}
	}
	return false
}

// checkDelays refuses a graph that knows the delays of some links and not of others, unless somebody says what those
// have.
func (t *Topology) checkDelays() error {
	if t.has("delay") || t.DefaultDelay != "" {
		return nil
	}
	unknown, first := 0, ""
	for _, l := range t.Graph.Links {
		if _, ok := t.Graph.Delays(l); !ok {
			if unknown++; unknown == 1 {
				first = t.Graph.Nodes[l.Ends[0]].Name + " to " + t.Graph.Nodes[l.Ends[1]].Name
			}
		}
	}
	if unknown > 0 && unknown < len(t.Graph.Links) {
		return fmt.Errorf("neither delay nor length is known of %d of %d links, the first from %s; expected default-delay: TIME for those, or delay: TIME for all",
			unknown, len(t.Graph.Links), first)
	}
	return nil
}

func (t *Topology) delay(w *wire, l topo.Link) {
	if t.has("delay") {
		return
	}
	delays, ok := t.Graph.Delays(l)
	switch {
	case ok:
		w.set("delay", [2]string{delays[0].String(), delays[1].String()})
	case t.DefaultDelay != "":
		w.both = append(w.both, Pair{"delay", t.DefaultDelay})
	}
}

func (t *Topology) rate(w *wire, l topo.Link) error {
	if t.has("rate") {
		return nil
	}
	var rates [2]string
	for i, way := range l.Ways {
		if way.Rate != 0 && (way.Rate < emu.MinRate || way.Rate > emu.MaxRate) {
			return fmt.Errorf("the link from %s to %s has a rate of %d bit/s; a lab's have 8kbit to 100Gbit: expected rate: RATE for all links",
				w.ends[i], w.ends[1-i], way.Rate)
		}
		rates[i] = emu.FormatRate(way.Rate)
	}
	w.set("rate", rates)
	return nil
}

func (t *Topology) cost(w *wire, l topo.Link) error {
	switch t.Cost {
	case "":
	case costDelay:
		delays, ok := t.Graph.Delays(l)
		if t.has("delay") || !ok {
			return fmt.Errorf("cost: %s: the link from %s to %s has no delay of the graph's own; expected a number, or the lengths of all links", costDelay, w.ends[0], w.ends[1])
		}
		return w.setCost(math.Round(float64(max(delays[0], delays[1])) / float64(costUnit)))
	case costWeight:
		if l.Ways[0].Weight != l.Ways[1].Weight {
			return fmt.Errorf("cost: %s: the link from %s to %s weighs %g, and %g in the other direction; expected one", costWeight, w.ends[0], w.ends[1], l.Ways[0].Weight, l.Ways[1].Weight)
		}
		if v := l.Ways[0].Weight; v < 1 || v != math.Trunc(v) {
			return fmt.Errorf("cost: %s: the link from %s to %s weighs %g; expected a whole number from 1", costWeight, w.ends[0], w.ends[1], v)
		}
		return w.setCost(l.Ways[0].Weight)
	default:
		w.both = append(w.both, Pair{"cost", t.Cost})
	}
	return nil
}

func (w *wire) setCost(v float64) error {
	if v > maxCost {
		return fmt.Errorf("cost: the link from %s to %s would cost %.0f; expected at most %d", w.ends[0], w.ends[1], v, maxCost)
	}
	w.both = append(w.both, Pair{"cost", strconv.Itoa(int(max(v, 1)))})
	return nil
}

// set gives a parameter to both directions; "" is none.
func (w *wire) set(key string, values [2]string) {
	if values[0] == values[1] && values[0] != "" {
		w.both = append(w.both, Pair{key, values[0]})
		return
	}
	for i, v := range values {
		if v != "" {
			w.way[i] = append(w.way[i], Pair{key, v})
		}
	}
}
