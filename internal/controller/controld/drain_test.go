package controld

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/notes"
	"scaffold.dev/scaffold/sid"
)

func (c *controller) drain(m *apiv1.DrainRequest) error {
	_, err := c.admin.Drain(c.t.Context(), connect.NewRequest(m))
	return err
}

func (c *controller) drainHost(m *apiv1.DrainHostRequest) (*apiv1.DrainHostResponse, error) {
	answer, err := c.admin.DrainHost(c.t.Context(), connect.NewRequest(m))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// modes are the drain orders for the service that the host got, in order.
func (h *fakeHost) modes(id sid.ServiceID) (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.orders {
		if d := o.GetDrain(); d != nil && sid.Suffix(d.Suffix) == id.Suffix {
			list = append(list, d.Mode)
		}
	}
	return list
}

func (h *fakeHost) ordered(id sid.ServiceID, want ...string) {
	h.t.Helper()
	await(h.t, h.name+" gets the drain orders "+strings.Join(want, ", "), func() bool { return strings.Join(h.modes(id), " ") == strings.Join(want, " ") })
}

func TestAHostDrainsOnceTheRoutersSendItNoMore(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	a, b := c.host("s1", "r1"), c.host("s2", "r1")
	a.serves(web(id))
	b.serves(web(id))
	r.has(web(id), weights{a.locator(): 100, b.locator(): 100})
	r.idle.Store(true) // it has the rules and does not say so
	done := make(chan error, 1)
	go func() { done <- c.drain(&apiv1.DrainRequest{Name: "web", Host: "s1", Mode: "shed"}) }()
	r.has(web(id), weights{b.locator(): 100})
	if got := a.modes(id); len(got) != 0 {
		t.Errorf("the host drains (%v) before the router has applied its rules", got)
	}
	r.idle.Store(false)
	r.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{Generation: r.generation()}}})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	a.ordered(id, "shed")
	if i := c.service("web").Instances[0]; i.State != "draining" || !strings.Contains(i.Reason, "(shed), 0 flows left") {
		t.Errorf("the instance shows as %v", i)
	}
	if err := c.drain(&apiv1.DrainRequest{Name: "web", Host: "s1"}); err != nil {
		t.Fatal(err)
	}
	a.ordered(id, "shed", "wait")
	policy := &apiv1.UpdatePolicyRequest{Name: "web", Policy: &apiv1.Policy{Drain: "shed"}, Replace: true}
	if _, err := c.admin.UpdatePolicy(t.Context(), connect.NewRequest(policy)); err != nil {
		t.Fatal(err)
	}
	a.ordered(id, "shed", "wait", "shed")
	again := c.host("s1", "r1") // a new session knows nothing
	again.serves(web(id))
	again.ordered(id, "shed")
	if err := c.drain(&apiv1.DrainRequest{Name: "web", Host: "s1", Undrain: true}); err != nil {
		t.Fatal(err)
	}
	again.ordered(id, "shed", "")
	r.has(web(id), weights{a.locator(): 100, b.locator(): 100})
	if err := c.drain(&apiv1.DrainRequest{Name: "web", Host: "s1", Mode: "x"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("mode x: %v", err)
	}
}

func TestTheEndOfADrainIsSeen(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	load := func(flows uint32) {
		h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: &apiv1.Load{Flows: flows, Triples: []*apiv1.TripleLoad{
			{Ss: id.SS, Suffix: uint64(id.Suffix), Proto: 6, Port: 80, Flows: flows}}}}})
	}
	load(2)
	if err := c.drain(&apiv1.DrainRequest{Name: "web", Host: "s1", Force: true}); err != nil {
		t.Fatal(err)
	}
	c.await("two flows are left", func() bool { return strings.Contains(c.service("web").Instances[0].Reason, "2 flows left") })
	load(0)
	c.event("service.drained")
}

func TestDrainingAHostTellsFirstWhatBreaks(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Trust: config.TrustKeys})
	create := func(name string, p *apiv1.Policy) sid.Triple {
		s, err := c.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: name, Policy: p}))
		if err != nil {
			t.Fatal(err)
		}
		id, err := sid.ParseServiceID(s.Msg.Sid)
		if err != nil {
			t.Fatal(err)
		}
		return web(id)
	}
	alone, reset := create("alone", nil), create("reset", &apiv1.Policy{Drain: "shed"})
	goes, stuck := create("goes", &apiv1.Policy{Failover: "continue", Drain: "shed"}), create("stuck", &apiv1.Policy{Failover: "continue", Drain: "shed"})
	r := c.router("r1")
	a, b := c.joinHost(signed(join("s1", "r1"), newKey(t))), c.joinHost(signed(join("s2", "r1"), newKey(t)))
	for _, h := range []*fakeHost{a, b} {
		h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	}
	a.serves(alone, reset, goes, stuck)
	b.serves(reset, stuck)
	can := registration(goes, true)
	can.CanResume = true
	b.delta(can)
	load := &apiv1.Load{Flows: 10}
	for _, x := range []sid.Triple{alone, reset, goes, stuck} {
		load.Triples = append(load.Triples, &apiv1.TripleLoad{Ss: x.Service.SS, Suffix: uint64(x.Service.Suffix), Proto: 6, Port: 80, Flows: 2})
	}
	a.report(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: load}})
	both := weights{a.locator(): 100, b.locator(): 100}
	for _, x := range []sid.Triple{reset, goes, stuck} {
		r.has(x, both)
	}
	c.await("the load is known", func() bool { return c.hosts()["s1"].Flows == 10 })
	told, err := c.drainHost(&apiv1.DrainHostRequest{Host: "s1", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"alone": "last instance", "reset": "2 connections are reset (failover", "goes": "", "stuck": "no other instance can resume"}
	for _, d := range told.Services {
		if d.Flows != 2 || !strings.Contains(d.Breaks, want[d.Service]) || want[d.Service] == "" && d.Breaks != "" {
			t.Errorf("draining %s: %v, want it to break %q", d.Service, d, want[d.Service])
		}
	}
	if len(told.Services) != 4 || told.Flows != 2 {
		t.Errorf("a dry run says %v", told)
	}
	r.has(reset, both)
	if _, err := c.drainHost(&apiv1.DrainHostRequest{Host: "s1"}); connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "alone") {
		t.Errorf("draining the last instance: %v, want a refusal that names the service", err)
	}
	if n := c.metric("drains_refused_total"); n != 1 {
		t.Errorf("%v refusals counted, want 1", n)
	}
	if _, err := c.drainHost(&apiv1.DrainHostRequest{Host: "s1", Force: true}); err != nil {
		t.Fatal(err)
	}
	r.has(reset, weights{b.locator(): 100})
	r.has(alone, weights{})
	a.ordered(reset.Service, "shed")
	a.ordered(alone.Service, "wait")
	if told, err = c.drainHost(&apiv1.DrainHostRequest{Host: "s1", Undrain: true}); err != nil || len(told.Services) != 4 {
		t.Errorf("undrain: %v, %v", told, err)
	}
	r.has(reset, both)
	a.ordered(reset.Service, "shed", "")
	if _, err := c.drainHost(&apiv1.DrainHostRequest{Host: "nobody"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("an unknown host: %v", err)
	}
}

func TestAServiceIsExplainedByReasonsAndEvents(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r, _ := c.linked()
	a, b := c.host("s1", "r1"), c.host("s2", "r1")
	a.serves(web(id))
	b.serves(web(id))
	r.has(web(id), weights{a.locator(): 100, b.locator(): 100})
	if err := c.drain(&apiv1.DrainRequest{Name: "web", Host: "s2"}); err != nil {
		t.Fatal(err)
	}
	first := a.locator()
	second := a.attach(1, "r2")
	a.detach(first, second)
	r.redirects(first, second)
	a.report(&apiv1.HostReport{Report: &apiv1.HostReport_Event{Event: &apiv1.Event{Kind: "flow.move", Subject: "s1", Text: "3 flows moved", Attrs: map[string]string{"flows": "3", "host": "s9"}}}})
	a.report(&apiv1.HostReport{Report: &apiv1.HostReport_Event{Event: &apiv1.Event{Kind: "service.remove", Subject: "web", Text: "a lie"}}})
	if e := c.event("flow.move"); e.Subject != "s1" || e.Attrs["host"] != "s1" || e.Attrs["flows"] != "3" {
		t.Errorf("the host's event is told as %v", e)
	}
	explained, err := c.admin.Explain(t.Context(), connect.NewRequest(&apiv1.ExplainRequest{Name: "web"}))
	if err != nil {
		t.Fatal(err)
	}
	reasons := strings.Join(explained.Msg.Reasons, "\n")
	for _, want := range []string{"s1 tcp/80 at " + second.String() + ": 100 % of new flows", "s2 tcp/80", "drained by an operator",
		"resolved by r1", "are reset", "s1 left " + first.String()} {
		if !strings.Contains(reasons, want) {
			t.Errorf("the reasons do not say %q:\n%s", want, reasons)
		}
	}
	kinds := make(map[string]bool)
	for _, e := range explained.Msg.Events {
		kinds[e.Kind] = true
	}
	if !kinds["service.drain"] || !kinds["flow.move"] || !kinds["host.detach"] || kinds["service.remove"] || kinds["router.join"] {
		t.Errorf("the events are of the kinds %v", kinds)
	}
}

func TestAHostThatTellsTooMuchIsMetered(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.router("r1")
	h := c.host("s1", "r1")
	for range 10 * notes.HostBurst {
		h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Event{Event: &apiv1.Event{Kind: "flow.reset", Text: "a flow was reset"}}})
	}
	c.await("some are left out", func() bool { return c.metric("host_events_refused_total") > 5*notes.HostBurst })
	count := 0
	for _, e := range c.events() {
		if e.Kind == "flow.reset" {
			count++
		}
	}
	if count < notes.HostBurst || count > 5*notes.HostBurst {
		t.Errorf("%d events of %d were taken, want about %d", count, 10*notes.HostBurst, notes.HostBurst)
	}
}
