package file

import (
	"go.yaml.in/yaml/v3"
)

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
func (r *values) argv(n *yaml.Node) (argv []string) {
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

func (r *values) pairs(n *yaml.Node, what string) (pairs []Pair) {
	r.each(n, what, func(key, value *yaml.Node) {
		pairs = append(pairs, Pair{key.Value, r.text(value, what+" "+key.Value)})
	})
	return pairs
}
