package file

import (
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Protocols that a router of kind frr may run.
const (
	OSPF6 = "ospf6" // OSPFv3, for IPv6
	OSPF  = "ospf"  // OSPFv2, for IPv4
	BGP   = "bgp"   // for both
)

// maxCore bounds the numbers of the engine's threads.
const maxCore = 1023

// emulation adds the keys of routers inside the engine.
func (r *reader) emulation(known fields, e *Emulation) {
	known["program"] = func(n *yaml.Node) { r.engineProgram(e, n) }
	known["fib"] = func(n *yaml.Node) { e.FIB = r.oneOf(n, "fib", ClassFIB, PrefixFIB) }
	known["core"] = func(n *yaml.Node) { e.Core = r.integer(n, "core", 0, maxCore) }
	known["routes"] = func(n *yaml.Node) { r.staticRoutes(e, n) }
	known["announce"] = func(n *yaml.Node) { e.Announce = r.prefixes(n, "announce", true) }
	known["protocols"] = func(n *yaml.Node) { e.Protocols = r.protocols(n) }
	known["as"] = func(n *yaml.Node) { e.AS = uint32(r.integer(n, "as", 1, 1<<32-2)) }
	known["config"] = func(n *yaml.Node) { e.Config = r.text(n, "config") }
	known["feed"] = func(n *yaml.Node) { e.Feed = r.oneOf(n, "feed", FPMFeed, KernelFeed) }
}

// engineProgram reads a name, or a mapping of a name with parameters: {name: load, interval: 10ms}.
func (r *reader) engineProgram(e *Emulation, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		e.Runs = r.text(n, "program")
		return
	}
	r.each(n, "program", func(key, value *yaml.Node) {
		if key.Value == "name" {
			e.Runs = r.text(value, "name")
			return
		}
		e.Parameters = append(e.Parameters, Pair{key.Value, r.text(value, "parameter "+key.Value)})
	})
	if e.Runs == "" {
		r.errorf(n.Line, "program: a mapping without a name; expected {name: PROGRAM, PARAMETER: VALUE}")
	}
}

// staticRoutes reads a mapping of prefixes to neighbours.
func (r *reader) staticRoutes(e *Emulation, n *yaml.Node) {
	r.each(n, "routes", func(key, value *yaml.Node) {
		to, ok := r.anyPrefix(key, "routes", true)
		if via := r.text(value, "the way to "+key.Value); ok && via != "" {
			e.Static = append(e.Static, StaticRoute{Line: key.Line, To: to, Via: via})
		}
	})
}

func (r *values) protocols(n *yaml.Node) (names []string) {
	r.list(n, "protocols", func(n *yaml.Node) {
		if name := r.oneOf(n, "protocols", OSPF6, OSPF, BGP); name != "" {
			names = append(names, name)
		}
	})
	return names
}

// prefixes reads a list of prefixes of IPv6 and IPv4; masked are those of networks, others those of interfaces.
func (r *values) prefixes(n *yaml.Node, what string, masked bool) (all []netip.Prefix) {
	r.list(n, what, func(n *yaml.Node) {
		if p, ok := r.anyPrefix(n, what, masked); ok {
			all = append(all, p)
		}
	})
	return all
}

func (r *values) anyPrefix(n *yaml.Node, what string, masked bool) (netip.Prefix, bool) {
	text := r.text(n, what)
	if text == "" {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || strings.Contains(text, "%"):
		r.errorf(n.Line, "%s: expected a prefix such as fd00:1::/64 or 192.0.2.0/24, found %s", what, kindOf(n))
	case p.Addr().Is4In6():
		r.errorf(n.Line, "%s: %s is an IPv4 address inside IPv6; expected it written as IPv4", what, text)
	case masked && p != p.Masked():
		r.errorf(n.Line, "%s: %s has bits behind the prefix; expected %v", what, text, p.Masked())
	default:
		return p, true
	}
	return p, false
}
