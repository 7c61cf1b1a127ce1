package file

import (
	"fmt"
	"slices"
	"strings"
)

// isFault reports whether an action is one of those that break something, or mend it.
func (a Action) isFault() bool {
	return slices.Contains([]string{"fail", "repair", "partition", "unite", "flap", "upgrade"}, a.Verb)
}

// checkFault says what in a fault refers to nothing in this lab.
func (f *File) checkFault(a Action) error {
	nodes := slices.Concat(a.Parts...)
	if a.Node != "" {
		nodes = append(nodes, a.Node)
	}
	for _, name := range nodes {
		if f.Node(name) == nil {
			return fmt.Errorf("%q: unknown node %q; expected one of %s", a, name, f.Names())
		}
	}
	switch {
	case a.Peer != "" && len(f.linksBetween(a.Node, a.Peer)) == 0:
		return fmt.Errorf("%q: no link between %q and %q", a, a.Node, a.Peer)
	case a.Node != "" && len(f.linksBetween(a.Node, "")) == 0:
		return fmt.Errorf("%q: node %q has no links", a, a.Node)
	case a.NIC && !f.Node(a.Node).Kind.InEngine():
		return fmt.Errorf("%q: %q is %s; expected a router inside the engine; of others, fail or cut the link", a, a.Node, f.Node(a.Node).Kind.WithArticle())
	case a.Verb == "upgrade":
		return f.checkUpgrade(a)
	}
	return nil
}

func (f *File) checkUpgrade(a Action) error {
	if f.Network.Engine == "" && !slices.Contains(enginePrograms, a.Runs) {
		return fmt.Errorf("%q: unknown program %q; expected one of %s", a, a.Runs, strings.Join(enginePrograms, ", "))
	}
	if len(f.Of(Emulated)) == 0 {
		return fmt.Errorf("%q: the lab has no emulated routers", a)
	}
	return nil
}
