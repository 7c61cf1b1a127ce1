package controld

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/sid"
)

// long is more than any test takes: what waits for it waits for something else.
const long = time.Hour

func TestARestartForgetsNothingAndEmptiesNoTable(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c := start(t, config.Config{Grace: long})
	id := c.create("web")
	r := c.router("r1")
	a, b := c.host("s1", "r1"), c.host("s2", "r1")
	a.serves(web(id))
	b.serves(web(id))
	if _, err := c.admin.SetWeight(t.Context(), connect.NewRequest(&apiv1.SetWeightRequest{Name: "web", Host: "s2", Weight: 7})); err != nil {
		t.Fatal(err)
	}
	want := weights{a.locator(): 100, b.locator(): 7}
	r.has(web(id), want)
	before, generation := c.service("web"), r.generation()

	c.kill()
	c.run(config.Config{Grace: long})

	if after := c.service("web"); after.Sid != before.Sid || after.Address != before.Address || after.CreatedUnixMs != before.CreatedUnixMs {
		t.Errorf("the service was %v and is %v", before, after)
	}
	// They come back in the worst order: the router first, then one host, with the other far behind.
	r2 := c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1", Generation: generation})
	b2 := c.host("s2", "r1")
	b2.serves(web(id))
	c.event("host.back")
	if r2.count() != 0 {
		t.Error("rules were sent before all had reported: they empty the router's tables")
	}
	if !c.settling() {
		t.Error("the status does not say that rules are not sent yet")
	}
	a2 := c.host("s1", "r1")
	a2.serves(web(id))
	r2.has(web(id), want)
	if c.settling() {
		t.Error("the status says that rules are not sent yet; they are")
	}
	if r2.first(web(id)) != 2 {
		t.Errorf("the first resolution that the router got has %d targets, want both", r2.first(web(id)))
	}
	if a2.locator() != a.locator() || b2.locator() != b.locator() {
		t.Errorf("locators were %v and %v, and are %v and %v", a.locator(), b.locator(), a2.locator(), b2.locator())
	}
	if r2.generation() <= generation {
		t.Errorf("the generation fell from %d to %d", generation, r2.generation())
	}
}

func (r *fakeRouter) count() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.messages) }

func (r *fakeRouter) generation() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages[len(r.messages)-1].Generation
}

// first is how many targets the triple had when the router heard of it first.
func (r *fakeRouter) first(t sid.Triple) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.messages {
		for _, x := range m.Resolutions {
			if sid.Suffix(x.Suffix) == t.Service.Suffix && x.Port == uint32(t.Port) {
				return len(x.Targets)
			}
		}
	}
	return 0
}

// Its kernel and its program serve on without its daemon.
func TestAfterTheGraceRulesNameWhoIsMissing(t *testing.T) {
	t.Parallel()
	c, id, want := served(t)
	c.kill()
	c.run(config.Config{Grace: 300 * time.Millisecond})
	r := c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
	for l := range want {
		r.state(l, "up")
	}
	c.host("s1", "r1").serves(web(id))
	c.event("controller.settle")
	r.has(web(id), want)
	if n := r.first(web(id)); n != 2 {
		t.Errorf("the first resolution that the router got has %d targets, want both", n)
	}
}

// A router that comes when the grace ends has had no time to hear of its hosts, nor they to report by it.
func TestAfterTheGraceAHostIsWaitedForThatItsRouterDoesNotKnowYet(t *testing.T) {
	c := start(t, config.Config{})
	r := c.router("r1")
	b := c.host("s2", "r1")
	c.await("r1 has a route to s2", func() bool { return r.route(b.locator()) })
	c.kill()
	c.run(config.Config{Grace: 300 * time.Millisecond, Lease: long})
	r = c.joinRouter(&apiv1.RouterJoin{Name: "r1", Service: true, BootId: "boot-r1"})
	c.host("s1", "r1")
	c.event("controller.settle")
	c.await("r1 has a route to s2 again, of which it has not heard", func() bool { return r.route(b.locator()) })
	if h := c.hosts()["s2"]; h == nil || h.State == "gone" {
		t.Errorf("s2 is %v", h)
	}
}

func TestALocatorThatWasLeftIsGivenToNobodyElse(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c := start(t, config.Config{})
	c.router("r1")
	first := c.host("s1", "r1")
	first.report(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{}}})
	c.event("host.leave")
	c.kill()
	c.run(config.Config{})
	c.router("r1")
	j := join("s2", "r1")
	j.Locator = first.locator().String() // asks for it, even
	second := c.joinHost(j)
	second.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	if second.locator() == first.locator() {
		t.Error("another host got the locator at once")
	}
	if again := c.host("s1", "r1"); again.locator() != first.locator() {
		t.Errorf("the host itself had %v and got %v", first.locator(), again.locator())
	}
}

func TestRoutersKeepTheirBlocks(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	a := c.joinRouter(&apiv1.RouterJoin{Name: "a", BootId: "1", Block: 7})
	c.await("a has joined", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.joined != nil })
	if want := sid.DefaultSpace().Locator(7 << 8); parseLocator(a.joined.Locator) != want {
		t.Errorf("a asked for block 7 and got %v", a.joined.Locator)
	}
	for what, j := range map[string]*apiv1.RouterJoin{
		"a block that another has": {Name: "b", BootId: "1", Block: 7},
		"a block out of range":     {Name: "b", BootId: "1", Block: 256},
		"a name that is connected": {Name: "a", BootId: "2"},
		"a malformed name":         {Name: "A b", BootId: "2"},
	} {
		r := c.joinRouter(j)
		c.await(what+" is refused", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.refused != nil })
	}
	a.cancel()
	c.event("router.gone")
	c.kill()
	c.run(config.Config{Grace: time.Millisecond})
	a = c.router("a")
	if want := sid.DefaultSpace().Locator(7 << 8); parseLocator(a.joined.Locator) != want {
		t.Errorf("after a restart a's locator is %v", a.joined.Locator)
	}
}

func TestLinksBecomeRoutes(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	link := func(port, peer, via string, up bool) *apiv1.Neighbour {
		return &apiv1.Neighbour{Port: port, Peer: peer, Via: via, Up: up, Reason: map[bool]string{false: "carrier"}[up]}
	}
	a := c.joinRouter(&apiv1.RouterJoin{Name: "a", Block: 1}, link("e0", "b", "fe80::b", true))
	c.joinRouter(&apiv1.RouterJoin{Name: "b", Block: 2, Service: true}, link("e1", "a", "fe80::a", true))
	way := func(prefix string) string {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.held.routes[prefix].GetVia()
	}
	block := "fd5d:0:1:200::/56"
	c.await("a has its ways", func() bool { return way(block) == "fe80::b" && way("fd5c::/32") == "fe80::b" })
	a.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Neighbours{Neighbours: &apiv1.Neighbours{Links: []*apiv1.Neighbour{link("e0", "b", "", false)}}}})
	c.await("they are gone with the carrier", func() bool { return way(block) == "" && way("fd5c::/32") == "" })
	c.event("link.down")
}

// The daemons of a router and its host are away. As long as neighbours see the router its hosts are
// trusted; when they do not, others are preferred, and the router's return undoes it.
func TestHostsBehindASilentRouterAreSuspect(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: time.Millisecond})
	id := c.create("web")
	r := c.router("r1")
	far := c.joinRouter(&apiv1.RouterJoin{Name: "r2", BootId: "2"})
	c.await("r2 has joined", func() bool { far.mu.Lock(); defer far.mu.Unlock(); return far.joined != nil })
	a, b := c.host("s1", "r1"), c.host("s2", "r2")
	a.serves(web(id))
	b.serves(web(id))
	both := weights{a.locator(): 100, b.locator(): 100}
	r.has(web(id), both)
	// The router's stream ends first, and the controller has seen that before the host's does: in the other order the lease
	// of 1 ms may end while the router is there and says nothing of the host, which then has left the network.
	far.cancel()
	c.event("router.gone")
	b.cancel()
	c.event("host.silent")
	r.has(web(id), weights{a.locator(): 100})
	c.joinRouter(&apiv1.RouterJoin{Name: "r2", BootId: "2"})
	r.has(web(id), both)
}

func TestRoutersShowWhatTheyCount(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r := c.router("r1")
	r.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Counters{Counters: &apiv1.RouterCounters{
		Counters: map[string]uint64{"resolved": 5, "refused_unknown": 2, "refused_no_port": 1}, TableBytes: 64, Instances: 3,
	}}})
	r.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{Generation: 9, Error: "no room"}}})
	c.event("router.error")
	list, err := c.admin.ListRouters(t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if got := list.Msg.Routers[0]; got.Resolved != 5 || got.Refused != 3 || got.TableBytes != 64 || got.TableInstances != 3 || got.Generation != 9 || got.State != "up" {
		t.Errorf("the router shows as %v", got)
	}
}

func TestLoadIsShown(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: &apiv1.Load{Flows: 9, Cpu: 0.5, Triples: []*apiv1.TripleLoad{
		{Ss: id.SS, Suffix: uint64(id.Suffix), Proto: 6, Port: 80, Flows: 4, AcceptQueue: 2},
	}}}})
	r.has(web(id), weights{h.locator(): 100})
	c.await("the load is shown", func() bool {
		i := c.service("web").Instances
		return len(i) == 1 && i[0].Flows == 4 && i[0].AcceptQueue == 2 && c.hosts()["s1"].GetCpu() == 0.5
	})
}

// settling is what the status says of the rules.
func (c *controller) settling() bool {
	c.t.Helper()
	s, err := c.admin.GetStatus(c.t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	return s.Msg.Settling
}
