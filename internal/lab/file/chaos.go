package file

import (
	"math/rand/v2"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// What chaos may break.
const (
	chaosLink   = "link"
	chaosRouter = "router"
	chaosNIC    = "nic"
)

// chaos is faults at random times, which are the same for the same seed.
type chaos struct {
	line        int
	seed        *uint64
	rate        float64       // faults a second, on average
	from, until time.Duration // of the timeline
	repair      time.Duration // from a fault to its repair, on average
	of          []string
}

// maxChaosRate bounds how many faults a second there are.
const maxChaosRate = 1000

func (r *reader) chaos(n *yaml.Node) {
	c := &chaos{line: n.Line, repair: time.Second, rate: 1, of: []string{chaosLink}}
	bad := len(r.Errs)
	r.object(n, "chaos", fields{
		"seed":   func(n *yaml.Node) { c.seed = r.seed(n) },
		"rate":   func(n *yaml.Node) { c.rate = r.number(n, "rate", maxChaosRate) },
		"from":   func(n *yaml.Node) { c.from = r.duration(n, "from") },
		"until":  func(n *yaml.Node) { c.until = r.duration(n, "until") },
		"repair": func(n *yaml.Node) { c.repair = r.duration(n, "repair") },
		"of":     func(n *yaml.Node) { c.of = r.chaosOf(n) },
	})
	switch {
	case len(r.Errs) > bad:
		return
	case c.seed == nil:
		r.errorf(n.Line, "chaos without a seed could not be repeated; expected seed: N, any number")
	case c.until <= c.from:
		r.errorf(n.Line, "chaos until %v begins at %v and has no time; expected until: TIME, after from", c.until, c.from)
	default:
		r.unrest = append(r.unrest, c)
	}
}

func (r *reader) chaosOf(n *yaml.Node) (all []string) {
	r.list(n, "of", func(n *yaml.Node) { all = append(all, r.oneOf(n, "of", chaosLink, chaosRouter, chaosNIC)) })
	return all
}

// targets are what chaos may break: links between routers, routers inside the engine, their interfaces.
func (f *File) targets(of []string) (all []Action) {
	seen := map[[2]string]bool{}
	for _, l := range f.Links {
		a, b := f.Node(l.Ends[0]), f.Node(l.Ends[1])
		if a == nil || b == nil || a.Kind.Ends() || b.Kind.Ends() || l.Tunnel != "" || seen[l.Ends] {
			continue
		}
		seen[l.Ends], seen[[2]string{l.Ends[1], l.Ends[0]}] = true, true
		if slices.Contains(of, chaosLink) {
			all = append(all, Action{Verb: "fail", Node: a.Name, Peer: b.Name})
		}
		for _, end := range [][2]*Node{{a, b}, {b, a}} {
			if slices.Contains(of, chaosNIC) && end[0].Kind.InEngine() {
				all = append(all, Action{Verb: "fail", Node: end[0].Name, Peer: end[1].Name, Fault: Fault{NIC: true}})
			}
		}
	}
	for _, n := range f.Nodes {
		if slices.Contains(of, chaosRouter) && n.Kind.InEngine() {
			all = append(all, Action{Verb: "fail", Node: n.Name})
		}
	}
	return all
}

// expandChaos turns chaos into steps of the timeline.
func (r *reader) expandChaos(f *File) {
	for _, c := range r.unrest {
		targets := f.targets(c.of)
		if len(targets) == 0 {
			r.errorf(c.line, "chaos of %v: the lab has none; expected links between routers, or routers inside the engine", c.of)
			continue
		}
		f.Timeline = append(f.Timeline, c.steps(targets)...)
	}
}

// steps draws faults: their times are those of a Poisson process, and nothing breaks that is broken.
func (c *chaos) steps(targets []Action) (all []*Step) {
	draw := rand.New(rand.NewPCG(*c.seed, 0))
	broken := make([]time.Duration, len(targets)) // until then
	after := func(mean time.Duration) time.Duration {
		return max(time.Millisecond, time.Duration(draw.ExpFloat64()*float64(mean)).Round(time.Millisecond))
	}
	between := time.Duration(float64(time.Second) / c.rate)
	for at := c.from + after(between); at < c.until; at += after(between) {
		i, lasts := draw.IntN(len(targets)), after(c.repair)
		if broken[i] > at {
			continue
		}
		broken[i] = at + lasts
		fault, mend := targets[i], targets[i]
		mend.Verb = "repair"
		all = append(all, &Step{Line: c.line, At: at, Action: fault}, &Step{Line: c.line, At: at + lasts, Action: mend})
	}
	return all
}
