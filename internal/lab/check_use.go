package lab

import (
	"path/filepath"
)

// daemons names the daemon of each kind of node; it is started, killed and stopped like a program.
var daemons = map[Kind]string{Host: "hostd", Router: "routerd", Switch: vswitchd, Controller: "controld"}

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
		if p.Service != "" && !known(p.Service) {
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
	if f.Node(m.Node) == nil {
		r.errorf(m.Line, "measurement %q on unknown node %q; expected one of %s", m.Name, m.Node, f.names())
	}
	known := func(name string) bool { return f.service(name) != nil }
	for _, word := range m.Argv {
		if err := checkVariables(word, known); err != nil {
			r.errorf(m.Line, "measurement %q: %v", m.Name, err)
		}
	}
}
