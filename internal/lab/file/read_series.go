package file

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// How often a series is read.
const (
	defaultEvery = 100 * time.Millisecond
	leastEvery   = 10 * time.Millisecond
)

func (r *reader) series(f *File, n *yaml.Node) {
	r.list(n, "series", func(n *yaml.Node) {
		s := &Series{Line: n.Line, Every: defaultEvery}
		r.object(n, "a series", fields{
			"name":        func(n *yaml.Node) { s.Name = r.text(n, "name") },
			"panel":       func(n *yaml.Node) { s.Panel = r.text(n, "panel") },
			"node":        func(n *yaml.Node) { s.Node = r.text(n, "node") },
			"every":       func(n *yaml.Node) { s.Every = r.duration(n, "every") },
			"received":    func(n *yaml.Node) { s.Received = r.text(n, "received") },
			"sent":        func(n *yaml.Node) { s.Sent = r.text(n, "sent") },
			"connections": func(n *yaml.Node) { s.Connections = r.integer(n, "connections", 1, 65535) },
			"run":         func(n *yaml.Node) { s.Argv = r.argv(n) },
			"rate":        func(n *yaml.Node) { s.Rate = r.boolean(n, "rate") },
		})
		if n.Kind == yaml.MappingNode {
			f.Series = append(f.Series, s)
		}
	})
}

func (c *checker) checkSeries(s *Series) {
	means := 0
	for _, given := range []bool{s.Received != "", s.Sent != "", s.Connections > 0, len(s.Argv) > 0} {
		if given {
			means++
		}
	}
	far := s.Received + s.Sent
	switch {
	case s.Name == "" || s.Node == "" || means != 1:
		c.r.errorf(s.Line, "a series needs name, node and one of connections, received, run, sent")
	case c.Node(s.Node) == nil:
		c.r.errorf(s.Line, "series %q on unknown node %q; expected one of %s", s.Name, s.Node, c.Names())
	case far != "" && len(c.linksBetween(s.Node, far)) == 0:
		c.r.errorf(s.Line, "series %q: no link between %q and %q", s.Name, s.Node, far)
	case far == "" && !c.Node(s.Node).Kind.IsNamespace():
		c.r.errorf(s.Line, "series %q on %s %q, which is no namespace; expected received or sent, or a host or the like", s.Name, c.Node(s.Node).Kind, s.Node)
	case s.Every < leastEvery:
		c.r.errorf(s.Line, "series %q: every %v; expected at least %v", s.Name, s.Every, leastEvery)
	case s.Rate && s.Argv == nil:
		c.r.errorf(s.Line, "series %q: rate is for the numbers of run; the others are what they are", s.Name)
	}
	for _, word := range s.Argv {
		if err := checkVariables(word, func(name string) bool { return c.service(name) != nil }); err != nil {
			c.r.errorf(s.Line, "series %q: %v", s.Name, err)
		}
	}
}
