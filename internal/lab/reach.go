package lab

import "slices"

// neighbours lists, for each node, the links that leave it.
func (f *File) neighbours() map[string][]*Link {
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

// checkReach finds nodes that nothing can reach: hosts without a router, parts without a link.
func (f *File) checkReach(r *reader) {
	at := f.neighbours()
	routers := f.routers()
	if len(routers) == 0 {
		return
	}
	reached := map[string]bool{}
	for queue := []string{routers[0].Name}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if reached[name] {
			continue
		}
		reached[name] = true
		if n := f.Node(name); n == nil || n.Kind == Host && name != routers[0].Name {
			continue // hosts forward nothing
		}
		for _, l := range at[name] {
			if l.Unplugged || f.under(l) {
				continue
			}
			queue = append(queue, l.far(name))
		}
	}
	for _, n := range f.Nodes {
		switch {
		case n.Kind == Controller || n.Kind == badKind || n.Kind == Underlay && len(at[n.Name]) > 0 || n.Kind == "" || reached[n.Name]:
		case len(at[n.Name]) == 0 && n.Kind == Host:
			r.errorf(n.Line, "host %q has no link: the controller is unreachable; expected a link to a router", n.Name)
		case len(at[n.Name]) == 0:
			r.errorf(n.Line, "%s %q has no link; expected at least one", n.Kind, n.Name)
		case n.Kind == Host && !slices.ContainsFunc(at[n.Name], func(l *Link) bool { return !l.Unplugged }):
			r.errorf(n.Line, "host %q has only links that are unplugged; expected one that is not: the lab is up when all hosts have joined", n.Name)
		default:
			r.errorf(n.Line, "%s %q has no path to router %q: the network falls apart", n.Kind, n.Name, routers[0].Name)
		}
	}
}
