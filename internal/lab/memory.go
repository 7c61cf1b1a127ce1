package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
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
	r, frr := p.routing(), 0
	prefixes := 0
	for _, place := range r.Nodes {
		prefixes += len(place.Announce)
	}
	for _, node := range p.Nodes {
		if node.Kind.engine() {
			n.Routers++
			n.Routes += prefixes + len(node.Static)
		}
		if node.Kind.namespace() {
			n.Namespaces++
		}
		if node.Kind == FRR {
			frr++
		}
	}
	for _, c := range p.Cable {
		n.Links++
		for _, end := range c.Nodes {
			if c.Emulated != nil && end.Kind != Emulated {
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

// fits is an error if the machine has not enough of something; available is its free memory in bytes.
func (n Need) fits(available, files uint64) error {
	switch {
	case n.Memory > available:
		return fmt.Errorf("it needs about %d MB (%d routers inside the engine with %d routes, %d links, %d namespaces), and this machine has %d MB to spare",
			n.Memory>>20, n.Routers, n.Routes, n.Links, n.Namespaces, available>>20)
	case uint64(n.Interfaces+spareFiles) > files:
		return fmt.Errorf("its engine would open %d interfaces, and a process may open %d files here: raise the limit (ulimit -Hn)", n.Interfaces, files)
	}
	return nil
}

// checkMachine refuses a lab that does not fit into the machine, before anything is made.
func (l *Lab) checkMachine() error {
	available, err := availableMemory()
	if err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	need := l.plan.Need()
	if err := need.fits(available, limit.Max); err != nil {
		return fmt.Errorf("lab %s: %w", l.File.Name, err)
	}
	if need.Routers > 0 {
		l.opt.logf("lab %s: about %d MB for %d routers inside the engine with %d routes", l.File.Name, need.Memory>>20, need.Routers, need.Routes)
	}
	return nil
}

// availableMemory is what programs can have without swapping, in bytes.
func availableMemory() (uint64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb uint64
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			if _, err := fmt.Sscan(rest, &kb); err == nil {
				return kb << 10, nil
			}
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}
