package file

import (
	"net/netip"
	"slices"
)

// FRRName is the directory of what FRR's daemons of a node share.
const FRRName = "frr"

// frrDaemons are those that a lab starts, by the protocol that they are for.
var frrDaemons = map[string]string{OSPF6: "ospf6d", OSPF: "ospfd", BGP: "bgpd"}

// FRRProcesses are the daemons that run on the node for certain, zebra first.
func (n *Node) FRRProcesses() []string {
	names := []string{"zebra"}
	for _, p := range n.Protocols {
		names = append(names, frrDaemons[p])
	}
	if len(n.Announce) != 0 {
		names = append(names, "staticd")
	}
	return names
}

// RunsFRR reports whether a name is that of FRR on the node, or of one of its daemons.
func (n *Node) RunsFRR(name string) bool {
	return n.Kind == FRR && len(n.Protocols) != 0 && (name == FRRName || slices.Contains(n.FRRProcesses(), name))
}

// Speaks reports whether one of the router's protocols is for the family of a prefix.
func (n *Node) Speaks(p netip.Prefix) bool {
	other := OSPF6
	if p.Addr().Is4() {
		other = OSPF
	}
	return slices.Contains(n.Protocols, BGP) || slices.Contains(n.Protocols, other)
}
