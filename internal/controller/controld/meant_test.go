package controld

import (
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
)

// A caller whose list is empty by mistake must not open the service to everybody.
func TestAnEmptyListTakesNoListAwayUnlessThatIsSaid(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.create("web")
	update := func(req *apiv1.UpdateAccessRequest) (*apiv1.Service, error) {
		req.Name, req.Replace = "web", true
		s, err := c.admin.UpdateAccess(t.Context(), connect.NewRequest(req))
		if err != nil {
			return nil, err
		}
		return s.Msg, nil
	}
	closed := &apiv1.Access{Servers: []string{"s1"}, Allow: []string{"c1", "service:front"}}
	s, err := update(&apiv1.UpdateAccessRequest{Access: closed})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no host s1", "no host c1", "no service front"} {
		if !strings.Contains(strings.Join(s.Warnings, "\n"), want) {
			t.Errorf("the warnings are %q, want %q among them", s.Warnings, want)
		}
	}
	for _, empty := range []*apiv1.UpdateAccessRequest{
		{},
		{Access: &apiv1.Access{}},
		{Access: &apiv1.Access{Servers: closed.Servers}},
		{Access: &apiv1.Access{Allow: closed.Allow}},
		{Access: &apiv1.Access{Servers: closed.Servers}, AnyServer: true},
		{Access: &apiv1.Access{Servers: []string{""}, Allow: closed.Allow}},
		{Access: &apiv1.Access{Servers: closed.Servers, Allow: []string{""}}},
		{Access: &apiv1.Access{Servers: closed.Servers, Allow: closed.Allow}, AnyClient: true},
	} {
		_, err := update(empty)
		if connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v, want a refusal", empty, err)
		}
		now := c.service("web").Access
		if !slices.Equal(now.Servers, closed.Servers) || !slices.Equal(now.Allow, closed.Allow) {
			t.Fatalf("%v changed the lists to %v", empty, now)
		}
	}
	if _, err := update(&apiv1.UpdateAccessRequest{Access: &apiv1.Access{Servers: closed.Servers}, AnyClient: true}); err != nil {
		t.Error("everybody was meant:", err)
	}
	if _, err := update(&apiv1.UpdateAccessRequest{Access: &apiv1.Access{}, AnyServer: true}); err != nil {
		t.Error("every host was meant:", err)
	}
}

// One host that is not there must not leave the others changed.
func TestWeightsAreChangedTogetherOrNotAtAll(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	c.router("r1")
	for _, name := range []string{"s1", "s2"} {
		c.host(name, "r1").serves(web(id))
	}
	weights := func() map[string]uint32 {
		m := map[string]uint32{}
		for _, i := range c.service("web").Instances {
			m[i.Host] = i.Weight
		}
		return m
	}
	c.await("both serve", func() bool { return len(weights()) == 2 })
	set := func(list ...*apiv1.HostWeight) error {
		_, err := c.admin.SetWeights(t.Context(), connect.NewRequest(&apiv1.SetWeightsRequest{Name: "web", Weights: list}))
		return err
	}
	for want, list := range map[connect.Code][]*apiv1.HostWeight{
		connect.CodeNotFound:        {{Host: "s1", Weight: 7}, {Host: "nosuch", Weight: 1}},
		connect.CodeInvalidArgument: {{Host: "s1", Weight: 7}, {Host: "s1", Weight: 8}},
		connect.CodeOutOfRange:      nil,
	} {
		if err := set(list...); list != nil && connect.CodeOf(err) != want {
			t.Errorf("%v: %v, want %v", list, err, want)
		} else if err == nil {
			t.Errorf("%v was taken", list)
		}
		if now := weights(); now["s1"] != 100 || now["s2"] != 100 {
			t.Fatalf("%v left the weights %v", list, now)
		}
	}
	if err := set(&apiv1.HostWeight{Host: "s1", Weight: 7}, &apiv1.HostWeight{Host: "s2", Weight: 0}); err != nil {
		t.Fatal(err)
	}
	if now := weights(); now["s1"] != 7 || now["s2"] != 0 {
		t.Errorf("the weights are %v, want 7 and 0", now)
	}
}

// Whoever types a name as browsers show it means the service.
func TestTheDomainIsTakenOffNames(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Domain: "svc"})
	c.create("web.svc")
	if s := c.service("WEB.svc."); s.Name != "web" {
		t.Errorf("the service is called %q, want web", s.Name)
	}
	s, err := c.admin.UpdateAccess(t.Context(), connect.NewRequest(&apiv1.UpdateAccessRequest{Name: "web.svc", Version: 1, Access: &apiv1.Access{Allow: []string{"service:web.svc"}}}))
	if err != nil || len(s.Msg.Warnings) > 0 || !slices.Equal(s.Msg.Access.Allow, []string{"service:web"}) {
		t.Errorf("%v, %v; want the service web in the list", s, err)
	}
	done, err := c.admin.Apply(t.Context(), connect.NewRequest(&apiv1.ApplyRequest{Services: []*apiv1.ServiceSpec{{Name: "db.svc"}}}))
	if err != nil || len(done.Msg.Problems) != 1 || !strings.Contains(done.Msg.Problems[0].Text, "write db") {
		t.Errorf("a file that names db.svc: %v, %v; want to be told of the name", done, err)
	}
}
