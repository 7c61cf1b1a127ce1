package lab

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// Management is the prefix of the network that joins the controller and the routers beside the data
// links. IP routers, in the kernel or the engine, have their own addresses from RouterPrefix and RouterPrefix4;
// EdgePrefix and EdgePrefix4 hold the subnets of their links to hosts.
var (
	Management    = netip.MustParsePrefix("fd5f:0:0:1::/64")
	RouterPrefix  = netip.MustParsePrefix("fd5f:0:0:2::/64")
	RouterPrefix4 = netip.MustParsePrefix("10.95.0.0/16")
	EdgePrefix    = netip.MustParsePrefix("fd5f:0:1::/48")
	EdgePrefix4   = netip.MustParsePrefix("10.96.0.0/16")
)

// managementNode is the namespace of the management network's bridge.
const managementNode = "mgmt"

// maxControllers is how many make sense: each write waits for more than half of them.
const maxControllers = 5

// execGroup is the cgroup of commands that are run in a node beside its programs.
const execGroup = "exec"

// check finds what single values cannot show: names that refer to nothing, clashes, missing parts.
func (f *File) check(r *reader) {
	f.checkNetwork(r)
	f.checkNodes(r)
	f.checkLinks(r)
	f.checkEmulation(r)
	f.checkTunnels(r)
	f.checkServices(r)
	for _, n := range f.Nodes {
		f.checkPrograms(r, n)
	}
	for _, s := range f.Timeline {
		f.checkAction(r, s)
	}
	for _, m := range f.Measure {
		f.checkMeasure(r, m)
	}
	for _, s := range f.Series {
		f.checkSeries(r, s)
	}
}

func (f *File) checkNetwork(r *reader) {
	space := f.Network.Space
	for _, used := range []netip.Prefix{Management, RouterPrefix, UnderPrefix, EdgePrefix} {
		for what, p := range map[string]netip.Prefix{"services": space.Services, "as": space.AS, "identities": space.Identities} {
			if p.IsValid() && p.Overlaps(used) {
				r.errorf(f.Network.Line, "network: %s %v overlaps %v, which the lab itself uses", what, p, used)
			}
		}
	}
}

func (f *File) checkNodes(r *reader) {
	blocks := map[int]*Node{}
	var controllers []*Node
	for _, n := range f.Nodes {
		if n.Name == managementNode {
			r.errorf(n.Line, "node %q: the lab itself uses that name; choose another", n.Name)
		}
		if first := blocks[n.Block]; n.Block > 0 && first != nil {
			r.errorf(n.Line, "address clash: router %q has block %d, which router %q has already (line %d)", n.Name, n.Block, first.Name, first.Line)
		}
		blocks[n.Block] = n
		if n.Kind == Controller {
			controllers = append(controllers, n)
		}
	}
	if f.bare {
		return
	}
	if k := len(controllers); k == 2 || k > maxControllers {
		r.errorf(controllers[k-1].Line, "%d controllers; expected one, or 3 to %d: of two no one can be spared", k, maxControllers)
	}
	if len(controllers) == 0 {
		r.errorf(1, "no controller; expected one node with kind: controller")
	}
	f.checkRouters(r)
}

func (f *File) checkRouters(r *reader) {
	routers := f.routers()
	if len(routers) == 0 {
		r.errorf(1, "no router; expected at least one node with kind: router or switch")
		return
	}
	if len(routers) > 255 {
		r.errorf(1, "%d routers; expected at most 255, the number of blocks", len(routers))
	}
	for _, n := range routers {
		if n.Service {
			return
		}
	}
	r.errorf(routers[0].Line, "no service router: nothing would resolve names; expected service: true on at least one router or switch")
}

func (f *File) checkLinks(r *reader) {
	for _, l := range f.Links {
		if l.Ends[0] == l.Ends[1] {
			r.errorf(l.Line, "link from %q to itself; expected two different nodes", l.Ends[0])
			continue
		}
		a, b := f.end(r, l, 0), f.end(r, l, 1)
		if a == nil || b == nil {
			continue
		}
		f.checkPair(r, l, a, b)
		f.checkPair(r, l, b, a)
		if l.Unplugged && a.Kind != Host && b.Kind != Host {
			r.errorf(l.Line, "link between %q and %q is unplugged; expected a host at one end: only a host's link waits for the timeline", a.Name, b.Name)
		}
	}
	f.checkReach(r)
}

func (f *File) end(r *reader, l *Link, i int) *Node {
	n := f.Node(l.Ends[i])
	if n == nil {
		r.errorf(l.Line, "link to unknown node %q; expected one of %s", l.Ends[i], f.names())
	}
	return n
}

func (f *File) checkPair(r *reader, l *Link, a, b *Node) {
	switch {
	case a.Kind == Controller && b.Kind != Underlay:
		r.errorf(l.Line, "link to controller %q: it reaches the routers over the management network and has no links but to an underlay", a.Name)
	case a.Kind == Host && b.Kind == Host && a.Name < b.Name:
		r.errorf(l.Line, "link between hosts %q and %q; expected a router at one end", a.Name, b.Name)
	case a.Kind == Host && b.ip() && !f.bare:
		r.errorf(l.Line, "link between host %q and %s router %q: the controller is unreachable over it; a host's first hop is a node of kind router or switch", a.Name, b.Kind, b.Name)
	case a.Kind == Outside && !b.Kind.engine():
		r.errorf(l.Line, "link between outside %q and %s %q; expected a router inside the engine at the other end: kind emulated or frr", a.Name, b.Kind, b.Name)
	case a.Kind == Outside && len(f.linksBetween(a.Name, "")) > 1:
		r.errorf(l.Line, "outside %q has several links; expected one: it is one interface", a.Name)
	case a.Kind.engine() && l.MTU > maxTapMTU:
		r.errorf(l.Line, "mtu: expected at most %d on a link of the engine, found %d", maxTapMTU, l.MTU)
	}
}

// names lists the nodes, for messages.
func (f *File) names() string {
	const most = 20
	var names []string
	for _, n := range f.Nodes[:min(most, len(f.Nodes))] {
		names = append(names, n.Name)
	}
	if left := len(f.Nodes) - most; left > 0 {
		names = append(names, fmt.Sprintf("%d more", left))
	}
	return strings.Join(names, ", ")
}

var serviceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

func (f *File) checkServices(r *reader) {
	for _, s := range f.Services {
		if !serviceName.MatchString(s.Name) || len(s.Name) > 200 {
			r.errorf(s.Line, "service %.80q: expected DNS labels of 1 to 63 of a-z, 0-9 and inner dashes, 200 in all", s.Name)
		}
		kind, _, _ := strings.Cut(s.Ready, ":")
		if s.Ready != "" && kind != "tcp" && kind != "http" && kind != "exec" {
			r.errorf(s.Line, "service %q: ready %q: expected tcp, http:/path or exec:command", s.Name, s.Ready)
		}
		if s.Failover == "continue" && f.Network.Trust != "keys" {
			r.errorf(s.Line, "service %q: failover continue in an open network, where anybody could claim a flow; expected trust: keys under network", s.Name)
		}
	}
}
