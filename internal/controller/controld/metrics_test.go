package controld

import (
	"strconv"
	"testing"

	"scaffold.dev/scaffold/internal/controller/controld/config"
)

func (c *controller) metricIs(name string, want float64) {
	c.t.Helper()
	c.await(name+" is "+strconv.FormatFloat(want, 'g', -1, 64), func() bool { return c.metric(name) == want })
}

func TestMetricsTellWhatTheOperatorMustKnow(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	c.metricIs("services_unserved", 0)
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	c.metricIs("instances", 1)
	c.metricIs(`hosts{state="up"}`, 1)
	c.metricIs(`router_lag{router="r1"}`, 0)
	if n := c.metric("rules_apply_seconds_count"); !(n > 0) {
		t.Errorf("%v rules were timed until they were applied, want some", n)
	}
	c.weigh("s1", 0)
	c.metricIs("services_unserved", 1)
	if n := c.metric(`requests_seconds_count{code="ok",method="SetWeight"}`); n != 1 {
		t.Errorf("%v calls of SetWeight were observed, want 1", n)
	}
}
