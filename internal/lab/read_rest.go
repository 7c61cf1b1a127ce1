package lab

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// MTUs that IPv6 and veth allow.
const (
	minMTU     = 1280
	maxMTU     = 65535
	defaultMTU = 1500
)

func (r *reader) links(f *File, n *yaml.Node) {
	r.list(n, "links", func(n *yaml.Node) {
		link := &Link{Line: n.Line, MTU: defaultMTU}
		ok := false
		if n.Kind == yaml.SequenceNode {
			link.Ends, ok = r.ends(n)
		} else {
			r.object(n, "a link", fields{
				"ends": func(n *yaml.Node) { link.Ends, ok = r.ends(n) },
				"rate": func(n *yaml.Node) { link.Rate = r.rate(n) },
				"mtu":  func(n *yaml.Node) { link.MTU = r.integer(n, "mtu", minMTU, maxMTU) },
			})
			if n.Kind == yaml.MappingNode && link.Ends == [2]string{} {
				r.errorf(n.Line, "a link has no ends; expected ends: [NODE, NODE]")
			}
		}
		if ok {
			f.Links = append(f.Links, link)
		}
	})
}

func (r *reader) ends(n *yaml.Node) (ends [2]string, ok bool) {
	var names []string
	r.list(n, "the ends of a link", func(n *yaml.Node) { names = append(names, r.text(n, "an end of a link")) })
	if len(names) != 2 || slices.Contains(names, "") {
		r.errorf(n.Line, "a link joins two nodes; expected [NODE, NODE], found %d", len(names))
		return [2]string{"?", "?"}, false
	}
	return [2]string{names[0], names[1]}, true
}

func (r *reader) rate(n *yaml.Node) uint64 {
	rate, err := ParseRate(n.Value)
	if err != nil {
		r.errorf(n.Line, "rate: %v", err)
	}
	return rate
}

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
			"dscp":      func(n *yaml.Node) { s.DSCP = uint32(r.integer(n, "dscp", 0, 63)) },
		})
	})
}

func (r *reader) timeline(f *File, n *yaml.Node) {
	r.list(n, "timeline", func(n *yaml.Node) {
		step, do := &Step{Line: n.Line}, ""
		r.object(n, "a step of the timeline", fields{
			"at": func(n *yaml.Node) { step.At = r.duration(n, "at") },
			"do": func(n *yaml.Node) { do = r.text(n, "do") },
		})
		if n.Kind != yaml.MappingNode {
			return
		}
		var err error
		if step.Action, err = ParseAction(do); err != nil {
			r.errorf(n.Line, "%v", err)
			return
		}
		f.Timeline = append(f.Timeline, step)
	})
	slices.SortStableFunc(f.Timeline, func(a, b *Step) int { return int(a.At - b.At) })
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
