package controld

import (
	"fmt"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

// uplink is where a host hangs on a router beside its first place.
func uplink(name, router string) *apiv1.Attachment {
	return &apiv1.Attachment{Router: router, Port: "to-" + name, LinkLocal: "fe80::2", Mac: []byte{2, 0, 0, 0, 1, 1}}
}

// attach adds an uplink and returns its locator.
func (h *fakeHost) attach(serial uint32, router string) sid.Locator {
	h.t.Helper()
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Attach{Attach: &apiv1.Attach{Serial: serial, Attachment: uplink(h.name, router)}}})
	var l sid.Locator
	h.told("its further place", func(o *apiv1.HostOrder) bool {
		if o.GetAttached().GetSerial() == serial && o.GetAttached().GetRefused() == "" {
			l = parseLocator(o.GetAttached().GetLocator())
		}
		return l != 0
	})
	return l
}

func (h *fakeHost) detach(l, to sid.Locator) {
	h.t.Helper()
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Detach{Detach: &apiv1.Detach{Locator: uint64(l), To: uint64(to)}}})
}

func (r *fakeRouter) redirects(from, to sid.Locator) {
	r.t.Helper()
	await(r.t, fmt.Sprintf("%v is redirected to %v", from, to), func() bool { return r.redirected(from) == to })
}

// linked is two routers with a link, the first one resolves.
func (c *controller) linked() (a, b *fakeRouter) {
	c.t.Helper()
	a = c.router("r1", &apiv1.Neighbour{Port: "x", Peer: "r2", PeerPort: "y", Via: "fe80::b", Up: true, Cost: 1})
	b = c.joinRouter(&apiv1.RouterJoin{Name: "r2", BootId: "2"}, &apiv1.Neighbour{Port: "y", Peer: "r1", PeerPort: "x", Via: "fe80::a", Up: true, Cost: 1})
	c.await("r2 has joined", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.joined != nil })
	return a, b
}

func TestAFurtherUplinkIsRoutedAndGetsNewFlowsWhenPreferred(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r1, r2 := c.linked()
	h := c.host("s1", "r1")
	h.serves(web(id))
	first := h.locator()
	r1.has(web(id), weights{first: 100})
	second := h.attach(7, "r2")
	c.await("r2 routes and probes it", func() bool {
		r2.mu.Lock()
		defer r2.mu.Unlock()
		return r2.held.routes[second.Prefix().String()].GetVia() == "fe80::2" && r2.held.probes[uint64(second)] != nil
	})
	if again := h.attach(8, "r2"); again != second {
		t.Errorf("the same uplink got %v, then %v", second, again)
	}
	r1.has(web(id), weights{first: 100})
	r2.state(second, "up")
	r2.state(second, "suspect") // which costs nothing
	c.event("host.uplink")
	r1.has(web(id), weights{first: 100})
	r2.state(second, "up")
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Prefer{Prefer: &apiv1.Prefer{Locator: uint64(second)}}})
	r1.has(web(id), weights{second: 100})
	if got := c.hosts()["s1"]; got.Locator != second.String() || got.Router != "r2" {
		t.Errorf("the host shows as %v, want it at %v", got, second)
	}
}

func TestAHostIsGoneOnlyWhenAllItsPlacesAre(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r1, r2 := c.linked()
	h, peer := c.host("s1", "r1"), c.host("s2", "r2")
	h.serves(web(id))
	first, second := h.locator(), h.attach(1, "r2")
	r1.state(first, "up")
	r2.state(second, "up")
	r1.has(web(id), weights{first: 100})
	r1.state(first, "gone")
	r1.has(web(id), weights{second: 100}) // new flows at once where it still is
	c.event("host.uplink")
	peer.serves(web(id))
	r1.has(web(id), weights{second: 100, peer.locator(): 100})
	r2.state(second, "gone")
	peer.told("that both locators are gone", func(o *apiv1.HostOrder) bool { return len(o.GetGone().GetLocators()) == 2 })
	r1.has(web(id), weights{peer.locator(): 100})
	r1.state(first, "up")
	r1.has(web(id), weights{first: 100, peer.locator(): 100})
}

// Where nobody else serves what the host does, its clients wait for it to come back: it may be on its way.
func TestPeersOfTheOnlyInstanceAreToldOnceSomebodyElseServes(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: long})
	id := c.create("web")
	r1, _ := c.linked()
	h, other := c.host("s1", "r1"), c.host("s2", "r1")
	h.serves(web(id))
	r1.has(web(id), weights{h.locator(): 100})
	r1.state(h.locator(), "gone")
	c.event("host.gone")
	other.mu.Lock()
	for _, o := range other.orders {
		if o.GetGone() != nil {
			t.Error("a host was told of the loss of the only instance, which may be moving")
		}
	}
	other.mu.Unlock()
	other.serves(web(id))
	other.told("that the other instance's locator is gone", func(o *apiv1.HostOrder) bool { return o.GetGone() != nil })
}

func TestAHostThatMovesIsFollowed(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r1, r2 := c.linked()
	h := c.host("s1", "r1")
	h.serves(web(id))
	first := h.locator()
	r1.has(web(id), weights{first: 100})
	second := h.attach(1, "r2")
	h.detach(first, second)
	r1.redirects(first, second)
	r1.has(web(id), weights{second: 100})
	if r1.tellsGone(first) {
		t.Error("senders are told that nobody is at a locator that is redirected")
	}
	// Back to the first router, under the same locator: the redirect is taken back, the other way is made.
	back := join("s1", "r1")
	back.Locator = first.String()
	h = c.joinHost(back)
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	if h.locator() != first {
		t.Errorf("it had %v, asked for it and got %v", first, h.locator())
	}
	r2.redirects(second, first)
	if to := r1.redirected(first); to != 0 {
		t.Errorf("%v is in use again and still redirected to %v", first, to)
	}
	h.serves(web(id))
	r1.has(web(id), weights{first: 100})
	c.event("host.move")
}

// Its old session seems alive, nobody said that its link is down: the same daemon at another place moved.
func TestAMovedHostIsAdmittedAtOnceAndChainsLeadToItsEnd(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: long})
	r1, r2 := c.linked()
	h := c.host("s1", "r1")
	first := h.locator()
	r1.state(first, "up")
	c.await("it is up", func() bool { return c.hosts()["s1"].GetState() == "up" })
	at := []sid.Locator{first}
	for _, router := range []string{"r2", "r3"} {
		if router == "r3" {
			r3 := c.joinRouter(&apiv1.RouterJoin{Name: "r3", BootId: "3"})
			c.await("r3 has joined", func() bool { r3.mu.Lock(); defer r3.mu.Unlock(); return r3.joined != nil })
		}
		h = c.joinHost(join("s1", router))
		h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
		at = append(at, h.locator())
	}
	r1.redirects(at[0], at[2])
	r2.redirects(at[1], at[2])
}

func TestAJoinNamesAllItsUplinks(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r1, r2 := c.linked()
	j := join("s1", "r1")
	j.Others = []*apiv1.Attach{{Serial: 3, Attachment: uplink("s1", "r2")}, {Serial: 4, Attachment: uplink("s1", "r9")}}
	h := c.joinHost(j)
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	others := h.joined.Others
	if len(others) != 2 || others[0].Serial != 3 || others[0].Refused != "" || others[1].Serial != 4 || others[1].Refused == "" || !others[1].Retry {
		t.Fatalf("its further uplinks got %v: want a place at r2, and a refusal for now at r9, which is not there", others)
	}
	first, second := h.locator(), parseLocator(others[0].Locator)
	// It comes again without the second one: that is redirected to the first.
	j.Locator, j.Others = first.String(), nil
	h = c.joinHost(j)
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	r2.redirects(second, first)
	_ = r1
}

func TestARedirectWaitsForTheWayItLeads(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r1, r2 := c.linked()
	h := c.host("s1", "r1")
	first := h.locator()
	r2.idle.Store(true) // applies nothing
	second := h.attach(1, "r2")
	h.detach(first, second)
	c.event("host.detach")
	if to := r1.redirected(first); to != 0 {
		t.Errorf("%v is redirected to %v before the way there stands", first, to)
	}
	r1.redirects(first, second) // in the end also without an answer
}

func TestAfterARedirectSendersAreToldThatNobodyIsThere(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{RedirectFor: 50 * time.Millisecond})
	r1, _ := c.linked()
	h := c.host("s1", "r1")
	first := h.locator()
	second := h.attach(1, "r2")
	h.detach(first, second)
	c.await("senders are told", func() bool { return r1.tellsGone(first) && r1.redirected(first) == 0 })
	if again := h.attach(2, "r1"); again != first {
		t.Errorf("the uplink had %v and got %v", first, again)
	}
	c.await("it is no longer gone", func() bool { return !r1.tellsGone(first) })
}

func TestAHostThatLeavesForNowhereIsGone(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r1, r2 := c.linked()
	h, peer := c.host("s1", "r1"), c.host("s2", "r1")
	first, second := h.locator(), h.attach(1, "r2")
	h.detach(first, 0)
	peer.told("that the locator is gone", func(o *apiv1.HostOrder) bool {
		return len(o.GetGone().GetLocators()) == 1 && sid.Locator(o.GetGone().Locators[0]) == first
	})
	c.await("so are senders", func() bool { return r1.tellsGone(first) })
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{}}})
	c.await("and of the other one", func() bool { return r2.tellsGone(second) })
}

func TestRedirectsOutliveTheController(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c := start(t, config.Config{})
	r1, _ := c.linked()
	h := c.host("s1", "r1")
	first := h.locator()
	second := h.attach(1, "r2")
	h.detach(first, second)
	r1.redirects(first, second)
	c.await("it is saved", func() bool { return c.metric("state_pending") == 0 })
	c.kill()
	c.run(config.Config{Grace: time.Millisecond})
	r1 = c.router("r1")
	r1.redirects(first, second)
	if r1.tellsGone(first) {
		t.Error("senders are told that nobody is there")
	}
}
