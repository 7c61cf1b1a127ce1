package file

import (
	"fmt"
	"slices"
	"strings"
)

// Neighbours lists, for each node, the links that leave it.
func (f *File) Neighbours() map[string][]*Link {
	at := map[string][]*Link{}
	for _, l := range f.Links {
		at[l.Ends[0]] = append(at[l.Ends[0]], l)
		at[l.Ends[1]] = append(at[l.Ends[1]], l)
	}
	return at
}

// far is the other end of a link.
func (l *Link) far(from string) string {
	if l.Ends[0] == from {
		return l.Ends[1]
	}
	return l.Ends[0]
}

// Ends reports whether packets end at nodes of the kind: they forward nothing.
func (k Kind) Ends() bool { return k.IsHost() || k == Outside }

// reachable are the nodes that packets reach from one, over links that are plugged in.
func (f *File) reachable(from *Node, at map[string][]*Link) map[string]bool {
	reached := map[string]bool{}
	for queue := []string{from.Name}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if reached[name] {
			continue
		}
		reached[name] = true
		if n := f.Node(name); n == nil || n.Kind.Ends() && n != from {
			continue
		}
		for _, l := range at[name] {
			if !l.Unplugged && !f.Under(l) {
				queue = append(queue, l.far(name))
			}
		}
	}
	return reached
}

// checkReach finds nodes that nothing can reach: hosts without a router, parts without a link.
func (c *checker) checkReach() {
	at := c.Neighbours()
	routers := c.routers()
	if c.Bare {
		c.checkParts(at)
		return
	}
	if len(routers) == 0 {
		return
	}
	reached := c.reachable(routers[0], at)
	for _, n := range c.Nodes {
		switch {
		case n.Kind == Controller || n.Kind == badKind || n.Kind == Underlay && len(at[n.Name]) > 0 || n.Kind == "" || reached[n.Name]:
		case n.Kind.IsHost() && c.Tunneled(n):
			c.checkTunneled(n)
		case len(at[n.Name]) == 0 && n.Kind.IsHost():
			c.r.errorf(n.Line, "host %q has no link: the controller is unreachable; expected a link to a router", n.Name)
		case len(at[n.Name]) == 0:
			c.r.errorf(n.Line, "%s %q has no link; expected at least one", n.Kind, n.Name)
		case n.Kind.IsHost() && unplugged(at[n.Name]):
			c.r.errorf(n.Line, "host %q has only links that are unplugged; expected one that is not: the lab is up when all hosts have joined", n.Name)
		default:
			c.r.errorf(n.Line, "%s %q has no path to router %q: the network falls apart", n.Kind, n.Name, routers[0].Name)
		}
	}
}

func unplugged(links []*Link) bool {
	return !slices.ContainsFunc(links, func(l *Link) bool { return !l.Unplugged })
}

// checkParts says into which parts a network of plain IP falls apart. Hosts whose links are all unplugged wait.
func (c *checker) checkParts(at map[string][]*Link) {
	var parts []string
	first, seen := 0, map[string]bool{}
	for _, n := range c.Nodes {
		if seen[n.Name] || n.Kind.IsHost() && len(at[n.Name]) > 0 && unplugged(at[n.Name]) {
			continue
		}
		if len(at[n.Name]) == 0 && len(c.Nodes) > 1 {
			c.r.errorf(n.Line, "%s %q has no link; expected at least one", n.Kind, n.Name)
			continue
		}
		from := n
		if from.Kind.Ends() { // start at a node that forwards
			from = c.Node(at[n.Name][slices.IndexFunc(at[n.Name], func(l *Link) bool { return !l.Unplugged })].far(n.Name))
		}
		if from == nil || from.Kind.Ends() {
			continue // said already
		}
		part := c.reachable(from, at)
		parts = append(parts, partText(c.File, part))
		if len(parts) == 2 {
			first = n.Line
		}
		for name := range part {
			seen[name] = true
		}
	}
	if len(parts) > 1 {
		c.r.errorf(first, "the network falls apart into %d parts, with no link between them: %s", len(parts), strings.Join(parts[:min(len(parts), partsShown)], "; "))
	}
}

// How much of a network that falls apart a message shows.
const (
	partsShown = 5
	namesShown = 4
)

func partText(f *File, part map[string]bool) string {
	var names []string
	for _, n := range f.Nodes {
		if part[n.Name] && len(names) < namesShown {
			names = append(names, n.Name)
		}
	}
	text := strings.Join(names, ", ")
	if len(part) > namesShown {
		text += fmt.Sprintf(" and %d more", len(part)-namesShown)
	}
	return text
}
