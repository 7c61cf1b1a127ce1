package file

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

// ManagementNode is the namespace of the management network's bridge.
const ManagementNode = "mgmt"

// maxControllers is how many make sense: each write waits for more than half of them.
const maxControllers = 5

// ExecGroup is the cgroup of commands that are run in a node beside its programs.
const ExecGroup = "exec"

// A checker finds what single values of a file cannot show: names that refer to nothing, clashes, missing parts. It says
// all of it to the reader.
type checker struct {
	*File
	r *reader
}

func (c *checker) check() {
	c.checkNetwork()
	c.checkNodes()
	c.checkLinks()
	c.checkEmulation()
	c.checkTunnels()
	c.checkServices()
	c.checkBoost()
	for _, n := range c.Nodes {
		c.checkPrograms(n)
	}
	for _, s := range c.Timeline {
		c.checkAction(s)
	}
	for _, m := range c.Measure {
		c.checkMeasure(m)
	}
	for _, s := range c.Series {
		c.checkSeries(s)
	}
}

func (c *checker) checkNetwork() {
	space := c.Network.Space
	for _, used := range []netip.Prefix{Management, RouterPrefix, UnderPrefix, EdgePrefix} {
		for what, p := range map[string]netip.Prefix{"services": space.Services, "as": space.AS, "identities": space.Identities} {
			if p.IsValid() && p.Overlaps(used) {
				c.r.errorf(c.Network.Line, "network: %s %v overlaps %v, which the lab itself uses", what, p, used)
			}
		}
	}
}

func (c *checker) checkNodes() {
	blocks := map[int]*Node{}
	var controllers []*Node
	for _, n := range c.Nodes {
		if n.Name == ManagementNode {
			c.r.errorf(n.Line, "node %q: the lab itself uses that name; choose another", n.Name)
		}
		if first := blocks[n.Block]; n.Block > 0 && first != nil {
			c.r.errorf(n.Line, "address clash: router %q has block %d, which router %q has already (line %d)", n.Name, n.Block, first.Name, first.Line)
		}
		blocks[n.Block] = n
		if n.Kind == Controller {
			controllers = append(controllers, n)
		}
	}
	if c.Bare {
		return
	}
	if k := len(controllers); k == 2 || k > maxControllers {
		c.r.errorf(controllers[k-1].Line, "%d controllers; expected one, or 3 to %d: of two no one can be spared", k, maxControllers)
	}
	if len(c.routers()) == 0 && len(controllers) == 0 && len(c.Nodes) > 0 {
		c.r.errorf(1, "nothing but hosts; expected a router between them: of kind plain or emulated for a network of plain IP, or one of kind router beside a controller")
		return
	}
	if len(controllers) == 0 {
		c.r.errorf(1, "no controller; expected one node with kind: controller")
	}
	c.checkRouters()
}

func (c *checker) checkRouters() {
	routers := c.routers()
	if len(routers) == 0 {
		c.r.errorf(1, "no router; expected at least one node with kind: router or switch")
		return
	}
	if len(routers) > 255 {
		c.r.errorf(1, "%d routers; expected at most 255, the number of blocks", len(routers))
	}
	for _, n := range routers {
		if n.Service {
			return
		}
	}
	c.r.errorf(routers[0].Line, "no service router: nothing would resolve names; expected service: true on at least one router or switch")
}

func (c *checker) checkLinks() {
	for _, l := range c.Links {
		if l.Ends[0] == l.Ends[1] {
			c.r.errorf(l.Line, "link from %q to itself; expected two different nodes", l.Ends[0])
			continue
		}
		a, b := c.end(l, 0), c.end(l, 1)
		if a == nil || b == nil {
			continue
		}
		c.checkPair(l, a, b)
		c.checkPair(l, b, a)
		if l.Unplugged && !a.Kind.IsHost() && !b.Kind.IsHost() {
			c.r.errorf(l.Line, "link between %q and %q is unplugged; expected a host at one end: only a host's link waits for the timeline", a.Name, b.Name)
		}
	}
	c.checkReach()
}

func (c *checker) end(l *Link, i int) *Node {
	n := c.Node(l.Ends[i])
	if n == nil {
		c.r.errorf(l.Line, "link to unknown node %q; expected one of %s", l.Ends[i], c.Names())
	}
	return n
}

func (c *checker) checkPair(l *Link, a, b *Node) {
	switch {
	case a.Kind == Controller && b.Kind != Underlay:
		c.r.errorf(l.Line, "link to controller %q: it reaches the routers over the management network and has no links but to an underlay", a.Name)
	case a.Kind.IsHost() && b.Kind.IsHost() && a.Name < b.Name:
		c.r.errorf(l.Line, "link between hosts %q and %q; expected a router at one end", a.Name, b.Name)
	case a.Kind.IsHost() && b.IP() && !c.Bare:
		c.r.errorf(l.Line, "link between host %q and %s router %q: the controller is unreachable over it; a host's first hop is a node of kind router or switch", a.Name, b.Kind, b.Name)
	case a.Kind == Outside && !b.Kind.InEngine():
		c.r.errorf(l.Line, "link between outside %q and %s %q; expected a router inside the engine at the other end: kind emulated or frr", a.Name, b.Kind, b.Name)
	case a.Kind == Outside && len(c.linksBetween(a.Name, "")) > 1:
		c.r.errorf(l.Line, "outside %q has several links; expected one: it is one interface", a.Name)
	case a.Kind.InEngine() && l.MTU > maxTapMTU:
		c.r.errorf(l.Line, "mtu: expected at most %d on a link of the engine, found %d", maxTapMTU, l.MTU)
	}
}

// Names lists the nodes, for messages.
func (f *File) Names() string {
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

func (c *checker) checkServices() {
	for _, s := range c.Services {
		if !serviceName.MatchString(s.Name) || len(s.Name) > 200 {
			c.r.errorf(s.Line, "service %.80q: expected DNS labels of 1 to 63 of a-z, 0-9 and inner dashes, 200 in all", s.Name)
		}
		kind, _, _ := strings.Cut(s.Ready, ":")
		if s.Ready != "" && kind != "tcp" && kind != "http" && kind != "exec" {
			c.r.errorf(s.Line, "service %q: ready %q: expected tcp, http:/path or exec:NAME", s.Name, s.Ready)
		}
		if s.Failover == "continue" && c.Network.Trust != "keys" {
			c.r.errorf(s.Line, "service %q: failover continue in an open network, where anybody could claim a flow; expected trust: keys under network", s.Name)
		}
	}
}
