package file

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"
)

func (r *reader) services(f *File, n *yaml.Node) {
	r.each(n, "services", func(key, value *yaml.Node) {
		s := &Service{Line: key.Line, Name: key.Value}
		f.Services = append(f.Services, s)
		if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			return // `web:` alone: all defaults
		}
		r.object(value, "service "+s.Name, fields{
			"ready":     func(n *yaml.Node) { s.Ready = r.text(n, "ready") },
			"weight":    func(n *yaml.Node) { s.Weight = uint32(r.integer(n, "weight", 0, 65535)) },
			"datagrams": func(n *yaml.Node) { s.Datagrams = r.oneOf(n, "datagrams", "bound", "unbound", "unset") },
			"failover":  func(n *yaml.Node) { s.Failover = r.oneOf(n, "failover", "reset", "continue") },
			"patience":  func(n *yaml.Node) { s.Patience = r.patience(n) },
			"drain":     func(n *yaml.Node) { s.Drain = r.oneOf(n, "drain", "wait", "shed") },
			"dscp":      func(n *yaml.Node) { s.DSCP = uint32(r.integer(n, "dscp", 0, 63)) },
		})
	})
}

func (r *reader) timeline(f *File, n *yaml.Node) {
	r.list(n, "timeline", func(n *yaml.Node) {
		f.Timeline = append(f.Timeline, r.steps(f, n)...)
	})
}

// order puts the steps of the timeline in the order of their times.
func (f *File) order() {
	slices.SortStableFunc(f.Timeline, func(a, b *Step) int { return cmp.Compare(a.At, b.At) })
}

func (r *reader) measures(f *File, n *yaml.Node) {
	r.list(n, "measure", func(n *yaml.Node) {
		m := &Measure{Line: n.Line, End: true}
		r.object(n, "a measurement", fields{
			"name": func(n *yaml.Node) { m.Name = r.text(n, "name") },
			"node": func(n *yaml.Node) { m.Node = r.text(n, "node") },
			"run":  func(n *yaml.Node) { m.Argv = r.argv(n) },
			"at":   func(n *yaml.Node) { m.At, m.End = r.duration(n, "at"), false },
		})
		switch {
		case n.Kind != yaml.MappingNode:
			return
		case m.Name == "" || m.Node == "" || m.Argv == nil:
			r.errorf(n.Line, "a measurement needs name, node and run")
			return
		}
		f.Measure = append(f.Measure, m)
	})
}
