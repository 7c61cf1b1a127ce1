package controld

import (
	"fmt"
	"math"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/registrations"
)

// TestAFullRouterIsToldOf: who finds no locator is refused in words, and the network's history says so once.
func TestAFullRouterIsToldOf(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.router("r1")
	for i := range 255 {
		c.joinHost(join(fmt.Sprint("h", i), "r1"))
	}
	c.await("255 hosts have joined", func() bool { return len(c.hosts()) == 255 })
	for i := range 3 {
		h := c.joinHost(join(fmt.Sprint("late", i), "r1"))
		c.await("one too many is refused", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.refused != nil })
		if why := h.refused.Reason; !h.refused.Retry || !strings.Contains(why, "all 255 locators of router r1 are taken") {
			t.Errorf("refused with %q, retry %v", why, h.refused.Retry)
		}
	}
	told := 0
	for _, e := range c.events() {
		if e.Kind == "network.full" && e.Subject == "r1" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}

// TestALoadThatCannotBeIsNotBelieved: the one before stays, the history says so, and no weight changes.
func TestALoadThatCannotBeIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	load := func(l *apiv1.Load) { h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: l}}) }
	load(&apiv1.Load{Flows: 7, Cpu: 0.5})
	for _, l := range []*apiv1.Load{
		{Flows: 8, Cpu: math.NaN()}, {Flows: 8, Cpu: -1}, {Flows: 8, Cpu: 1e300}, {Flows: math.MaxUint32},
		{Triples: []*apiv1.TripleLoad{{Flows: math.MaxUint32}}}, {Triples: make([]*apiv1.TripleLoad, registrations.Most+1)},
	} {
		load(l)
	}
	c.await("all but the first are refused", func() bool { return c.metric("host_events_refused_total") == 6 })
	if e := c.event("host.error"); e.Subject != "s1" || !strings.Contains(e.Text, "load is not believed") {
		t.Errorf("the event is %v", e)
	}
	if s := c.hosts()["s1"]; s.Flows != 7 || s.Cpu != 0.5 {
		t.Errorf("s1 has %d flows and a CPU of %v", s.Flows, s.Cpu)
	}
	r.has(web(id), weights{h.locator(): 100})
}

// TestWhoHasALocatorIsCountedRight: free ones are found without looking at all hosts.
func TestWhoHasALocatorIsCountedRight(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.router("r1")
	c.router("r2")
	first := c.host("a", "r1")
	was := first.locator()
	first.report(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{}}})
	c.event("host.leave")
	if b := c.host("b", "r1"); b.locator() == was {
		t.Error("a locator that a host left is given to another at once")
	}
	if again := c.host("a", "r1"); again.locator() != was {
		t.Errorf("the host has %v again, had %v", again.locator(), was)
	}
}
