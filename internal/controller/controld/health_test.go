package controld

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/core/health"
)

// healthKinds is what the controller says of its health: the code, and the kinds of the problems.
func (c *controller) healthKinds() (code int, healthy bool, kinds string) {
	c.t.Helper()
	client, base, err := api.Dial("unix:" + c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	resp, err := client.Get(base + "/healthz")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct {
		Healthy  bool
		Problems []struct{ Kind string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		c.t.Fatal(err)
	}
	for _, p := range said.Problems {
		kinds += " " + p.Kind
	}
	return resp.StatusCode, said.Healthy, kinds
}

func (c *controller) judged() *apiv1.Health {
	c.t.Helper()
	h, err := c.admin.GetHealth(c.t.Context(), connect.NewRequest(&apiv1.GetHealthRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	return h.Msg
}

// says waits until the API, /healthz and the metrics all tell of exactly these problems, in this order.
func (c *controller) says(kinds ...health.Kind) []*apiv1.Problem {
	c.t.Helper()
	want := ""
	for _, k := range kinds {
		want += " " + string(k)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		problems, differs := c.judged().Problems, ""
		got, counts := "", map[string]uint32{}
		for _, p := range problems {
			got += " " + p.Kind
			counts[p.Kind+p.Severity] += p.Count
			if p.Next == "" || p.What == "" || p.Since == "" {
				c.t.Errorf("%v: lacks something", p)
			}
		}
		if got != want {
			differs = "the API tells of" + got
		}
		critical := len(problems) > 0 && problems[0].Severity == "critical"
		if code, healthy, told := c.healthKinds(); told != got || healthy == critical || (code == http.StatusServiceUnavailable) != critical {
			differs += fmt.Sprintf("; /healthz says %d, healthy=%v and%s, where the API says%s", code, healthy, told, got)
		}
		for _, p := range problems {
			if n := c.metric(`problems{kind="` + p.Kind + `",severity="` + p.Severity + `"}`); n != float64(counts[p.Kind+p.Severity]) {
				differs += fmt.Sprintf("; the metrics count %v of %s, the API %d", n, p.Kind, counts[p.Kind+p.Severity])
			}
		}
		if differs == "" {
			return problems
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s, want%s:\n%v", differs, want, problems)
		}
	}
}

func TestTroubleOfANetworkIsToldTheSameEverywhere(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Lease: 50 * time.Millisecond})
	c.says() // nothing has joined yet: nobody is missed
	web1, planned := c.create("web"), c.create("planned")
	c.says()
	r1 := c.router("r1")
	r2 := c.router("r2")
	s1, s2 := c.host("s1", "r1"), c.host("s2", "r1")
	r1.states("up", s1.locator(), s2.locator())
	s1.serves(web(web1))
	r1.has(web(web1), weights{s1.locator(): 100})
	c.says()

	// A host asks for what nobody has ever served: that is no page, but somebody wants it.
	if _, err := c.agent.Resolve(t.Context(), connect.NewRequest(&apiv1.ResolveRequest{Name: "planned"})); err != nil {
		t.Fatal(err)
	}
	c.says(health.ServiceWanted)
	s2.serves(web(planned))
	c.says()

	// The last instance is taken out of service: by its weight, by itself, and with its host.
	c.weigh("s1", 0)
	if p := c.says(health.ServiceUnready)[0]; p.Where != "web" || !strings.Contains(p.What, "weight 0") || p.Next != "scaffold explain web" {
		t.Errorf("%v", p)
	}
	c.weigh("s1", 100)
	c.says()
	s1.serves()
	s1.report(&apiv1.HostReport{Report: &apiv1.HostReport_Snapshot{Snapshot: &apiv1.Registrations{}}})
	c.says(health.ServiceUnserved)
	c.metricIs("services_unserved", 1)
	s1.serves(web(web1))
	c.says()
	r1.states("gone", s1.locator())
	if all := c.says(health.ServiceUnready, health.HostSilent); all[1].Where != "s1" || all[1].Severity != "warning" {
		t.Errorf("%v", all)
	}
	r1.states("up", s1.locator())
	c.says()

	// Rules that a router does not confirm are a problem after a while (core/health); one that could not apply them at once.
	r2.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{Error: "no room"}}})
	c.says(health.RouterError)
	r2.report(&apiv1.RouterReport{Report: &apiv1.RouterReport_Applied{Applied: &apiv1.Applied{}}})
	c.says()
	r2.cancel()
	c.says(health.RouterAway)
	if p := c.judged().Problems[0]; p.Severity != "warning" || p.Where != "r2" {
		t.Errorf("one of two routers is away: %v", p)
	}

	// Clocks and versions.
	s2.report(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: &apiv1.Load{NowUnixMs: time.Now().Add(-time.Hour).UnixMilli()}}})
	c.says(health.RouterAway, health.ClockDiffers)
	s2.report(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: &apiv1.Load{NowUnixMs: time.Now().UnixMilli()}}})

	// With the only router that is left dead nothing reaches the network any more.
	r1.cancel()
	if p := c.says(health.RouterAway, health.RouterAway)[0]; p.Severity != "critical" {
		t.Errorf("no router is connected: %v", p)
	}
}

// What a service had is remembered: after a restart one that had instances is missed, one that had none is not.
func TestARestartForgetsNoServiceThatIsMissed(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	c.create("planned")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	h.report(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{}}})
	if p := c.says(health.ServiceUnserved)[0]; p.Where != "web" {
		t.Errorf("%v", p)
	}
	c.kill()
	c.run(config.Config{})
	c.router("r1")
	if p := c.says(health.ServiceUnserved)[0]; p.Where != "web" {
		t.Errorf("%v", p)
	}
	if _, err := c.admin.RemoveService(t.Context(), connect.NewRequest(&apiv1.RemoveServiceRequest{Name: "web"})); err != nil {
		t.Fatal(err)
	}
	c.says()
}
