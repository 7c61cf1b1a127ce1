package lab

import (
	"fmt"
	"os"
)

// The data planes that a network's routers may have.
const (
	LinuxPlane    = "linux"
	OpenFlowPlane = "openflow"
)

// planeEnv says what plane a file has that names none: all that brings labs up, tests and benchmarks too, can
// be had on switches.
const planeEnv = "SCAFFOLD_PLANE"

func usualPlane() string {
	if os.Getenv(planeEnv) == OpenFlowPlane {
		return OpenFlowPlane
	}
	return LinuxPlane
}

// routes reports whether nodes of the kind are Scaffold's routers, whatever carries their packets.
func (k Kind) routes() bool { return k == Router || k == Switch }

// routes reports whether a node is one of Scaffold's routers.
func (n *Node) routes() bool { return n.Kind.routes() || n.scaffold() }

// meant is the program that a file means: where it calls a switch a router, its daemon is called routerd.
func (n *Node) meant(program string) string {
	if n != nil && n.Kind == Switch && program == daemons[Router] {
		return daemons[Switch]
	}
	return program
}

// routers are the routers and switches, in the order of the file.
func (f *File) routers() (nodes []*Node) {
	for _, n := range f.Nodes {
		if n.routes() {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// SetPlane makes every node that the file calls a router a Linux router, or a switch. Nodes that it calls
// switches are switches in any case.
func (f *File) SetPlane(plane string) error {
	if plane != LinuxPlane && plane != OpenFlowPlane {
		return fmt.Errorf("plane %q: expected %s or %s", plane, LinuxPlane, OpenFlowPlane)
	}
	f.setPlane(plane)
	return nil
}

func (f *File) setPlane(plane string) {
	f.Network.Plane = plane
	for _, n := range f.Nodes {
		switch {
		case n.written != Router:
		case plane == OpenFlowPlane:
			n.Kind = Switch
		default:
			n.Kind = Router
		}
	}
}
