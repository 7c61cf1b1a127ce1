package controld

import (
	"fmt"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/links"
)

// Attack: a device at a port of a, which is no member, says each second that it is the service router s; a believes it, as
// routers of before this version do. It is nearer than s, and would get all first packets and all that is for s.
func TestADeviceThatGreetsAsARouterGetsNoRoute(t *testing.T) {
	t.Parallel()
	const blockOfS = "fd5d:0:1:300::/56"
	c := start(t, config.Config{})
	far := live("e0", "b", "e1")
	far.Cost = 10
	a := c.routerAt("a", 1, far)
	c.routerAt("b", 2, live("e1", "a", "e0"), live("e2", "s", "e3"))
	c.joinRouter(&apiv1.RouterJoin{Name: "s", BootId: "s", Block: 3, Service: true}, live("e3", "b", "e2"))
	c.await("a has its ways", func() bool { return a.way(blockOfS) == "fe80::b" && a.way("fd5c::/32") == "fe80::b" })
	for _, peerPort := range []string{"e9", "e3", ""} {
		forged := live("dev", "s", peerPort)
		forged.Via = "fe80::666"
		a.links(far, forged)
		c.await("the report has arrived", func() bool { return len(c.links("a")) == 2 })
		c.create("service" + peerPort) // rules for everybody
		for _, prefix := range []string{blockOfS, "fd5c::/32"} {
			if via := a.way(prefix); via != "fe80::b" {
				t.Errorf("the device says that it is s, port %q: a sends what is for %s to %s, want fe80::b", peerPort, prefix, via)
			}
		}
		a.links(far)
		c.await("the report is over", func() bool { return len(c.links("a")) == 1 })
	}
}

// Attack: a device says 2,000 names, before the true neighbour does. The true links stay, what it said is cut off.
func TestTooManyNamesTakeNoTrueLinkAway(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.routerAt("b", 2, live("e1", "a", "e0"))
	var many []*apiv1.Neighbour
	for i := range 2000 {
		many = append(many, live("dev", fmt.Sprintf("made-up-%d", i), "x"))
	}
	many = append(many, live("e0", "b", "e1"))
	a := c.routerAt("a", 1, many...)
	c.await("a has its way to b", func() bool { return a.way("fd5d:0:1:200::/56") == "fe80::b" })
	if got := len(c.links("a")); got != links.Max {
		t.Errorf("%d links are kept of 2001, want %d", got, links.Max)
	}
	c.event("router.error")
	for i := range many[:2000] {
		many[i].Peer = fmt.Sprintf("another-%d", i)
	}
	a.links(many...)
	c.await("the second report counts", func() bool { return c.metric("link_reports_refused_total") == 2 })
	count := 0
	for _, e := range c.events() {
		if e.Kind == "router.error" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d events of refused links, want one for as long as it lasts", count)
	}
}

// Attack: a router that is a member reports the longest texts that there may be. A record that the store does not take would
// stop all saving.
func TestAMembersLinksFitTheStore(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	long := strings.Repeat("x", 256-8)
	var many []*apiv1.Neighbour
	for i := range links.Max {
		n := fmt.Sprintf("%08d", i)
		many = append(many, &apiv1.Neighbour{Port: n + long, Peer: n + long, PeerPort: n + long, Via: n + long, Reason: n + long})
	}
	c.routerAt("liar", 1, many...)
	c.await("the links are known", func() bool { return len(c.links("liar")) > 0 })
	c.create("web")
	c.await("all is saved", func() bool { return c.metric("state_pending") == 0 })
	if c.metric("store_failures_total") != 0 {
		t.Error("the store failed")
	}
}

// Attack: a router that is a member tells of hosts at locators that are not its own, more and more of them.
func TestAMemberTellsOfItsOwnHostsAlone(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	liar := c.joinRouter(&apiv1.RouterJoin{Name: "liar", BootId: "2"})
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	liar.state(h.locator(), "gone")
	liar.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{Error: "all was read"}}})
	c.event("router.error")
	if state := c.hosts()["s1"].State; state != "up" {
		t.Errorf("by the word of a router that is not its own s1 is %s", state)
	}
}
