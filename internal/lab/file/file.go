package file

import (
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab/topo"
	"scaffold.dev/scaffold/sid"
)

// Kind is what a node is.
type Kind string

// The kinds of nodes.
const (
	Host       Kind = "host"       // runs hostd and programs
	Router     Kind = "router"     // runs routerd
	Switch     Kind = "switch"     // an Open vSwitch that the controller drives: a router too
	Plain      Kind = "plain"      // a Linux IPv6 router that knows nothing of Scaffold
	Underlay   Kind = "underlay"   // an IP router that carries tunnels and none of Scaffold's packets
	Emulated   Kind = "emulated"   // a router inside the lab's engine
	FRR        Kind = "frr"        // one whose routes come from FRR, or another daemon, in a namespace
	Outside    Kind = "outside"    // an interface of the machine: other machines join there
	Controller Kind = "controller" // runs controld
	Agent      Kind = "agent"      // a host that is an agent of boost as well: runs hostd and boostd
)

// A File is a lab file after reading: every value is checked, every name refers to something.
type File struct {
	Path     string
	Source   []byte
	Attached map[string][]byte // files that the source names, by those names
	Name     string
	Title    string // of plots
	Network  Network
	Nodes    []*Node
	Links    []*Link
	Services []*Service
	Timeline []*Step
	Measure  []*Measure
	Series   []*Series
	Boost    *Boost // nil: none

	index map[string]*Node
	at    map[string]topo.Position // of nodes that a map has positions of
	Bare  bool                     // plain IP: no controller, and nothing that one would drive
}

// Network is what all nodes have in common.
type Network struct {
	Line   int
	Domain string // DNS domain of the services
	Space  sid.Space
	Trust  string // "open", "keys": hosts prove who they are; "" as the controller has it
	// Journal makes hosts write down each decision about a flow that moves or fails over.
	Journal bool
	// Plane says what nodes of kind router are: "linux" or "openflow", where they are switches.
	Plane string
	Routing
}

// A Node is one namespace.
type Node struct {
	Line     int
	Name     string
	Kind     Kind
	Service  bool // of a router or switch: it resolves
	Block    int  // of a router or switch: number of its block of locators, 0 until the plan gives one
	Programs []*Program
	Emulation
	Uplink    string         // of a host on the underlay: "tunnel" or "tunnel:KIND"; "" there means tunnel
	Tunnels   bool           // of a router: it offers tunnels to hosts on the underlay
	NAT       bool           // of an underlay: hosts behind it share its address
	Interface string         // of an outside: the machine's interface
	Addresses []netip.Prefix // of an outside: those of the router there; none for the plan's choice
	Settings  []Pair         // of an agent: how it carries, as its own file has it

	written Kind // what the file says, where the plane may make another of it
	Bare    bool // of a host: plain IP, no daemon
}

// A Link joins two nodes, by a veth pair or, with Emulated, through the lab's engine.
type Link struct {
	Line      int
	Ends      [2]string
	Rate      uint64         // bit/s in each direction of a veth pair, 0 is no limit
	MTU       int            // 0: of a tunnel, what the underlay leaves
	Unplugged bool           // a host's: down until the timeline heals it or moves the host there
	Tunnel    string         // VXLAN: a tunnel through the underlay; "" for a cable
	Over      string         // of a tunnel: overIPv6 or overIPv4; "" as it fits. Of the underlay: what it carries; "" both
	Emulated  *[2]emu.Params // [0] from Ends[0] to Ends[1], [1] back; nil for a veth pair
	Cost      int            // of computed routes, in each direction

	params  [2]emu.Params // what the file says, wherever the link is made
	implied bool          // Emulated is set because of an end, not of what the file says
}

// A Service exists from the start of the lab.
type Service struct {
	Line      int
	Name      string
	Ready     string // policy as in the API
	Weight    uint32
	Datagrams string
	DSCP      uint32
	Failover  string
	Patience  uint32 // ms
	Drain     string
}

// A Program runs on a host.
type Program struct {
	Line    int
	Name    string
	Argv    []string
	Service string // its wildcard binds become binds of this service
	Manual  bool   // started by the timeline, not with the lab
	Env     []Pair
	Files   []Pair // path below the program's directory, content
}

// A Pair is a key with its value, in the order of the file.
type Pair struct{ Key, Value string }

// A Step of the timeline.
type Step struct {
	Line   int
	At     time.Duration // after the lab is up
	Action Action
	Label  string // in plots; "" for the action itself
}

// A Measure is a command whose output is a result of the run.
type Measure struct {
	Line int
	Name string
	Node string
	Argv []string
	At   time.Duration // started then; with AtEnd, when the timeline is through
	End  bool
}

// A Series is a quantity that is read again and again during a run, by one of four means.
type Series struct {
	Line  int
	Name  string
	Panel string // quantity and unit; series with the same one are drawn over each other
	Node  string
	Every time.Duration

	Received, Sent string   // the neighbour: Mbit/s that the node gets from it, or sends to it
	Connections    int      // number of TCP connections of this local port
	Argv           []string // prints one number a line, each when it is read
	Rate           bool     // the command's numbers are counts: by how much they grow a second
}

// Node finds a node by name.
func (f *File) Node(name string) *Node { return f.index[name] }

// Program finds a program by name.
func (n *Node) Program(name string) *Program {
	for _, p := range n.Programs {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// service finds a service by name.
func (f *File) service(name string) *Service {
	for _, s := range f.Services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Of returns the nodes of a kind, in the order of the file.
func (f *File) Of(kind Kind) (nodes []*Node) {
	for _, n := range f.Nodes {
		if n.Kind == kind {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
