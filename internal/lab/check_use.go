package lab

import (
	"path/filepath"
)

// daemons names the daemon of each kind of node; it is started, killed and stopped like a program.
var daemons = map[Kind]string{Host: "hostd", Router: "routerd", Switch: vswitchd, Controller: "controld"}

// daemon is that of a node, "" for one without.
func (n *Node) daemon() string {
	if n.bare {
		return ""
	}
	return daemons[n.Kind]
}

func (f *File) checkPrograms(r *reader, n *Node) {
	known := func(name string) bool { return f.service(name) != nil }
	for i, p := range n.Programs {
		if p.Name == "hostd" || p.Name == execGroup || p.Name == "state" {
			r.errorf(p.Line, "program %q of node %q: the lab itself uses that name; choose another", p.Name, n.Name)
		}
		for _, q := range n.Programs[:i] {
			if p.Name == q.Name {
				r.errorf(p.Line, "program %q stands twice on node %q (first on line %d)", p.Name, n.Name, q.Line)
			}
		}
		switch {
		case p.Service == "":
		case f.bare || n.Kind == FRR:
			r.errorf(p.Line, "program %q of node %q: service %q; expected none on a node that no controller knows", p.Name, n.Name, p.Service)
		case !known(p.Service):
			r.errorf(p.Line, "program %q of node %q: unknown service %q; expected one of services", p.Name, n.Name, p.Service)
		}
		for _, file := range p.Files {
			if !filepath.IsLocal(file.Key) {
				r.errorf(p.Line, "program %q of node %q: file %q leaves its directory; expected a relative path", p.Name, n.Name, file.Key)
			}
		}
		for _, text := range p.texts() {
			if err := checkVariables(text, known); err != nil {
				r.errorf(p.Line, "program %q of node %q: %v", p.Name, n.Name, err)
			}
		}
	}
}

// texts are the parts of a program in which variables are replaced.
func (p *Program) texts() []string {
	texts := append([]string(nil), p.Argv...)
	for _, pair := range append(append([]Pair(nil), p.Env...), p.Files...) {
		texts = append(texts, pair.Value)
	}
	return texts
}

func (f *File) checkAction(r *reader, s *Step) {
	if err := f.CheckAction(s.Action); err != nil {
		r.errorf(s.Line, "%v", err)
	}
}

func (f *File) checkMeasure(r *reader, m *Measure) {
	switch n := f.Node(m.Node); {
	case n == nil:
		r.errorf(m.Line, "measurement %q on unknown node %q; expected one of %s", m.Name, m.Node, f.names())
	case !n.Kind.namespace():
		r.errorf(m.Line, "measurement %q on %s %q, which is no namespace; expected a host or the like", m.Name, n.Kind, n.Name)
	}
	known := func(name string) bool { return f.service(name) != nil }
	for _, word := range m.Argv {
		if err := checkVariables(word, known); err != nil {
			r.errorf(m.Line, "measurement %q: %v", m.Name, err)
		}
	}
}
