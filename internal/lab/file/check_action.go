package file

import (
	"fmt"
	"slices"
	"strings"
)

// CheckAction says which name in an action refers to nothing in this lab.
func (f *File) CheckAction(a Action) error {
	n := f.Node(a.Node)
	a.Program = n.Meant(a.Program)
	switch {
	case a.isFault():
		return f.checkFault(a)
	case n == nil:
		return fmt.Errorf("%q: unknown node %q; expected one of %s", a, a.Node, f.Names())
	case a.Service != "":
		return f.checkSteer(a, n)
	case a.inNode() && !n.Kind.IsNamespace():
		return fmt.Errorf("%q: %s %q is no namespace, and nothing runs there", a, n.Kind, a.Node)
	case a.Verb == "link":
		return f.checkLink(a)
	case a.Verb == "move":
		return f.checkMove(a, n)
	case a.Verb == "remove":
		return f.checkRemove(a)
	case a.Peer != "":
		if len(f.linksBetween(a.Node, a.Peer)) == 0 {
			return fmt.Errorf("%q: no link between %q and %q", a, a.Node, a.Peer)
		}
	case a.Verb == "cut" || a.Verb == "unplug" || a.Verb == "heal":
		if len(f.linksBetween(a.Node, "")) == 0 {
			return fmt.Errorf("%q: node %q has no links", a, a.Node)
		}
	case a.Program != "" && a.Program != n.Daemon() && a.Program != n.Beside() && n.Program(a.Program) == nil && !n.RunsFRR(a.Program):
		return fmt.Errorf("%q: node %q has no program %q", a, a.Node, a.Program)
	case (a.Verb == "restart" || a.Verb == "start") && a.Program != FRRName && n.RunsFRR(a.Program):
		return fmt.Errorf("%q: FRR's daemons are started together: %s %s/%s", a, a.Verb, a.Node, FRRName)
	case a.Program == FRRName && n.RunsFRR(FRRName) && a.Verb != "restart" && a.Verb != "start":
		return fmt.Errorf("%q: expected one of its daemons: %s", a, strings.Join(n.FRRProcesses(), ", "))
	case a.Verb == "restart" && a.Program == "" && n.Daemon() == "":
		return fmt.Errorf("%q: node %q runs no daemon", a, a.Node)
	}
	for _, word := range a.Argv {
		if err := checkVariables(word, func(name string) bool { return f.service(name) != nil }); err != nil {
			return fmt.Errorf("%q: %w", a, err)
		}
	}
	return nil
}

// checkLink tries the parameters on the link as the file has it; what else was changed meanwhile is
// for the engine to judge.
func (f *File) checkLink(a Action) error {
	links := f.linksBetween(a.Node, a.Peer)
	if len(links) == 0 {
		return fmt.Errorf("%q: no link between %q and %q", a, a.Node, a.Peer)
	}
	links = slices.DeleteFunc(links, func(l *Link) bool { return l.Emulated == nil })
	if len(links) == 0 {
		return fmt.Errorf("%q: the link between %q and %q is a plain veth pair: give it a parameter in the lab file, such as delay: 0s, and it can be changed", a, a.Node, a.Peer)
	}
	for _, l := range links {
		p := *l.Emulated
		for _, s := range a.Set {
			if err := SetWay(&p, l.Ends, a.From(), s); err != nil {
				return fmt.Errorf("%q: %w", a, err)
			}
		}
	}
	return nil
}

// From is the node where the direction begins that a link action means, "" for both.
func (a Action) From() string {
	if a.OneWay {
		return a.Node
	}
	return ""
}

// checkSteer leaves services that the file does not name to the controller: they may be made later.
func (f *File) checkSteer(a Action, n *Node) error {
	switch {
	case !n.Kind.IsHost():
		return fmt.Errorf("%q: %q is a %s; expected a host", a, a.Node, n.Kind)
	case f.Bare:
		return fmt.Errorf("%q: a network without a controller has no services", a)
	}
	return nil
}

// inNode reports whether the action is about what runs in a node.
func (a Action) inNode() bool {
	return slices.Contains([]string{"start", "kill", "stop", "cont", "restart", "exec"}, a.Verb)
}

// linksBetween returns the links of a to b, or all of a with b empty.
func (f *File) linksBetween(a, b string) (links []*Link) {
	for _, l := range f.Links {
		for i := range 2 {
			if l.Ends[i] == a && (b == "" || l.Ends[1-i] == b) {
				links = append(links, l)
			}
		}
	}
	return links
}
