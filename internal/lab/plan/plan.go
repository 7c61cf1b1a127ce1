package plan

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"path/filepath"

	"scaffold.dev/scaffold/internal/lab/file"
)

// A Plan is everything about a lab that follows from its file: names, numbers, routes. It is computed
// without touching the machine, and anew whenever it is needed.
type Plan struct {
	File  *file.File
	Nodes []*Node
	Cable []*Link
	index map[string]*Node
	at    map[string][]*file.Link // the links of each node
}

// A Node is one namespace.
type Node struct {
	*file.Node
	Netns      string     // name in /run/netns
	LinkLocal  netip.Addr // on every data interface of the node
	Datapath   uint64     // of a switch: its datapath id
	Management netip.Addr // of the controller, routers, switches and agents
	Own        netip.Addr // of an IP router: source of its ICMPv6 errors
	Own4       netip.Addr // of an IP router in a network of plain IP, or inside the engine
	Ports      []*Port
	Routes     []Route // of a namespace: static ones
	Peers      []Peer  // of a router: those behind plain routers
}

// A Port is one end of a data link.
type Port struct {
	Dev    string // at most 15 bytes
	Number int    // OpenFlow port number, where the node is a switch
	Link   *Link
	Far    *Node
	Peer   *Port
	Under  []netip.Prefix // on a link of the underlay: the addresses there, of IPv6 and IPv4
	Addrs  []netip.Prefix // on a link that leaves the network of IP routers: the addresses of this end
}

// A Link is a cable or a tunnel; Ports[i] belongs to Nodes[i].
type Link struct {
	*file.Link
	Nodes  [2]*Node
	Ports  [2]*Port
	Tunnel *Tunnel // nil for a cable
}

// A Route is a static route.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr // of IPv6 also where the prefix is of IPv4
	Dev    string
	Metric int // the least wins; 0 is the kernel's choice
}

// A Peer is a router behind plain routers: whom to expect, through which port and next hop.
type Peer struct {
	Name string
	Dev  string
	Via  netip.Addr
	Hops int // links in between
}

// Make computes the plan of a checked file.
func Make(f *file.File) *Plan {
	p := &Plan{File: f, index: map[string]*Node{}, at: f.Neighbours()}
	p.addNodes()
	p.giveBlocks()
	under, edges := 0, 0
	for _, l := range f.Links {
		c := p.addLink(l)
		if f.Under(l) {
			c.addUnder(under)
			under++
		}
		edges += c.addEdge(edges)
	}
	for i, c := range p.Cable {
		if c.Link.Tunnel == "" {
			continue
		}
		p.addTunnel(c, i+1)
	}
	for _, n := range p.Nodes {
		switch n.Kind {
		case file.Host, file.Agent:
			n.Routes = append(n.defaultRoutes(), p.underRoutes(n)...)
		case file.Plain:
			n.Routes = p.plainRoutes(n)
		case file.Router, file.Switch:
			n.Peers = p.peers(n)
			n.Routes = p.underRoutes(n)
		case file.Underlay, file.Controller:
			n.Routes = p.underRoutes(n)
		}
	}
	return p
}

// Node finds a node by name.
func (p *Plan) Node(name string) *Node { return p.index[name] }

// Spaces are the nodes that are namespaces.
func (p *Plan) Spaces() (nodes []*Node) {
	for _, n := range p.Nodes {
		if n.Kind.IsNamespace() {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Netns is the name of a node's namespace.
func Netns(lab, node string) string { return "scaf-" + lab + "-" + node }

// NetnsDir holds named namespaces, as iproute2 has it.
const NetnsDir = "/run/netns"

// NetnsPath is where a namespace is to be found: named by a bind mount, as iproute2 does it, so that ip(8) sees it.
func NetnsPath(name string) string { return filepath.Join(NetnsDir, name) }

func (p *Plan) addNodes() {
	managed, plain := uint64(1), uint64(0) // the first controller is number 1
	first := true
	for i, n := range p.File.Nodes {
		node := &Node{Node: n, LinkLocal: addr(linkLocal, uint64(i+1))}
		if n.Kind.IsNamespace() {
			node.Netns = Netns(p.File.Name, n.Name)
		}
		switch n.Kind {
		case file.Controller:
			if first {
				first, node.Management = false, addr(file.Management, 1)
				break
			}
			managed++
			node.Management = addr(file.Management, managed)
		case file.Router, file.Switch, file.Agent:
			managed++
			node.Management = addr(file.Management, managed)
		case file.Plain, file.Emulated, file.FRR:
			plain++
			node.Own = addr(file.RouterPrefix, plain)
			if n.Kind != file.Plain || p.File.Bare {
				node.Own4 = addr4(file.RouterPrefix4, uint32(plain))
			}
		}
		if n.Kind == file.Switch {
			node.beSwitch(i + 1)
		}
		p.Nodes = append(p.Nodes, node)
		p.index[n.Name] = node
	}
}

var linkLocal = netip.MustParsePrefix("fe80::/64")

func addr(p netip.Prefix, low uint64) netip.Addr {
	b := p.Addr().As16()
	binary.BigEndian.PutUint64(b[8:], low)
	return netip.AddrFrom16(b)
}

// giveBlocks numbers the routers that the file gave no block, in its order.
func (p *Plan) giveBlocks() {
	taken := map[int]bool{}
	for _, n := range p.Nodes {
		taken[n.Block] = true
	}
	next := 1
	for _, n := range p.Nodes {
		if !n.IsRouter() || n.Block != 0 {
			continue
		}
		for taken[next] {
			next++
		}
		taken[next] = true
		fixed := *n.Node // the file stays as it was read
		fixed.Block = next
		n.Node = &fixed
	}
}

// Prefix is the block of a router, docs/protocol.md §2.3.
func (p *Plan) Prefix(n *Node) netip.Prefix {
	b := p.File.Network.Space.AS.Addr().As16()
	b[6] = byte(n.Block)
	return netip.PrefixFrom(netip.AddrFrom16(b), 56)
}

func (p *Plan) addLink(l *file.Link) *Link {
	cable := &Link{Link: l}
	for i, name := range l.Ends {
		cable.Nodes[i] = p.index[name]
	}
	for i, n := range cable.Nodes {
		far := cable.Nodes[1-i]
		port := &Port{Dev: n.freeDev(far.Name), Number: len(n.Data()) + 1, Link: cable, Far: far}
		n.Ports = append(n.Ports, port)
		cable.Ports[i] = port
	}
	cable.Ports[0].Peer, cable.Ports[1].Peer = cable.Ports[1], cable.Ports[0]
	p.Cable = append(p.Cable, cable)
	return cable
}

// Data are the ports that carry Scaffold's packets: all but those of the underlay.
func (n *Node) Data() (ports []*Port) {
	for _, p := range n.Ports {
		if n.Kind != file.Underlay && p.Far.Kind != file.Underlay {
			ports = append(ports, p)
		}
	}
	return ports
}

// freeDev names the interface towards a node: to-r1, for a second link to-r1.2.
func (n *Node) freeDev(far string) string {
	for i := 1; ; i++ {
		name := "to-" + far
		if i > 1 {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		name = InterfaceName(name)
		if n.Port(name) == nil {
			return name
		}
	}
}

// Port finds the port of an interface, nil for none.
func (n *Node) Port(dev string) *Port {
	for _, p := range n.Ports {
		if p.Dev == dev {
			return p
		}
	}
	return nil
}

// maxDev is what the kernel takes for the name of an interface.
const maxDev = 15

// InterfaceName shortens a name that is too long; a hash of the whole keeps it unlike others.
func InterfaceName(name string) string {
	if len(name) <= maxDev {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return fmt.Sprintf("%s~%05x", name[:maxDev-6], h.Sum32()&0xfffff)
}
