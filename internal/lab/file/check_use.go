package file

import (
	"path/filepath"
)

// A switch is two processes: what the controller drives, and its database.
const (
	Vswitchd = "vswitchd"
	OVSDB    = "ovsdb"
)

// daemons names the daemon of each kind of node; it is started, killed and stopped like a program.
var daemons = map[Kind]string{Host: "hostd", Agent: "hostd", Router: "routerd", Switch: Vswitchd, Controller: "controld"}

// Daemon is that of a node, "" for one without.
func (n *Node) Daemon() string {
	if n.Bare {
		return ""
	}
	return daemons[n.Kind]
}

// Beside is what a node runs besides its daemon: a switch its database, an agent what carries connections; "" for all others.
func (n *Node) Beside() string {
	switch n.Kind {
	case Switch:
		return OVSDB
	case Agent:
		return Boostd
	}
	return ""
}

func (c *checker) checkPrograms(n *Node) {
	known := func(name string) bool { return c.service(name) != nil }
	for i, p := range n.Programs {
		if p.Name == "hostd" || p.Name != "" && p.Name == n.Beside() || p.Name == ExecGroup || p.Name == "state" {
			c.r.errorf(p.Line, "program %q of node %q: the lab itself uses that name; choose another", p.Name, n.Name)
		}
		for _, q := range n.Programs[:i] {
			if p.Name == q.Name {
				c.r.errorf(p.Line, "program %q stands twice on node %q (first on line %d)", p.Name, n.Name, q.Line)
			}
		}
		switch {
		case p.Service == "":
		case c.Bare || n.Kind == FRR:
			c.r.errorf(p.Line, "program %q of node %q: service %q; expected none on a node that no controller knows", p.Name, n.Name, p.Service)
		case !known(p.Service):
			c.r.errorf(p.Line, "program %q of node %q: unknown service %q; expected one of services", p.Name, n.Name, p.Service)
		}
		for _, file := range p.Files {
			if !filepath.IsLocal(file.Key) {
				c.r.errorf(p.Line, "program %q of node %q: file %q leaves its directory; expected a relative path", p.Name, n.Name, file.Key)
			}
		}
		for _, text := range p.Texts() {
			if err := checkVariables(text, known); err != nil {
				c.r.errorf(p.Line, "program %q of node %q: %v", p.Name, n.Name, err)
			}
		}
	}
}

// Texts are the parts of a program in which variables are replaced.
func (p *Program) Texts() []string {
	texts := append([]string(nil), p.Argv...)
	for _, pair := range append(append([]Pair(nil), p.Env...), p.Files...) {
		texts = append(texts, pair.Value)
	}
	return texts
}

func (c *checker) checkAction(s *Step) {
	if err := c.CheckAction(s.Action); err != nil {
		c.r.errorf(s.Line, "%v", err)
	}
}

func (c *checker) checkMeasure(m *Measure) {
	switch n := c.Node(m.Node); {
	case n == nil:
		c.r.errorf(m.Line, "measurement %q on unknown node %q; expected one of %s", m.Name, m.Node, c.Names())
	case !n.Kind.IsNamespace():
		c.r.errorf(m.Line, "measurement %q on %s %q, which is no namespace; expected a host or the like", m.Name, n.Kind, n.Name)
	}
	known := func(name string) bool { return c.service(name) != nil }
	for _, word := range m.Argv {
		if err := checkVariables(word, known); err != nil {
			c.r.errorf(m.Line, "measurement %q: %v", m.Name, err)
		}
	}
}
