package file

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The data planes that a network's routers may have.
const (
	LinuxPlane    = "linux"
	OpenFlowPlane = "openflow"
	EmulatedPlane = "emulated" // inside the engine
)

var planes = []string{LinuxPlane, OpenFlowPlane, EmulatedPlane}

// planeEnv says what plane a file has that names none: all that brings labs up, tests and benchmarks too, can
// be had on switches, or on routers inside the engine.
const planeEnv = "SCAFFOLD_PLANE"

func usualPlane() string {
	if plane := os.Getenv(planeEnv); slices.Contains(planes, plane) {
		return plane
	}
	return LinuxPlane
}

// routes reports whether nodes of the kind are Scaffold's routers, whatever carries their packets.
func (k Kind) routes() bool { return k == Router || k == Switch }

// IsRouter reports whether a node is one of Scaffold's routers.
func (n *Node) IsRouter() bool { return n.Kind.routes() || n.RunsScaffold() }

// Meant is the program that a file means: where it calls a switch a router, its daemon is called routerd.
func (n *Node) Meant(program string) string {
	if n != nil && n.Kind == Switch && program == daemons[Router] {
		return daemons[Switch]
	}
	return program
}

// routers are the routers and switches, in the order of the file.
func (f *File) routers() (nodes []*Node) {
	for _, n := range f.Nodes {
		if n.IsRouter() {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// SetPlane makes every node that the file calls a router a Linux router, a switch, or a router inside the engine.
// Nodes that it calls switches are switches in any case.
func (f *File) SetPlane(plane string) error {
	if !slices.Contains(planes, plane) {
		return fmt.Errorf("plane %q: expected one of %s", plane, strings.Join(planes, ", "))
	}
	before := f.Network.Plane
	f.UsePlane(plane)
	for _, n := range f.Nodes {
		if why := n.cannotOffer(); why != "" {
			f.UsePlane(before)
			return fmt.Errorf("%s:%d: %s", f.Path, n.Line, why)
		}
	}
	return nil
}

// cannotOffer says why a node whose file wants it to offer tunnels to hosts does not; "" where nothing is wrong.
func (n *Node) cannotOffer() string {
	if !n.Tunnels || n.Kind != Switch {
		return ""
	}
	return fmt.Sprintf("router %q offers tunnels to hosts, and on plane %s it is a switch, which has none; expected plane %s or %s", n.Name, OpenFlowPlane, LinuxPlane, EmulatedPlane)
}

// UsePlane is SetPlane for a plane that was checked before.
func (f *File) UsePlane(plane string) {
	f.Network.Plane = plane
	for _, n := range f.Nodes {
		switch {
		case n.written != Router:
		case plane == OpenFlowPlane:
			n.Kind = Switch
		case plane == EmulatedPlane && !f.needsKernel(n):
			n.Kind, n.Runs, n.Core = Emulated, ScaffoldProgram, AnyCore
		default:
			n.Kind = Router
		}
	}
	f.resolveKinds()
}

// needsKernel reports whether a router has a link that only the kernel of a namespace can make, such as a tunnel, or a
// neighbour that knows nothing of Scaffold: it is a Linux router on the emulated plane too.
func (f *File) needsKernel(n *Node) bool {
	return slices.ContainsFunc(f.Links, func(l *Link) bool {
		if l.Ends[0] != n.Name && l.Ends[1] != n.Name {
			return false
		}
		far := f.node(l.far(n.Name))
		return l.Tunnel != "" || far != nil && (far.Kind == Plain || far.Kind == Underlay)
	})
}

// node finds a node before the index is made.
func (f *File) node(name string) *Node {
	for _, n := range f.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}
