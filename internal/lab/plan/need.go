package plan

import (
	"fmt"

	"scaffold.dev/scaffold/internal/lab/file"
)

// What a lab takes of the machine's memory, as measured with up to 4,000 routers: routes in a router's table with what
// the engine knows of their way; a router and a link besides; a namespace with its daemons; an FRR with its daemons.
const (
	engineMemory    = 96 << 20
	routeMemory     = 130
	routerMemory    = 8 << 10
	linkMemory      = 4 << 10
	namespaceMemory = 4 << 20
	frrMemory       = 48 << 20
)

// A Need is what a lab takes of the machine.
type Need struct {
	Memory     uint64 // bytes, about
	Routers    int    // inside the engine
	Routes     int    // in all their tables
	Links      int
	Namespaces int
	Interfaces int // that the engine opens
}

// Need estimates what the lab takes of the machine.
func (p *Plan) Need() (n Need) {
	frr, prefixes, computed := 0, 0, p.ComputesRoutes()
	for _, node := range p.Nodes {
		if computed && node.TakesPart() {
			prefixes += len(p.Announced(node))
		}
	}
	for _, node := range p.Nodes {
		if node.Kind.InEngine() {
			n.Routers++
			n.Routes += prefixes + len(node.Static)
		}
		if node.Kind.IsNamespace() {
			n.Namespaces++
		}
		if node.Kind == file.FRR {
			frr++
		}
	}
	for _, c := range p.Cable {
		n.Links++
		for _, end := range c.Nodes {
			if c.Emulated != nil && end.Kind != file.Emulated {
				n.Interfaces++
			}
		}
	}
	n.Memory = uint64(n.Routes*routeMemory + n.Routers*routerMemory + n.Links*linkMemory + n.Namespaces*namespaceMemory + frr*frrMemory)
	if n.Routers > 0 || n.Interfaces > 0 {
		n.Memory += engineMemory
	}
	return n
}

// spareFiles are those that the engine opens besides its interfaces.
const spareFiles = 64

// Fits is an error if the machine has not enough of something; available is its free memory in bytes.
func (n Need) Fits(available, files uint64) error {
	switch {
	case n.Memory > available:
		return fmt.Errorf("it needs about %d MB (%d routers inside the engine with %d routes, %d links, %d namespaces), and this machine has %d MB to spare",
			n.Memory>>20, n.Routers, n.Routes, n.Links, n.Namespaces, available>>20)
	case uint64(n.Interfaces+spareFiles) > files:
		return fmt.Errorf("its engine would open %d interfaces, and a process may open %d files here: raise the limit (ulimit -Hn)", n.Interfaces, files)
	}
	return nil
}
