package controld

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/sid"
)

// TestAnInstanceGetsTheShareOfItsListenersThatWork, and people are told why; it makes no event.
func TestAnInstanceGetsTheShareOfItsListenersThatWork(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	r1 := c.router("r1")
	c.apply(files(spec("web")))
	id, _ := sid.ParseServiceID(c.service("web").Sid)
	s1, s2 := c.host("s1", "r1"), c.host("s2", "r1")
	s1.serves(web(id))
	s2.serves(web(id))
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100, s2.locator(): 100})
	part := registration(web(id), true)
	part.Working, part.Listeners = 3, 4
	s1.delta(part)
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 75, s2.locator(): 100})
	const says = "3 of 4 listeners work"
	if i := c.service("web").Instances[0]; i.State != "serving" || i.Effective != 75 || i.Reason != says {
		t.Errorf("service show: %s, %d, %q; want serving, 75, %q", i.State, i.Effective, i.Reason, says)
	}
	explained, err := c.admin.Explain(t.Context(), connect.NewRequest(&apiv1.ExplainRequest{Name: "web"}))
	if err != nil {
		t.Fatal(err)
	}
	if text := explained.Msg.Reasons[0]; !strings.Contains(text, "43 % of new flows, weight 100") || !strings.HasSuffix(text, says) {
		t.Errorf("explained as %q, want the share, the weight and %q", text, says)
	}
	s1.delta(registration(web(id), true))
	r1.has(web(id), map[sid.Locator]uint32{s1.locator(): 100, s2.locator(): 100})
	if kinds := c.eventKinds("web"); slices.Contains(kinds, "instance.unready") || slices.Contains(kinds, "instance.ready") {
		t.Errorf("events %v, want none of readiness", kinds)
	}
}
