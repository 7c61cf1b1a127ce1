package file

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// kinds are those that a file may name, in the order in which messages list them.
var kinds = []string{string(Host), string(Router), string(Switch), string(Plain), string(Underlay), string(Emulated), string(FRR), string(Outside), string(Agent), string(Controller)}

func (r *reader) nodes(f *File, n *yaml.Node) {
	r.each(n, "nodes", func(key, value *yaml.Node) { r.addNode(f, key, value) })
}

func (r *reader) addNode(f *File, key, value *yaml.Node) {
	node := &Node{Line: key.Line, Name: key.Value}
	node.Core = AnyCore
	if !nodeName.MatchString(node.Name) {
		r.errorf(key.Line, "node %q: expected a name of 1 to 32 of a-z, 0-9 and inner dashes", node.Name)
	}
	f.Nodes = append(f.Nodes, node)
	if value.Kind == yaml.ScalarNode {
		node.Kind = r.kind(value)
		r.complete(node, nil)
		return
	}
	r.node(node, value)
	if node.Kind == "" {
		last := len(kinds) - 1
		r.errorf(key.Line, "node %q has no kind; expected kind: %s or %s", node.Name, strings.Join(kinds[:last], ", "), kinds[last])
	}
}

func (r *reader) node(node *Node, n *yaml.Node) {
	known := fields{
		"kind":     func(n *yaml.Node) { node.Kind = r.kind(n) },
		"service":  func(n *yaml.Node) { node.Service = r.boolean(n, "service") },
		"block":    func(n *yaml.Node) { node.Block = r.integer(n, "block", 1, 255) },
		"programs": func(n *yaml.Node) { r.programs(node, n) },

		"uplink": func(n *yaml.Node) {
			node.Uplink = r.oneOf(n, "uplink", "auto", "tunnel", "tunnel:vxlan", "tunnel:wireguard")
		},
		"tunnels":   func(n *yaml.Node) { node.Tunnels = r.boolean(n, "tunnels") },
		"nat":       func(n *yaml.Node) { node.NAT = r.boolean(n, "nat") },
		"interface": func(n *yaml.Node) { node.Interface = r.text(n, "interface") },
		"addresses": func(n *yaml.Node) { node.Addresses = r.prefixes(n, "addresses", false) },
		"settings":  func(n *yaml.Node) { node.Settings = r.settings(n) },
	}
	r.emulation(known, &node.Emulation)
	at := map[string]int{}
	for key, read := range known {
		known[key] = func(n *yaml.Node) { at[key] = n.Line; read(n) }
	}
	r.object(n, "node "+node.Name, known)
	if node.Kind != "" {
		r.complete(node, at)
	}
}

// A keyRule says which nodes may have a key.
type keyRule struct {
	key, text string
	allowed   func(*Node) bool
}

var keyRules = []keyRule{
	{"service", "only a router or switch can be a service router", (*Node).IsRouter},
	{"block", "only a router or switch has a block", (*Node).IsRouter},
	{"programs", "programs run on hosts", (*Node).mayRun},
	{"uplink", "only a host has an uplink that is a tunnel", func(n *Node) bool { return n.Kind.IsHost() }},
	{"tunnels", "only a router offers tunnels", func(n *Node) bool { return n.Kind == Router }},
	{"nat", "only a node of kind underlay translates addresses", func(n *Node) bool { return n.Kind == Underlay }},
	{"program", "only an emulated router runs a program of the engine", func(n *Node) bool { return n.Kind == Emulated }},
	{"fib", "only a router inside the engine has a fib", func(n *Node) bool { return n.Kind.InEngine() }},
	{"core", "only a router inside the engine is placed on a core", func(n *Node) bool { return n.Kind.InEngine() }},
	{"routes", "only an emulated router is given routes", func(n *Node) bool { return n.Kind == Emulated }},
	{"announce", "only a router inside the engine announces prefixes", func(n *Node) bool { return n.Kind.InEngine() }},
	{"protocols", "only a router of kind frr has protocols", func(n *Node) bool { return n.Kind == FRR }},
	{"as", "only a router of kind frr has an AS", func(n *Node) bool { return n.Kind == FRR }},
	{"config", "only a router of kind frr has a config", func(n *Node) bool { return n.Kind == FRR }},
	{"feed", "only a router of kind frr has a feed", func(n *Node) bool { return n.Kind == FRR }},
	{"interface", "only a node of kind outside names an interface", func(n *Node) bool { return n.Kind == Outside }},
	{"addresses", "only a node of kind outside has addresses", func(n *Node) bool { return n.Kind == Outside }},
	{"settings", "only an agent of boost has settings", func(n *Node) bool { return n.Kind == Agent }},
}

// complete refuses keys that the kind of node does not have, and fills in what was left out.
func (r *reader) complete(node *Node, at map[string]int) {
	node.written = node.Kind
	for _, rule := range keyRules {
		if line := at[rule.key]; line > 0 && node.Kind != badKind && !rule.allowed(node) {
			r.errorf(line, "node %q: %s, this is %s", node.Name, rule.text, node.Kind.WithArticle())
		}
	}
	switch {
	case node.Kind == Emulated && node.Runs == "":
		node.Runs = ForwardProgram
	case node.Kind == FRR && node.Feed == "":
		node.Feed = FPMFeed
	case node.Kind == Outside && node.Interface == "":
		r.errorf(node.Line, "node %q: an outside is an interface of this machine; expected interface: NAME", node.Name)
	}
	if node.Kind == FRR && at["protocols"] == 0 {
		node.Protocols = []string{OSPF6}
	}
}

// badKind stands for a kind that was refused already, so that nothing else is said of the node.
const badKind Kind = "?"

func (r *reader) kind(n *yaml.Node) Kind {
	if k := r.oneOf(n, "kind", kinds...); k != "" {
		return Kind(k)
	}
	return badKind
}
