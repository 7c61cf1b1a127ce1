package file

import (
	"hash/fnv"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"scaffold.dev/scaffold/emu"
)

// MTUs that IPv6, veth and TAP allow.
const (
	minMTU     = 1280
	maxMTU     = 65535
	maxTapMTU  = 65521
	DefaultMTU = 1500
)

// maxCost bounds the cost of a link, as in OSPF.
const maxCost = 65535

func (r *reader) links(f *File, n *yaml.Node) {
	r.list(n, "links", func(n *yaml.Node) { r.addLink(f, n) })
}

func (r *reader) addLink(f *File, n *yaml.Node) {
	link := &Link{Line: n.Line, Cost: 1}
	ok := false
	if n.Kind == yaml.SequenceNode {
		link.Ends, ok = r.ends(n)
		link.params = seeded(link, len(f.Links))
	} else {
		ok = r.link(link, n, len(f.Links))
	}
	if link.MTU == 0 && link.Tunnel == "" {
		link.MTU = DefaultMTU
	}
	if ok {
		f.Links = append(f.Links, link)
	}
}

// impairments are what a file says about one link.
type impairments struct {
	both []setting
	way  []setting
}

// A setting is one parameter of a link, where it stands, and for which direction.
type setting struct {
	Pair
	line int
	way  string // "a->b", "" for both
}

func (r *reader) link(link *Link, n *yaml.Node, number int) (ok bool) {
	var imp impairments
	known := fields{
		"tunnel":    func(n *yaml.Node) { link.Tunnel = r.oneOf(n, "tunnel", VXLAN) },
		"over":      func(n *yaml.Node) { link.Over = r.oneOf(n, "over", OverIPv6, OverIPv4) },
		"ends":      func(n *yaml.Node) { link.Ends, ok = r.ends(n) },
		"unplugged": func(n *yaml.Node) { link.Unplugged = r.boolean(n, "unplugged") },
		"mtu":       func(n *yaml.Node) { link.MTU = r.integer(n, "mtu", minMTU, maxMTU) },
		"cost":      func(n *yaml.Node) { link.Cost = r.integer(n, "cost", 1, maxCost) },
	}
	for _, key := range emu.Keys() {
		known[key] = func(n *yaml.Node) { imp.both = append(imp.both, r.setting(n, key, "")...) }
	}
	for way := range ways(n) {
		known[way] = func(n *yaml.Node) { imp.way = append(imp.way, r.oneWay(n, way)...) }
	}
	r.object(n, "a link", known)
	if n.Kind == yaml.MappingNode && link.Ends == [2]string{} {
		r.errorf(n.Line, "a link has no ends; expected ends: [NODE, NODE]")
	}
	switch {
	case !ok:
	case link.Tunnel != "" && (len(imp.both) > 0 || len(imp.way) > 0 || link.Unplugged):
		r.errorf(n.Line, "a tunnel has no rate, delay or plug of its own; expected them at the links of the underlay")
	default:
		r.impair(link, imp, number)
	}
	return ok
}

// setting is one, or none where the file has no text.
func (r *reader) setting(n *yaml.Node, key, way string) []setting {
	text := r.text(n, key)
	if n.Kind != yaml.ScalarNode {
		return nil
	}
	return []setting{{Pair{key, text}, n.Line, way}}
}

// ways yields the keys of a mapping that name a direction.
func ways(n *yaml.Node) map[string]bool {
	found := map[string]bool{}
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if key := resolve(n.Content[i]); key.Kind == yaml.ScalarNode && strings.Contains(key.Value, "->") {
			found[key.Value] = true
		}
	}
	return found
}

func (r *reader) oneWay(n *yaml.Node, way string) (all []setting) {
	known := fields{}
	for _, key := range emu.Keys() {
		known[key] = func(n *yaml.Node) { all = append(all, r.setting(n, key, way)...) }
	}
	r.object(n, "the direction "+way+" of a link", known)
	return all
}

// seeded are the parameters of a link of which nothing is said. It has the same seed in each run.
func seeded(link *Link, number int) (p [2]emu.Params) {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(append(link.Ends[:], string(rune('0'+number))), " ")))
	for i, seed := range emu.Seeds(h.Sum64()) {
		p[i].Seed = seed
	}
	return p
}

// impair decides what a link is: a veth pair if nothing but a rate for both directions is said of it, unless one
// of its ends is the engine's.
func (r *reader) impair(link *Link, imp impairments, number int) {
	p := seeded(link, number)
	bad := len(r.Errs)
	for _, s := range append(imp.both, imp.way...) {
		from, to, _ := strings.Cut(s.way, "->")
		if s.way != "" && [2]string{from, to} != link.Ends && [2]string{to, from} != link.Ends {
			r.errorf(s.line, "direction %q of a link between %s and %s; expected %q or %q", s.way, link.Ends[0], link.Ends[1],
				link.Ends[0]+"->"+link.Ends[1], link.Ends[1]+"->"+link.Ends[0])
			return
		}
		if err := SetWay(&p, link.Ends, from, s.Pair); err != nil {
			r.errorf(s.line, "%v", err)
		}
	}
	if len(r.Errs) > bad {
		link.Emulated = &p // nothing else is to be said of it
		return
	}
	link.params = p
	if len(imp.way) == 0 && !slices.ContainsFunc(imp.both, func(s setting) bool { return s.Key != "rate" }) {
		link.Rate = p[0].Rate
		return
	}
	link.Emulated = &p
	r.checkImpaired(link)
}

func (r *reader) checkImpaired(link *Link) {
	for i, p := range link.Emulated {
		if err := p.Validate(); err != nil {
			r.errorf(link.Line, "link from %s to %s: %v", link.Ends[i], link.Ends[1-i], err)
			break // the other direction is mostly the same
		}
	}
	if link.MTU > maxTapMTU {
		r.errorf(link.Line, "mtu: expected at most %d on a link with delay, loss and the like, found %d", maxTapMTU, link.MTU)
	}
}

// SetWay changes a parameter of both directions, or, with a node named, of the one that begins there.
func SetWay(p *[2]emu.Params, ends [2]string, from string, s Pair) error {
	for i := range p {
		if from != "" && from != ends[i] {
			continue
		}
		if err := p[i].Set(s.Key, s.Value); err != nil {
			return err
		}
		if s.Key == "seed" { // the directions of a link do not lose the same packets
			p[i].Seed = emu.Seeds(p[i].Seed)[i]
		}
	}
	return nil
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
