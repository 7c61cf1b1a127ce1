package controld

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/sid"
)

type weights = map[sid.Locator]uint32

func TestAHostJoinsRegistersAndLeaves(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	l := h.locator()
	r.has(web(id), weights{l: 100})
	r.has(sid.Triple{Service: id}, weights{l: 100}) // ping
	r.mu.Lock()
	route, probe, rule := r.held.routes[l.Prefix().String()], r.held.probes[uint64(l)], r.held.services[id]
	r.mu.Unlock()
	if route.GetVia() != "fe80::1" || route.GetPort() != "to-s1" || len(route.GetMac()) != 6 {
		t.Errorf("the route to the host is %v", route)
	}
	if probe.GetPort() != "to-s1" || rule.GetInstances() != 1 {
		t.Errorf("the probe is %v, the service's rule %v", probe, rule)
	}
	h.told("the policy", func(o *apiv1.HostOrder) bool {
		return o.GetServices() != nil && o.GetServices().Entries[0].Name == "web"
	})
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{Reason: "shutdown"}}})
	r.has(web(id), weights{})
	c.await("the host is no longer listed", func() bool { return len(c.hosts()) == 0 })
}

func TestASnapshotReplacesADeltaAdds(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	a, b := c.create("a"), c.create("b")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(a))
	r.has(web(a), weights{h.locator(): 100})
	h.delta(registration(web(b), true))
	r.has(web(b), weights{h.locator(): 100})
	h.serves(web(b))
	r.has(web(a), weights{})
	h.delta(registration(web(b), false))
	r.has(web(b), weights{})
	if i := c.service("b").Instances; len(i) != 1 || i[0].State != "not ready" {
		t.Errorf("instances of b: %v, want one that is not ready", i)
	}
	gone := registration(web(b), true)
	gone.Gone = true
	h.delta(gone)
	c.await("b has no instance", func() bool { return len(c.service("b").Instances) == 0 })
}

func TestAnUnknownServiceIsRefusedAndCountsOnceItExists(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r := c.router("r1")
	h := c.host("s1", "r1")
	id := sid.ServiceID{SS: 1, Suffix: 0xabcdef}
	h.serves(web(id))
	h.told("that there is no such service", func(o *apiv1.HostOrder) bool {
		return strings.Contains(o.GetRegistrationRefused().GetReason(), "does not exist")
	})
	if _, err := c.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: "late", Sid: id.String()})); err != nil {
		t.Fatal(err)
	}
	r.has(web(id), weights{h.locator(): 100})
}

func TestASecondHostOfANameIsRefusedAndTheFirstUntouched(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	first := c.host("s1", "r1")
	first.serves(web(id))
	r.has(web(id), weights{first.locator(): 100})
	other := join("s1", "r1")
	other.BootId, other.Attachment.Port, other.Attachment.Mac = "another", "elsewhere", []byte{2, 9, 9, 9, 9, 9}
	second := c.joinHost(other)
	second.told("why not", func(o *apiv1.HostOrder) bool { return strings.Contains(o.GetRefused().GetReason(), "alive already") })
	c.await("the second one's stream ends", second.over)
	if first.over() {
		t.Error("the first host's stream ended")
	}
	r.has(web(id), weights{first.locator(): 100})
}

func TestARestartedDaemonTakesItsOwnPlace(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	first := c.host("s1", "r1")
	first.serves(web(id))
	r.has(web(id), weights{first.locator(): 100})
	second := c.host("s1", "r1")
	if second.locator() != first.locator() {
		t.Errorf("it had %v and got %v", first.locator(), second.locator())
	}
	c.await("the old stream ends", first.over)
	r.has(web(id), weights{first.locator(): 100}) // before it has said anything
	second.serves()
	r.has(web(id), weights{})
}

func TestALostStreamWithdrawsNothing(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: time.Millisecond})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	l := h.locator()
	r.has(web(id), weights{l: 100})
	r.state(l, "up")
	r.heard(c) // by another stream than the host's: without, the lease may end before the router's word is there
	h.cancel()
	c.event("host.silent")
	r.has(web(id), weights{l: 100})
	r.state(l, "gone")
	r.has(web(id), weights{})
	c.event("host.leave")
	if h := c.hosts()["s1"]; h.GetState() != "gone" {
		t.Errorf("a host that failed is listed as %v", h)
	}
}

func TestAHostThatNobodyProbesLeavesWithItsLease(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: time.Millisecond})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	h.cancel()
	r.has(web(id), weights{})
}

// event waits until one of the kind is in the history and returns the last.
func (c *controller) event(kind string) (found *apiv1.Event) {
	c.t.Helper()
	c.await("there is an event "+kind, func() bool {
		for _, e := range c.events() {
			if e.Kind == kind {
				found = e
			}
		}
		return found != nil
	})
	return found
}

func (c *controller) events() (list []*apiv1.Event) {
	c.t.Helper()
	s, err := c.admin.WatchEvents(c.t.Context(), connect.NewRequest(&apiv1.WatchEventsRequest{History: events.Remembered}))
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Close()
	for s.Receive() {
		list = append(list, s.Msg())
	}
	if s.Err() != nil {
		c.t.Fatal(s.Err())
	}
	return list
}

func TestASuspectGetsNoNewFlowsUntilItAnswers(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	a, b := c.host("s1", "r1"), c.host("s2", "r1")
	a.serves(web(id))
	b.serves(web(id))
	both := weights{a.locator(): 100, b.locator(): 100}
	r.has(web(id), both)
	r.state(a.locator(), "suspect")
	r.has(web(id), weights{b.locator(): 100})
	for _, i := range c.service("web").Instances {
		if i.Host == "s1" && (i.State != "suspect" || i.Effective != 0) {
			t.Errorf("the suspect instance shows as %v", i)
		}
	}
	r.state(a.locator(), "up")
	r.has(web(id), both)
	r.state(a.locator(), "gone")
	r.has(web(id), weights{b.locator(): 100})
	b.told("that a locator is gone", func(o *apiv1.HostOrder) bool {
		g := o.GetGone()
		return g != nil && sid.Locator(g.Locators[0]) == a.locator()
	})
	r.state(a.locator(), "up") // its stream never ended
	r.has(web(id), both)
}

func TestWeightsAndDrains(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	a, b := c.host("s1", "r1"), c.host("s2", "r1")
	a.serves(web(id))
	b.serves(web(id))
	r.has(web(id), weights{a.locator(): 100, b.locator(): 100})
	weigh := func(host string, w uint32) error {
		_, err := c.admin.SetWeight(t.Context(), connect.NewRequest(&apiv1.SetWeightRequest{Name: "web", Host: host, Weight: w}))
		return err
	}
	drain := func(host string, undrain, force bool) error {
		_, err := c.admin.Drain(t.Context(), connect.NewRequest(&apiv1.DrainRequest{Name: "web", Host: host, Undrain: undrain, Force: force}))
		return err
	}
	for _, err := range []error{weigh("s1", 3), weigh("s2", 1)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.has(web(id), weights{a.locator(): 3, b.locator(): 1})
	if err := drain("s1", false, false); err != nil {
		t.Fatal(err)
	}
	r.has(web(id), weights{b.locator(): 1})
	if err := drain("s2", false, false); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("draining the last instance: %v, want a refusal", err)
	}
	if n := c.metric("drains_refused_total"); n != 1 {
		t.Errorf("%v refusals counted, want 1", n)
	}
	if err := drain("s2", false, true); err != nil {
		t.Errorf("draining the last instance by force: %v", err)
	}
	r.has(web(id), weights{})
	if err := drain("s1", true, false); err != nil {
		t.Fatal(err)
	}
	r.has(web(id), weights{a.locator(): 3})
	if err := weigh("nobody", 1); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("weight of an unknown host: %v, want not found", err)
	}
	if err := weigh("s1", 65536); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a weight too great: %v, want invalid argument", err)
	}
}

func TestServicesAreCheckedAndRemovedWithCare(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	create := func(name, sid string) error {
		_, err := c.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: name, Sid: sid}))
		return err
	}
	for what, got := range map[string]struct {
		err  error
		code connect.Code
		says string
	}{
		"a name of 300 characters": {create(strings.Repeat("a", 300), ""), connect.CodeInvalidArgument, "at most 253"},
		"a name that is taken":     {create("web", ""), connect.CodeAlreadyExists, "exists"},
		"a suffix that is taken":   {create("b", fmt.Sprintf("00000002-%v", id.Suffix)), connect.CodeAlreadyExists, "suffix collision"},
		"a malformed serviceID":    {create("b", "x"), connect.CodeInvalidArgument, "hexadecimal"},
	} {
		if connect.CodeOf(got.err) != got.code || !strings.Contains(got.err.Error(), got.says) {
			t.Errorf("%s: %v, want %v that speaks of %q", what, got.err, got.code, got.says)
		}
	}
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	remove := func(force bool) error {
		_, err := c.admin.RemoveService(t.Context(), connect.NewRequest(&apiv1.RemoveServiceRequest{Name: "web", Force: force}))
		return err
	}
	if err := remove(false); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("removing a service with an instance: %v, want a refusal", err)
	}
	if err := remove(true); err != nil {
		t.Error(err)
	}
	r.has(web(id), weights{})
	h.told("that the service is gone", func(o *apiv1.HostOrder) bool { return o.GetServices() != nil && o.GetServices().Entries[0].Gone })
}

func TestNamesAndAddressesResolve(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web.shop")
	c.router("r1")
	j := join("s1", "r1")
	j.Identity = 77
	h := c.joinHost(j)
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	space := sid.DefaultSpace()
	for ask, want := range map[string]string{
		"web.shop": "web.shop", "WEB.shop.svc.": "web.shop", "web": "", "web.shop.other": "",
		space.ServiceAddr(id).String(): "web.shop", h.locator().Host().String(): "s1", space.Identity(77).String(): "s1",
		space.Identity(78).String(): "", "fd5c::1:2:3:4:5": "", "2001:db8::1": "",
	} {
		req := &apiv1.ResolveRequest{Name: ask}
		if strings.Contains(ask, ":") {
			req = &apiv1.ResolveRequest{Address: ask}
		}
		got, err := c.agent.Resolve(t.Context(), connect.NewRequest(req))
		switch {
		case want == "" && connect.CodeOf(err) != connect.CodeNotFound:
			t.Errorf("%s: %v, %v; want not found", ask, got, err)
		case want != "" && (err != nil || got.Msg.Name != want):
			t.Errorf("%s: %v, %v; want %s", ask, got, err, want)
		}
	}
}

func TestEventsComeInOrderToThoseWhoFollow(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.create("a")
	s, err := c.admin.WatchEvents(t.Context(), connect.NewRequest(&apiv1.WatchEventsRequest{History: 1, Follow: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !s.Receive() || s.Msg().Kind != "service.create" || s.Msg().Subject != "a" {
		t.Fatalf("the last event of the past is %v, %v", s.Msg(), s.Err())
	}
	last := s.Msg().Seq
	for _, name := range []string{"b", "c"} {
		c.create(name)
		if !s.Receive() || s.Msg().Subject != name || s.Msg().Seq != last+1 {
			t.Fatalf("after %d came %v, %v; want the creation of %s", last, s.Msg(), s.Err(), name)
		}
		last++
	}
}
