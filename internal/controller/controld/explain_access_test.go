package controld

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"

	"scaffold.dev/scaffold/internal/controller/controld/config"
)

// Whoever is refused by a list, as a client or as a server, finds that in the answer to why.
func TestExplainSaysThatAnAccessListRefuses(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	c.create("shop")
	c.router("r1")
	for _, name := range []string{"s1", "s2", "c1", "c2"} {
		h := c.host(name, "r1")
		if name[0] == 's' {
			h.serves(web(id))
		}
	}
	c.await("both serve", func() bool { return len(c.service("web").Instances) == 2 })
	said := func() string {
		explained, err := c.admin.Explain(t.Context(), connect.NewRequest(&apiv1.ExplainRequest{Name: "web"}))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(explained.Msg.Reasons, "\n")
	}
	if text := said(); strings.Contains(text, "may connect") || strings.Contains(text, "may not serve") {
		t.Errorf("of a service without lists it is said:\n%s", text)
	}
	for _, x := range []struct {
		access *apiv1.Access
		want   []string
		not    []string
	}{
		{&apiv1.Access{Servers: []string{"s1"}, Allow: []string{"c1"}}, []string{
			"s2 would serve tcp/80 and may not: service web names the hosts that may serve it, and s2 is not among them",
			"only c1 may connect (scaffold service access web); connections from c2, s1, s2 are refused with \"permission denied\"",
		}, []string{"s1 would serve"}},
		{&apiv1.Access{Servers: []string{"s1"}, Allow: []string{"c1", "c9", "service:shop"}}, []string{
			"only c1, c9, service:shop may connect", "no host c9 has ever joined", "no host serves shop: service:shop lets nobody connect"}, nil},
		{&apiv1.Access{Servers: []string{"s1"}, Allow: []string{"none"}}, []string{
			"nobody may connect (scaffold service access web): every connection is refused with \"permission denied\""}, []string{"only none"}},
		{&apiv1.Access{Servers: []string{"s9"}, Allow: []string{"c1", "c2", "s1", "s2"}}, []string{
			"no host serves it", "s1 would serve tcp/80 and may not", "s2 would serve", "only c1, c2, s1 and 1 more may connect (scaffold service access web)"}, []string{"are refused with"}},
	} {
		if _, err := c.admin.UpdateAccess(t.Context(), connect.NewRequest(&apiv1.UpdateAccessRequest{Name: "web", Access: x.access, Replace: true})); err != nil {
			t.Fatal(err)
		}
		text := said()
		for _, want := range x.want {
			if !strings.Contains(text, want) {
				t.Errorf("%v: want %q in:\n%s", x.access, want, text)
			}
		}
		for _, not := range x.not {
			if strings.Contains(text, not) {
				t.Errorf("%v: no %q in:\n%s", x.access, not, text)
			}
		}
	}
}
