package file

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab/topo"
)

// written is a topology as a lab file has it.
type written struct {
	Topology
	line           int
	generate, file string
	options        topo.Options
	largest        bool
	at             map[string]int // lines of keys
	node           []*yaml.Node   // keys and values of each node
	except         map[string][]*yaml.Node
	exceptAt       map[string]int
}

// A topologyReader takes the part of a file apart that describes a network by a map or a generator.
type topologyReader struct{ *reader }

// topology reads a topology and puts its nodes and links behind those of the file.
func (r *reader) topology(f *File, n *yaml.Node) {
	bad := len(r.Errs)
	topology := topologyReader{r}
	if w := topology.readTopology(f, n); w != nil {
		f.keepPositions(w.Graph)
		topology.expand(f, w)
	}
	r.partial = len(r.Errs) > bad
}

// readTopology is nil where something is wrong.
func (r topologyReader) readTopology(f *File, n *yaml.Node) *written {
	w := &written{line: n.Line, at: map[string]int{}, except: map[string][]*yaml.Node{}, exceptAt: map[string]int{}}
	w.Kind = Emulated
	bad := len(r.Errs)
	r.topologyKeys(w, n)
	if len(r.Errs) > bad {
		return nil
	}
	graph, err := r.graph(f, w)
	if err != nil {
		r.errorf(w.line, "topology: %v", err)
		return nil
	}
	w.Graph = graph
	return w
}

// topologyKinds forward packets: of other kinds no network is made.
var topologyKinds = []string{string(Emulated), string(FRR), string(Router), string(Switch), string(Plain)}

func (r topologyReader) topologyKeys(w *written, n *yaml.Node) {
	known := fields{
		"generate":      func(n *yaml.Node) { w.generate = r.text(n, "generate") },
		"file":          func(n *yaml.Node) { w.file = r.text(n, "file") },
		topo.OptionSize: func(n *yaml.Node) { w.options.Size = r.integer(n, "size", 1, maxTopology) },
		topo.OptionK:    func(n *yaml.Node) { w.options.K = r.integer(n, "k", 2, maxTopology) },
		topo.OptionSide: func(n *yaml.Node) { w.options.Side = r.kilometres(n) },
		topo.OptionSeed: func(n *yaml.Node) { w.Seed = r.topologySeed(n); w.options.Seed = w.Seed },
		"largest":       func(n *yaml.Node) { w.largest = r.boolean(n, "largest") },
		"kind":          func(n *yaml.Node) { w.Kind = Kind(r.oneOf(n, "kind", topologyKinds...)) },
		"node":          func(n *yaml.Node) { w.node = r.nodeKeys(n, "node") },
		"except":        func(n *yaml.Node) { r.except(w, n) },
		"cost":          func(n *yaml.Node) { w.Cost = r.topologyCost(n) },
		"default-delay": func(n *yaml.Node) { w.DefaultDelay = r.text(n, "default-delay") },
	}
	for _, key := range append(emu.Keys(), "mtu") {
		if known[key] == nil {
			known[key] = func(n *yaml.Node) { w.Link = append(w.Link, Pair{key, r.text(n, key)}) }
		}
	}
	for key, read := range known {
		known[key] = func(n *yaml.Node) { w.at[key] = n.Line; read(n) }
	}
	r.object(n, "topology", known)
	switch {
	case n.Kind != yaml.MappingNode:
	case (w.generate == "") == (w.file == ""):
		r.errorf(n.Line, "topology: expected generate: NAME or file: PATH, one of them")
	case w.file != "":
		r.noOptions(w)
	default:
		r.checkGenerator(w)
	}
}

// noOptions refuses what only generators take. A seed is of the links too.
func (r topologyReader) noOptions(w *written) {
	for _, option := range []string{topo.OptionSize, topo.OptionK, topo.OptionSide} {
		if line := w.at[option]; line > 0 {
			r.errorf(line, "topology: %s is for generate:; a file has the size that it has", option)
		}
	}
}

func (r topologyReader) checkGenerator(w *written) {
	g, err := topo.FindGenerator(w.generate)
	if err != nil {
		r.errorf(w.at["generate"], "topology: %v", err)
		return
	}
	for _, option := range []string{topo.OptionSize, topo.OptionK, topo.OptionSide} {
		switch line := w.at[option]; {
		case line > 0 && !g.Takes(option):
			r.errorf(line, "topology: %s takes no %s; expected %s", g.Name, option, strings.Join(append(g.Required, g.Options...), ", "))
		case line == 0 && slices.Contains(g.Required, option):
			r.errorf(w.line, "topology: %s needs %s", g.Name, option)
		}
	}
}

func (r topologyReader) kilometres(n *yaml.Node) float64 {
	km, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(n.Value, "km")), 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(km > 0) {
		r.errorf(n.Line, "side: expected a length in km such as 1000, found %s", kindOf(n))
	}
	return km
}

func (r topologyReader) topologySeed(n *yaml.Node) uint64 {
	seed, err := strconv.ParseUint(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.errorf(n.Line, "seed: expected a number from 0 to 2^64-1, found %s", kindOf(n))
	}
	return seed
}

func (r topologyReader) topologyCost(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && (n.Value == costWeight || n.Value == costDelay) {
		return n.Value
	}
	if v, err := strconv.Atoi(n.Value); n.Kind == yaml.ScalarNode && err == nil && v >= 1 && v <= maxCost {
		return n.Value
	}
	r.errorf(n.Line, "cost: expected a number from 1 to %d, %s or %s, found %s", maxCost, costWeight, costDelay, kindOf(n))
	return ""
}

// except reads nodes that differ from the others.
func (r topologyReader) except(w *written, n *yaml.Node) {
	r.each(n, "except", func(key, value *yaml.Node) {
		w.exceptAt[key.Value] = key.Line
		if value.Kind == yaml.ScalarNode { // NAME: KIND, as under nodes
			w.except[key.Value] = []*yaml.Node{scalar("kind", value.Line), value}
			return
		}
		w.except[key.Value] = r.nodeKeys(value, "except "+key.Value)
	})
}

// nodeKeys are the keys and values of a mapping; what they mean is seen with the first node.
func (r topologyReader) nodeKeys(n *yaml.Node, what string) (pairs []*yaml.Node) {
	r.each(n, what, func(key, value *yaml.Node) { pairs = append(pairs, key, value) })
	return pairs
}

// scalar is a word as the file might have it.
func scalar(text string, line int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: line}
}
