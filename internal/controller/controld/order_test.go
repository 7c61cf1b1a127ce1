package controld

import (
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
)

// withNumber is a request with the number of an order.
func withNumber[T any](number string, m *T) *connect.Request[T] {
	r := connect.NewRequest(m)
	r.Header().Set(api.OrderID, number)
	return r
}

// TestAnOrderThatComesAgainIsNotDoneAgain: by the controller that did it, and by the one that leads after it.
func TestAnOrderThatComesAgainIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	create, policy, remove := api.NewOrderID(), api.NewOrderID(), api.NewOrderID()
	ctx := t.Context()
	var sid string
	for _, when := range []string{"at once", "again", "after a restart"} {
		s, err := c.admin.CreateService(ctx, withNumber(create, &apiv1.CreateServiceRequest{Name: "web"}))
		if err != nil || sid != "" && s.Msg.Sid != sid {
			t.Fatalf("%s: web is made: %v, %v; want the same service", when, s, err)
		}
		sid = s.Msg.Sid
		if s, err = c.admin.UpdatePolicy(ctx, withNumber(policy, &apiv1.UpdatePolicyRequest{Name: "web", Policy: &apiv1.Policy{Weight: 7}, Version: 1})); err != nil || s.Msg.Version != 2 {
			t.Errorf("%s: its policy: %v, %v; want version 2", when, s, err)
		}
		if when == "again" {
			c.kill()
			c.run(config.Config{})
		}
	}
	_, err := c.admin.CreateService(ctx, withNumber(api.NewOrderID(), &apiv1.CreateServiceRequest{Name: "web"}))
	refusedWith(t, "another order", err, connect.CodeAlreadyExists, "web")
	for range 2 {
		if _, err := c.admin.RemoveService(ctx, withNumber(remove, &apiv1.RemoveServiceRequest{Name: "web"})); err != nil {
			t.Error(err)
		}
	}
	for kind, want := range map[string]int{"service.create": 1, "service.policy": 1, "service.remove": 1} {
		count := 0
		for _, e := range c.history(&apiv1.WatchEventsRequest{Of: "web"}) {
			if e.Kind == kind {
				count++
			}
		}
		if count != want {
			t.Errorf("%s stands %d times in the history, want %d", kind, count, want)
		}
	}
}
