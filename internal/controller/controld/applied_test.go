package controld

import (
	"slices"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"

	"scaffold.dev/scaffold/internal/controller/controld/config"
)

// Who changes a weight can rely on it once the answer is there.
func TestAChangeIsAnsweredWhenTheRoutersHaveAppliedIt(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	for weight := uint32(1); weight <= 50; weight++ {
		if pending := c.weigh("s1", weight); len(pending) != 0 {
			t.Fatalf("weight %d is pending on %v, which answers", weight, pending)
		}
		if got := r.targets(web(id))[h.locator()]; got != weight {
			t.Fatalf("the answer is there and the router has the weight %d, not %d", got, weight)
		}
	}
}

func TestWhoHasNotAppliedAChangeIsNamed(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r, away, idle := c.router("r1"), c.router("r2"), c.router("r3")
	c.joinRouter(&apiv1.RouterJoin{Name: "plain"})
	h := c.host("s1", "r1")
	h.serves(web(id))
	r.has(web(id), weights{h.locator(): 100})
	away.cancel()
	c.event("router.gone")
	idle.idle.Store(true)
	if pending := c.weigh("s1", 7); !slices.Equal(pending, []string{"r2", "r3"}) {
		t.Errorf("pending on %v, want r2, which is away, and r3, which does nothing", pending)
	}
}

func (c *controller) weigh(host string, weight uint32) (pending []string) {
	c.t.Helper()
	s, err := c.admin.SetWeight(c.t.Context(), connect.NewRequest(&apiv1.SetWeightRequest{Name: "web", Host: host, Weight: weight}))
	if err != nil {
		c.t.Fatal(err)
	}
	return s.Msg.Pending
}
