package file

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/internal/lab/topo"
)

// graph makes or reads the graph of a topology.
func (r topologyReader) graph(f *File, w *written) (g *topo.Graph, err error) {
	if w.file == "" {
		generator, err := topo.FindGenerator(w.generate)
		if err != nil {
			return nil, err
		}
		return generator.Generate(w.options)
	}
	text, err := r.attached(f, w.file)
	if err != nil {
		return nil, err
	}
	if g, err = topo.Read(filepath.Base(w.file), text); err != nil {
		return nil, err
	}
	if w.largest {
		g = g.Largest()
	}
	if err := g.Connected(); err != nil {
		return nil, fmt.Errorf("%s: %w; expected links between them, or largest: true, which keeps the first", w.file, err)
	}
	return g, nil
}

// expand puts the nodes and links of a topology behind those of the file, each as if it were written there. Where one
// of them is wrong so would be all others.
func (r topologyReader) expand(f *File, w *written) {
	if len(w.Graph.Nodes) > maxTopology {
		r.errorf(w.line, "topology: %s has %d nodes; a lab takes at most %d", w.file, len(w.Graph.Nodes), maxTopology)
		return
	}
	wires, err := w.wires()
	if err != nil {
		r.errorf(w.line, "topology: %v", err)
		return
	}
	bad := len(r.Errs)
	r.checkNames(f, w)
	for i := 0; i < len(w.Graph.Nodes) && len(r.Errs) == bad; i++ {
		node := w.Graph.Nodes[i]
		r.addNode(f, scalar(node.Name, w.line), w.describe(node))
	}
	for i := 0; i < len(wires) && len(r.Errs) == bad; i++ {
		r.addLink(f, w.mapping(wires[i]))
	}
}

// checkNames refuses names that stand twice, and exceptions of nodes that do not exist.
func (r topologyReader) checkNames(f *File, w *written) {
	own := map[string]*Node{}
	for _, n := range f.Nodes {
		own[n.Name] = n
	}
	names := map[string]bool{}
	for _, n := range w.Graph.Nodes {
		names[n.Name] = true
		if first := own[n.Name]; first != nil {
			r.errorf(first.Line, "node %q: the topology has a node of that name (%s); choose another name, or say under except what is different there", n.Name, n.Label)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(w.except), func(a, b string) int { return cmp.Compare(w.exceptAt[a], w.exceptAt[b]) }) {
		if !names[name] {
			r.errorf(w.exceptAt[name], "except %q: the topology has no node of that name; scaffold lab topology shows them", name)
		}
	}
}

// describe is what the file might say of one node: its kind, then what all nodes have, then what only this one has.
func (w *written) describe(node topo.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Line: w.line}
	add := func(pairs []*yaml.Node) {
		for i := 0; i+1 < len(pairs); i += 2 {
			at := slices.IndexFunc(n.Content, func(k *yaml.Node) bool { return k.Value == pairs[i].Value })
			if at >= 0 && at%2 == 0 {
				n.Content[at+1] = pairs[i+1]
				continue
			}
			n.Content = append(n.Content, pairs[i], pairs[i+1])
		}
	}
	add([]*yaml.Node{scalar("kind", w.line), scalar(string(w.Kind), cmp.Or(w.at["kind"], w.line))})
	add(w.node)
	add(w.except[node.Name])
	if number := strconv.FormatUint(uint64(node.AS), 10); node.AS > 0 && n.Content[1].Value == string(FRR) && !has(n, "as") {
		n.Content = append(n.Content, scalar("as", w.line), scalar(number, w.line))
	}
	return n
}

// has reports whether a mapping has a key.
func has(n *yaml.Node, key string) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// mapping is what the file might say of one link.
func (w *written) mapping(l wire) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Line: w.line}
	add := func(to *yaml.Node, pairs []Pair) {
		for _, p := range pairs {
			line := cmp.Or(w.at[p.Key], w.line)
			to.Content = append(to.Content, scalar(p.Key, line), scalar(p.Value, line))
		}
	}
	ends := &yaml.Node{Kind: yaml.SequenceNode, Line: w.line, Content: []*yaml.Node{scalar(l.ends[0], w.line), scalar(l.ends[1], w.line)}}
	n.Content = append(n.Content, scalar("ends", w.line), ends)
	add(n, l.both)
	for i, pairs := range l.way {
		if len(pairs) > 0 {
			way := &yaml.Node{Kind: yaml.MappingNode, Line: w.line}
			add(way, pairs)
			n.Content = append(n.Content, scalar(l.ends[i]+"->"+l.ends[1-i], w.line), way)
		}
	}
	return n
}
