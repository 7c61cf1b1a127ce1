package service

import (
	"context"
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"
)

// A raced controller is one at which somebody else is faster once.
type raced struct {
	apiv1connect.AdminClient
	s    *apiv1.Service
	race func(*apiv1.Service)
}

func (r *raced) GetService(context.Context, *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	p := r.s.Policy
	return connect.NewResponse(&apiv1.Service{Name: r.s.Name, Version: r.s.Version, Policy: &apiv1.Policy{Ready: p.Ready, Dscp: p.Dscp}}), nil
}

func (r *raced) UpdatePolicy(_ context.Context, req *connect.Request[apiv1.UpdatePolicyRequest]) (*connect.Response[apiv1.Service], error) {
	if r.race != nil {
		r.race(r.s)
		r.s.Version++
		r.race = nil
	}
	if req.Msg.Version != r.s.Version {
		return nil, connect.NewError(connect.CodeAborted, errors.New("admin bob changed it"))
	}
	r.s.Policy, r.s.Version = req.Msg.Policy, r.s.Version+1
	return r.GetService(context.Background(), nil)
}

// TestOfTwoOperatorsNobodyOverwritesWhatHeHasNotSeen: an edit of another field goes on, one of the same is refused.
func TestOfTwoOperatorsNobodyOverwritesWhatHeHasNotSeen(t *testing.T) {
	safety.Test(t, safety.Record)
	for _, c := range []struct {
		what   string
		race   func(*apiv1.Service)
		refuse bool
	}{
		{"nobody", nil, false},
		{"another field", func(s *apiv1.Service) { s.Policy.Dscp = 46 }, false},
		{"the same field", func(s *apiv1.Service) { s.Policy.Ready = "http:/theirs" }, true},
	} {
		r := &raced{s: &apiv1.Service{Name: "web", Version: 1, Policy: &apiv1.Policy{}}, race: c.race}
		_, err := edit(t.Context(), r, "here", "web", func(s *apiv1.Service) string { return s.Policy.Ready }, func(_ context.Context, _ apiv1connect.AdminClient, _ string, now *apiv1.Service) (*apiv1.Service, error) {
			now.Policy.Ready = "tcp"
			return remote.Ask(t.Context(), r.UpdatePolicy, &apiv1.UpdatePolicyRequest{Name: "web", Policy: now.Policy, Version: now.Version}, "here", "")
		})
		var known *exit.Error
		if refused := errors.As(err, &known) && known.Code == exit.Refused; refused != c.refuse || err != nil && !refused {
			t.Errorf("%s: %v", c.what, err)
		}
		want := "tcp"
		if c.refuse {
			want = "http:/theirs"
		}
		if r.s.Policy.Ready != want || c.what == "another field" && r.s.Policy.Dscp != 46 {
			t.Errorf("%s: the policy is %v", c.what, r.s.Policy)
		}
	}
}
