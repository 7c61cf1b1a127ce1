package controld

import (
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"

	"scaffold.dev/scaffold/internal/controller/controld/config"
)

func live(port, peer, peerPort string) *apiv1.Neighbour {
	return &apiv1.Neighbour{Port: port, Peer: peer, PeerPort: peerPort, Via: "fe80::" + peer, Up: true}
}

func (c *controller) routerAt(name string, block uint32, links ...*apiv1.Neighbour) *fakeRouter {
	c.t.Helper()
	return c.joinRouter(&apiv1.RouterJoin{Name: name, BootId: "boot-" + name, Block: block}, links...)
}

// The path from a to c goes by b, whose daemon is away when the controller comes back.
func TestPathsThroughARouterThatIsAwayOutliveARestart(t *testing.T) {
	t.Parallel()
	const farBlock = "fd5d:0:1:300::/56"
	c := start(t, config.Config{})
	a := c.routerAt("a", 1, live("e0", "b", "e1"))
	c.routerAt("b", 2, live("e1", "a", "e0"), live("e2", "c", "e3"))
	c.routerAt("c", 3, live("e3", "b", "e2"))
	c.await("a has a way to c", func() bool { return a.way(farBlock) == "fe80::b" })
	c.kill()
	c.run(config.Config{Grace: 200 * time.Millisecond})
	a = c.routerAt("a", 1, live("e0", "b", "e1"))
	c.routerAt("c", 3, live("e3", "b", "e2"))
	c.event("controller.settle")
	c.await("a has its rules", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.snapshots > 0 })
	if via := a.way(farBlock); via != "fe80::b" {
		t.Errorf("after the restart a reaches c by %q: its way through b, which forwards without its daemon, is gone", via)
	}
}

// A snapshot made without a router's links would take its routes away until they are told.
func TestARouterHasToldItsLinksBeforeItGetsRules(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.routerAt("b", 2, live("e1", "a", "e0"))
	a := c.silentRouter(&apiv1.RouterJoin{Name: "a", BootId: "boot-a", Block: 1})
	c.await("a has joined", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.joined != nil })
	c.create("web") // rules for everybody who gets some
	if a.snapshotCount() != 0 {
		t.Error("a has got rules before it said where its links lead")
	}
	a.links(live("e0", "b", "e1"))
	c.await("a has its rules", func() bool { return a.snapshotCount() == 1 && a.way("fd5d:0:1:200::/56") == "fe80::b" })
}

// A switch that comes again does not know its neighbours yet, and its rules are to stay until it does.
func TestALookingRouterKeepsTheLinksThatItHad(t *testing.T) {
	t.Parallel()
	const farBlock = "fd5d:0:1:200::/56"
	c := start(t, config.Config{})
	a := c.routerAt("a", 1, live("e0", "b", "e1"))
	c.routerAt("b", 2, live("e1", "a", "e0"), live("e2", "a", "e3"))
	c.await("a has a way to b", func() bool { return a.way(farBlock) == "fe80::b" })
	looking := func(links ...*apiv1.Neighbour) {
		a.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: &apiv1.Neighbours{Links: links, Partial: true}}})
	}
	other := live("e3", "b", "e2")
	other.Cost = 5
	looking(other)
	c.await("both links are known", func() bool { return len(c.links("a")) == 2 })
	if via := a.way(farBlock); via != "fe80::b" {
		t.Errorf("a reaches b by %q while it looks for its neighbours, want by what it had", via)
	}
	a.links(other)
	c.await("what it found is all there is", func() bool { return len(c.links("a")) == 1 })
}

// A switch that has not found the new controller yet is greeted by nobody's word but the old one's. It forwards on, and so
// do its neighbours, until it is back and says itself what is there.
func TestALinkToARouterThatIsAwayStaysTheLastResort(t *testing.T) {
	t.Parallel()
	const farBlock = "fd5d:0:1:200::/56"
	c := start(t, config.Config{})
	a := c.routerAt("a", 1, live("e0", "b", "e2"), live("e1", "b", "e3"))
	c.routerAt("b", 2, live("e2", "a", "e0"), live("e3", "a", "e1"))
	c.await("a has a way to b", func() bool { return a.way(farBlock) == "fe80::b" })
	c.kill()
	c.run(config.Config{Grace: 200 * time.Millisecond})
	a = c.routerAt("a", 1)
	c.event("controller.settle")
	c.await("a has its rules", func() bool { return a.snapshotCount() > 0 })
	if via := a.way(farBlock); via != "fe80::b" {
		t.Errorf("a reaches b, which is away, by %q, want by what was known", via)
	}
	for _, l := range c.links("a") {
		if l.Up || l.Reason != "hello" {
			t.Errorf("a link to a router that is away is shown as %v, want silent", l)
		}
	}
	a.links(live("e0", "c", "x"))
	c.await("who is at the port now has its place", func() bool { return len(c.links("a")) == 2 && a.way(farBlock) == "fe80::b" })
	b := c.silentRouter(&apiv1.RouterJoin{Name: "b", BootId: "boot-b", Block: 2})
	c.await("b has joined", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.joined != nil })
	if via := a.way(farBlock); via != "fe80::b" {
		t.Errorf("a reaches b, which looks for its neighbours, by %q, want by what was known", via)
	}
	b.links()
	c.await("b says that nothing is there", func() bool { return len(c.links("a")) == 1 && a.way(farBlock) == "" })
}

// links are those of a router, as they are shown.
func (c *controller) links(router string) []*apiv1.Link {
	c.t.Helper()
	list, err := c.admin.ListRouters(c.t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range list.Msg.Routers {
		if r.Name == router {
			return r.Links
		}
	}
	return nil
}

func (r *fakeRouter) snapshotCount() int { r.mu.Lock(); defer r.mu.Unlock(); return r.snapshots }

// Probes go out before the host has its locator: that is no suspicion.
func TestAHostThatIsSettingItselfUpIsNotSuspect(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r := c.router("r1")
	h := c.host("s1", "r1")
	r.state(h.locator(), "suspect")
	c.await("it is shown as joining", func() bool { return c.hosts()["s1"].State == "joining" })
	r.state(h.locator(), "up")
	c.await("it is up", func() bool { return c.hosts()["s1"].State == "up" })
	for _, e := range c.events() {
		if e.Kind == "host.suspect" || e.Kind == "host.back" {
			t.Errorf("a host that joins makes the event %v", e)
		}
	}
	r.state(h.locator(), "suspect")
	c.event("host.suspect")
}
