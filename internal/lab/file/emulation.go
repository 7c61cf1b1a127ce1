package file

import (
	"net/netip"
	"slices"
	"time"
)

// How routers inside the engine get their routes.
const (
	ComputedRoutes = "computed" // shortest paths over all links, computed anew after faults
	StaticRoutes   = "static"   // only those that the nodes themselves name
)

// How a router inside the engine looks destinations up.
const (
	ClassFIB  = "class" // classes of destinations compiled from all tables, one lookup per packet
	PrefixFIB = "lpm"   // the longest prefix in each router's own table
)

// Where the routes of a router of kind frr come from.
const (
	FPMFeed    = "fpm"    // FRR's forwarding-plane manager
	KernelFeed = "kernel" // the tables of its namespace, whoever writes them
)

// Programs of emulated routers that the lab itself knows by name.
const (
	ForwardProgram  = "forward"  // an IP router
	ScaffoldProgram = "scaffold" // one of Scaffold's routers, under the controller
	LoadProgram     = "load"     // an IP router that marks packets with its load
)

// Routing says how routers inside the engine find their ways.
type Routing struct {
	Routes      string        // ComputedRoutes or StaticRoutes
	ECMP        bool          // computed routes use all shortest paths
	Convergence time.Duration // from a fault to the computed routes that know of it
	FIB         string        // of routers that name none
	Engine      string        // program that is the engine, with programs of its user; "" for the lab's own
}

// defaultRouting is that of a file which says nothing.
func defaultRouting() Routing {
	return Routing{Routes: ComputedRoutes, ECMP: true, Convergence: 50 * time.Millisecond, FIB: ClassFIB}
}

// An Emulation is what a file says of a router inside the engine.
type Emulation struct {
	Runs       string // the engine's program
	Parameters []Pair // of the program
	FIB        string // ClassFIB, PrefixFIB, or "" as the network has it
	Core       int    // number of the engine's thread, from 0; anyCore where the engine chooses
	Static     []StaticRoute
	Announce   []netip.Prefix // destinations behind the router, besides its own addresses and its hosts

	Protocols []string // of kind frr: what FRR runs; none for another daemon
	AS        uint32   // of kind frr: its number in BGP; 0 until the plan gives one
	Config    string   // of kind frr: lines of FRR's that follow those of the lab
	Feed      string   // of kind frr: FPMFeed or KernelFeed
}

// AnyCore is the Core of a router that the file puts nowhere.
const AnyCore = -1

// A StaticRoute is one that the file gives a router.
type StaticRoute struct {
	Line int
	To   netip.Prefix
	Via  string // a neighbour, or Blackhole
}

// Blackhole is the way of a route that loses everything.
const Blackhole = "blackhole"

// WithArticle names a node of the kind, for messages.
func (k Kind) WithArticle() string {
	switch k {
	case Agent, Emulated, FRR, Outside, Underlay:
		return "an " + string(k)
	}
	return "a " + string(k)
}

// InEngine reports whether nodes of the kind are routers inside the engine.
func (k Kind) InEngine() bool { return k == Emulated || k == FRR }

// IP reports whether nodes of the kind forward plain IP.
func (k Kind) IP() bool { return k.InEngine() || k == Plain }

// IsNamespace reports whether nodes of the kind are namespaces.
func (k Kind) IsNamespace() bool { return k != Emulated && k != Outside }

// RunsScaffold reports whether a router inside the engine is one of Scaffold's.
func (n *Node) RunsScaffold() bool { return n.Kind == Emulated && n.Runs == ScaffoldProgram }

// IP reports whether the node forwards plain IP and nothing of Scaffold's.
func (n *Node) IP() bool { return n.Kind.IP() && !n.RunsScaffold() }

// mayRun reports whether programs of the file may run on the node.
func (n *Node) mayRun() bool { return n.Kind.IsHost() || n.Kind == FRR }

// resolveKinds works out what follows from all nodes together: whether the network is one of plain IP, which links are
// the engine's.
func (f *File) resolveKinds() {
	f.index = make(map[string]*Node, len(f.Nodes))
	for _, n := range f.Nodes {
		if f.index[n.Name] == nil {
			f.index[n.Name] = n
		}
	}
	driven := func(n *Node) bool {
		return n.Kind == Controller || n.Kind == Underlay || n.IsRouter() || n.Kind == badKind
	}
	f.Bare = !slices.ContainsFunc(f.Nodes, driven) && slices.ContainsFunc(f.Nodes, func(n *Node) bool { return n.Kind.IP() })
	for _, n := range f.Nodes {
		n.Bare = f.Bare
	}
	for _, l := range f.Links {
		if l.implied {
			l.Emulated, l.Rate, l.implied = nil, l.params[0].Rate, false
		}
		if l.Emulated == nil && l.Tunnel == "" && (f.inEngine(l.Ends[0]) || f.inEngine(l.Ends[1])) {
			l.Emulated, l.Rate, l.implied = &l.params, 0, true
		}
	}
}

// inEngine reports whether an end of a link is the engine's own.
func (f *File) inEngine(name string) bool {
	n := f.Node(name)
	return n != nil && (n.Kind.InEngine() || n.Kind == Outside)
}
