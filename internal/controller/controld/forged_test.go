package controld

import (
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
)

// TestNobodyOrdersInAnothersName: what an administrator writes into the headers by which daemons say whose call they hand
// on changes nothing of what the history says; of a host, its user's name is the host's word, and said to be.
func TestNobodyOrdersInAnothersName(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c, at := keyed(t, config.Config{})
	ann, _ := c.member(at, "admin", "ann")
	host, _ := c.member(at, "host", "s1")
	forge := func(h interface{ Set(key, value string) }) {
		for key, value := range map[string]string{api.LocalUser: "root", gate.HandedOn: "c9", gate.OnBehalf: "admin bob", gate.SeenAt: "[2001:db8::9]:1"} {
			h.Set(key, value)
		}
	}
	create := connect.NewRequest(&apiv1.CreateServiceRequest{Name: "web"})
	forge(create.Header())
	if _, err := call(t, at, ann.Config()).admin.CreateService(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	refused := connect.NewRequest(&apiv1.RemoveServiceRequest{Name: "web"})
	forge(refused.Header())
	if _, err := call(t, at, host.Config()).admin.RemoveService(t.Context(), refused); err == nil {
		t.Fatal("a host removed a service")
	}
	var told []string
	c.await("both are told", func() bool {
		told = nil
		for _, e := range c.history(&apiv1.WatchEventsRequest{Audit: true}) {
			if e.Kind == "service.create" || e.Kind == orders.RefusedCallKind {
				if e.By.Via != "" || e.By.Address == "[2001:db8::9]:1" {
					t.Errorf("%v: want where it came from itself", e.By)
				}
				told = append(told, e.By.Role+" "+e.By.Name+" "+e.By.User)
			}
		}
		return len(told) == 2
	})
	if told[0] != "admin ann " || told[1] != "host s1 root" {
		t.Errorf("the history names %q", told)
	}
}
