package controld

import (
	"context"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
)

// TestOfTwoOperatorsTheSecondIsToldWhatTheFirstChanged: both read version 1, and replace policy or access whole.
func TestOfTwoOperatorsTheSecondIsToldWhatTheFirstChanged(t *testing.T) {
	t.Parallel()
	c, at := keyed(t, config.Config{})
	annKey, _ := c.member(at, "admin", "ann")
	bobKey, _ := c.member(at, "admin", "bob")
	ann, bob := call(t, at, annKey.Config()).admin, call(t, at, bobKey.Config()).admin
	c.create("web")
	read := c.service("web").Version
	policy := func(admin interface {
		UpdatePolicy(context.Context, *connect.Request[apiv1.UpdatePolicyRequest]) (*connect.Response[apiv1.Service], error)
	}, p *apiv1.Policy, version uint64) error {
		_, err := admin.UpdatePolicy(t.Context(), connect.NewRequest(&apiv1.UpdatePolicyRequest{Name: "web", Policy: p, Version: version}))
		return err
	}
	if err := policy(ann, &apiv1.Policy{Ready: "tcp"}, read); err != nil {
		t.Fatal(err)
	}
	err := policy(bob, &apiv1.Policy{Dscp: 46}, read)
	refusedWith(t, "bob replaces what he has not read", err, connect.CodeAborted, "admin ann at ")
	if !strings.Contains(err.Error(), "ready from listening to tcp") || !strings.Contains(err.Error(), "scaffold service show web") {
		t.Errorf("%v: want what ann changed, and what to do", err)
	}
	_, err = bob.UpdateAccess(t.Context(), connect.NewRequest(&apiv1.UpdateAccessRequest{Name: "web", Access: &apiv1.Access{Allow: []string{"c1"}}, Version: read, AnyServer: true}))
	refusedWith(t, "bob replaces the access of a service that changed", err, connect.CodeAborted, "admin ann")
	_, err = bob.RemoveService(t.Context(), connect.NewRequest(&apiv1.RemoveServiceRequest{Name: "web", Version: read}))
	refusedWith(t, "bob removes a service that changed", err, connect.CodeAborted, "admin ann")
	refusedWith(t, "bob does not say what he has read", policy(bob, &apiv1.Policy{}, 0), connect.CodeFailedPrecondition, "nobody says which version")
	refusedWith(t, "bob has read what is to come", policy(bob, &apiv1.Policy{}, 9), connect.CodeAborted, "removed and made anew")
	if p := c.service("web").Policy; p.Ready != "tcp" || p.Dscp != 0 {
		t.Errorf("the policy is %v, want ann's", p)
	}
	if err := policy(bob, &apiv1.Policy{Ready: "tcp", Dscp: 46}, c.service("web").Version); err != nil {
		t.Errorf("bob read it again: %v", err)
	}
}

// TestAPlanIsDoneAsItWasLookedAtOrNotAtAll: between diff and apply somebody changes what the plan is about.
func TestAPlanIsDoneAsItWasLookedAtOrNotAtAll(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c := start(t, config.Config{})
	ready := "http:/ok"
	req := files(spec("web", func(s *apiv1.ServiceSpec) { s.Ready = &ready }), spec("db"))
	c.apply(files(spec("web")))
	dry := files(req.Services...)
	dry.DryRun = true
	req.Planned, req.Plan = true, c.apply(dry).Changes
	if _, err := c.admin.UpdatePolicy(t.Context(), connect.NewRequest(&apiv1.UpdatePolicyRequest{Name: "web", Policy: &apiv1.Policy{Ready: "tcp"}, Replace: true})); err != nil {
		t.Fatal(err)
	}
	got := c.apply(req)
	if len(got.Problems) != 1 || !got.Problems[0].Refused || !strings.Contains(got.Problems[0].Text, "was the last to change it") || !strings.Contains(got.Problems[0].Text, "ready from listening to tcp") {
		t.Errorf("the plan of before is done: %v", got)
	}
	if len(c.export()) != 1 || c.service("web").Policy.Ready != "tcp" {
		t.Errorf("something was changed: %v", c.export())
	}
	req.Plan = c.apply(dry).Changes
	if got := c.apply(req); len(got.Problems) != 0 || got.Done != 2 || c.service("web").Policy.Ready != ready {
		t.Errorf("the plan of now is not done: %v", got)
	}
}
