package controld

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/saving"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/operate/obs"
)

func TestNotesOfSwitchesComeIntoTheHistory(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	note := func(e *apiv1.Event) connect.Code {
		_, err := c.agent.Note(t.Context(), connect.NewRequest(e))
		if err == nil {
			return 0
		}
		return connect.CodeOf(err)
	}
	if code := note(&apiv1.Event{Kind: "switch.refused", Subject: "10.0.0.1:5", Text: "it speaks\n1.0", Attrs: map[string]string{"version": "1.0"}}); code != 0 {
		t.Errorf("a note was refused: %v", code)
	}
	if e := c.event("switch.refused"); e.Text != `it speaks\n1.0` || e.Subject != "10.0.0.1:5" || e.Attrs["version"] != "1.0" {
		t.Errorf("the history has %v", e)
	}
	for _, bad := range []*apiv1.Event{
		{Kind: "service.remove", Subject: "web"}, {Kind: "switch"}, {Kind: ""}, {Kind: "switch.\n"},
		{Kind: "switch." + strings.Repeat("x", 99)}, {Kind: "switch.join", Subject: strings.Repeat("x", 999)},
	} {
		if code := note(bad); code != connect.CodeInvalidArgument {
			t.Errorf("the note %v: %v, want it refused", bad, code)
		}
	}
	for code := connect.Code(0); code != connect.CodeResourceExhausted; { // a flood
		if code = note(&apiv1.Event{Kind: "switch.gone", Subject: "s1"}); code != 0 && code != connect.CodeResourceExhausted {
			t.Fatalf("a flood of notes: %v", code)
		}
	}
}

func TestFlowsOfOperatorsOutliveTheController(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c := start(t, config.Config{})
	keep := func(f *apiv1.KeptFlow) error {
		_, err := c.agent.KeepFlow(t.Context(), connect.NewRequest(f))
		return err
	}
	for _, f := range []*apiv1.KeptFlow{
		{Switch: "s2", Number: 1, Match: "any", Actions: "NORMAL", First: true},
		{Switch: "s1", Number: 2, Match: "ipv6", Actions: "drop", Priority: 7}, {Switch: "s1", Number: 1},
		{Switch: "s1", Number: 1, Gone: true},
	} {
		if err := keep(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []*apiv1.KeptFlow{{Switch: ""}, {Switch: "S 1"}, {Switch: "s1", Match: strings.Repeat("x", 9999)}} {
		if err := keep(bad); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v, want it refused", bad, err)
		}
	}
	c.kill()
	c.run(config.Config{})
	got, err := c.agent.KeptFlows(t.Context(), connect.NewRequest(&apiv1.KeptFlowsRequest{}))
	if err != nil || len(got.Msg.Flows) != 2 {
		t.Fatalf("after a restart: %v, %v", got, err)
	}
	if a, b := got.Msg.Flows[0], got.Msg.Flows[1]; a.Switch != "s1" || a.Number != 2 || a.Priority != 7 || a.Match != "ipv6" || b.Switch != "s2" || !b.First || b.Actions != "NORMAL" {
		t.Errorf("after a restart: %v, %v", a, b)
	}
}

func TestAPathIsToldFromHostToHost(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.linked()
	a := c.host("h1", "r1")
	b := c.host("h2", "r2")
	a.locator()
	b.locator()
	path := func(from, to string) (*apiv1.Path, error) {
		p, err := c.admin.GetPath(t.Context(), connect.NewRequest(&apiv1.GetPathRequest{From: from, To: to}))
		if err != nil {
			return nil, err
		}
		return p.Msg, nil
	}
	p, err := path("h1", "h2")
	if err != nil || len(p.Hops) != 2 || p.Hops[0].Router != "r1" || p.Hops[1].Router != "r2" || p.Hops[0].Out != "x" || p.Hops[1].In != "y" {
		t.Errorf("h1 to h2: %v, %v", p, err)
	}
	if _, err := path("h1", "h9"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("to a host that there is not: %v", err)
	}
	if h := c.hosts()["h1"]; len(h.Places) != 1 || h.Places[0].Router != "r1" || h.Places[0].Locator != h.Locator {
		t.Errorf("h1 has the places %v", h.Places)
	}
}

func TestWhatElseIsMountedIsServed(t *testing.T) {
	t.Parallel()
	m := obs.NewMetrics("controld")
	m.Part("switchd").Gauge("switches", "Switches.").Set(3)
	there := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	cfg := config.Config{Socket: "x", Mounts: []api.Mount{{Path: "/more/", Handler: there}}, Metrics: m}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	h := newNetwork(newProcess(cfg, new(store.Store), nil), saving.New(nil), nil).handler()
	for path, want := range map[string]int{"/more/x": http.StatusTeapot, "/metrics": http.StatusOK} {
		got := httptest.NewRecorder()
		h.ServeHTTP(got, httptest.NewRequest("GET", path, nil))
		if got.Code != want || path == "/metrics" && !strings.Contains(got.Body.String(), "scaffold_switchd_switches 3") {
			t.Errorf("%s: %d, want %d", path, got.Code, want)
		}
	}
}
