package lab

import (
	"go.yaml.in/yaml/v3"
)

// later are kinds of nodes that a lab file may name one day.
var later = map[string]string{
	"emulated": "an emulated router",
	"frr":      "a router run by FRR",
}

func (r *reader) nodes(f *File, n *yaml.Node) {
	r.each(n, "nodes", func(key, value *yaml.Node) {
		node := &Node{Line: key.Line, Name: key.Value}
		if !nodeName.MatchString(node.Name) {
			r.errorf(key.Line, "node %q: expected a name of 1 to 32 of a-z, 0-9 and inner dashes", node.Name)
		}
		f.Nodes = append(f.Nodes, node)
		if value.Kind == yaml.ScalarNode {
			node.Kind = r.kind(value)
			node.written = node.Kind
			return
		}
		r.node(node, value)
		if node.Kind == "" {
			r.errorf(key.Line, "node %q has no kind; expected kind: host, router, switch, plain, underlay or controller", node.Name)
		}
	})
}

func (r *reader) node(node *Node, n *yaml.Node) {
	serviceLine, blockLine, programLine := 0, 0, 0
	r.object(n, "node "+node.Name, fields{
		"kind":     func(n *yaml.Node) { node.Kind = r.kind(n); node.written = node.Kind },
		"service":  func(n *yaml.Node) { node.Service, serviceLine = r.boolean(n, "service"), n.Line },
		"block":    func(n *yaml.Node) { node.Block, blockLine = r.integer(n, "block", 1, 255), n.Line },
		"programs": func(n *yaml.Node) { r.programs(node, n); programLine = n.Line },
	})
	if node.Kind == "" {
		return
	}
	if serviceLine > 0 && !node.Kind.routes() {
		r.errorf(serviceLine, "node %q: only a router or switch can be a service router, this is a %s", node.Name, node.Kind)
	}
	if blockLine > 0 && !node.Kind.routes() {
		r.errorf(blockLine, "node %q: only a router or switch has a block, this is a %s", node.Name, node.Kind)
	}
	if programLine > 0 && node.Kind != Host {
		r.errorf(programLine, "node %q: programs run on hosts, this is a %s", node.Name, node.Kind)
	}
}

// badKind stands for a kind that was refused already, so that nothing else is said of the node.
const badKind Kind = "?"

func (r *reader) kind(n *yaml.Node) Kind {
	if what, ok := later[n.Value]; ok && n.Kind == yaml.ScalarNode {
		r.errorf(n.Line, "kind %s (%s) is not in this version; expected host, router, switch, plain, underlay or controller", n.Value, what)
		return badKind
	}
	if k := r.oneOf(n, "kind", string(Host), string(Router), string(Switch), string(Plain), string(Underlay), string(Controller)); k != "" {
		return Kind(k)
	}
	return badKind
}

func (r *reader) programs(node *Node, n *yaml.Node) {
	r.list(n, "programs", func(n *yaml.Node) {
		p := &Program{Line: n.Line}
		r.object(n, "a program", fields{
			"name":    func(n *yaml.Node) { p.Name = r.text(n, "name") },
			"run":     func(n *yaml.Node) { p.Argv = r.argv(n) },
			"service": func(n *yaml.Node) { p.Service = r.text(n, "service") },
			"start":   func(n *yaml.Node) { p.Manual = r.oneOf(n, "start", "auto", "manual") == "manual" },
			"env":     func(n *yaml.Node) { p.Env = r.pairs(n, "env") },
			"files":   func(n *yaml.Node) { p.Files = r.pairs(n, "files") },
		})
		switch {
		case n.Kind != yaml.MappingNode:
			return
		case !programName.MatchString(p.Name):
			r.errorf(n.Line, "a program of node %q needs a name of 1 to 32 letters, digits, dots, dashes; found %q", node.Name, p.Name)
		case p.Argv == nil:
			r.errorf(n.Line, "program %q of node %q has no run: the command to start", p.Name, node.Name)
		}
		node.Programs = append(node.Programs, p)
	})
}

// argv reads a command: a line with quotes as in a shell, or a list of words.
func (r *reader) argv(n *yaml.Node) (argv []string) {
	if n.Kind == yaml.SequenceNode {
		r.list(n, "run", func(n *yaml.Node) { argv = append(argv, r.text(n, "a word of run")) })
	} else if line := r.text(n, "run"); line != "" {
		var err error
		if argv, err = SplitArgv(line); err != nil {
			r.errorf(n.Line, "run: %v", err)
		}
	}
	if len(argv) == 0 {
		return []string{}
	}
	return argv
}

func (r *reader) pairs(n *yaml.Node, what string) (pairs []Pair) {
	r.each(n, what, func(key, value *yaml.Node) {
		pairs = append(pairs, Pair{key.Value, r.text(value, what+" "+key.Value)})
	})
	return pairs
}
