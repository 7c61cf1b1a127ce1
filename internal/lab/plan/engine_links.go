package plan

import "scaffold.dev/scaffold/internal/lab/file"

// EngineLink is the number of a link with an end inside the engine, -1 for others.
func (p *Plan) EngineLink(c *Link) int {
	if !c.InEngine() {
		return -1
	}
	return p.EmulatedNumber(c)
}

// InEngine reports whether an end of the link is the engine's own, and no interface in a namespace.
func (c *Link) InEngine() bool {
	for _, n := range c.Nodes {
		if n.Kind.InEngine() || n.Kind == file.Outside {
			return true
		}
	}
	return false
}

// EmulatedNumber is the number of a link among the engine's, -1 for a link that is none of them.
func (p *Plan) EmulatedNumber(c *Link) int {
	number := 0
	for _, other := range p.Cable {
		switch {
		case other.Emulated == nil:
		case other == c:
			return number
		default:
			number++
		}
	}
	return -1
}

// HasEngine reports whether anything is emulated.
func (p *Plan) HasEngine() bool {
	for _, c := range p.Cable {
		if c.Emulated != nil {
			return true
		}
	}
	for _, n := range p.Nodes {
		if n.Kind.InEngine() {
			return true
		}
	}
	return false
}
