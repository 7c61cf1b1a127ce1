package file

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// maxTimes bounds how often a step repeats.
const maxTimes = 10000

// A repetition is a step as a file writes it: once, or several times with actions that take turns.
type repetition struct {
	first Step
	every time.Duration
	times int
	do    []Action
}

// steps reads one item of a timeline, which stands for as many steps as it repeats.
func (r *reader) steps(f *File, n *yaml.Node) []*Step {
	p, bad := repetition{first: Step{Line: n.Line}}, len(r.Errs)
	trace, random := "", false
	r.object(n, "a step of the timeline", fields{
		"replay": func(n *yaml.Node) { trace = r.text(n, "replay") },
		"chaos":  func(n *yaml.Node) { r.chaos(n); random = true },
		"at":     func(n *yaml.Node) { p.first.At = r.duration(n, "at") },
		"do":     func(n *yaml.Node) { p.do = r.actions(n) },
		"every":  func(n *yaml.Node) { p.every = r.duration(n, "every") },
		"times":  func(n *yaml.Node) { p.times = r.integer(n, "times", 1, maxTimes) },
		"label":  func(n *yaml.Node) { p.first.Label = r.text(n, "label") },
	})
	switch {
	case len(r.Errs) > bad:
		return nil
	case trace != "":
		return r.replay(f, n, trace, p.first.At)
	case random:
		return nil // when all nodes are known
	case len(p.do) == 0:
		r.errorf(n.Line, "a step of the timeline without do; expected do: ACTION")
		return nil
	case p.every == 0 && (p.times > 0 || len(p.do) > 1):
		r.errorf(n.Line, "a step that repeats needs the time in between; expected every: TIME")
		return nil
	}
	return p.expand()
}

// actions reads one action or a list of them.
func (r *reader) actions(n *yaml.Node) (list []Action) {
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		n = &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Content: []*yaml.Node{n}}
	}
	r.list(n, "do", func(n *yaml.Node) {
		a, err := ParseAction(r.text(n, "do"))
		if err != nil {
			r.errorf(n.Line, "%v", err)
			return
		}
		list = append(list, a)
	})
	return list
}

func (p repetition) expand() (steps []*Step) {
	if p.times == 0 {
		p.times = len(p.do)
	}
	for i := range p.times {
		s := p.first
		s.At += time.Duration(i) * p.every
		s.Action = p.do[i%len(p.do)]
		steps = append(steps, &s)
	}
	return steps
}
