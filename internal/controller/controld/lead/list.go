package lead

import (
	"context"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
)

// standbyAdmin answers what each controller can, also where none leads.
type standbyAdmin struct {
	apiv1connect.UnimplementedAdminHandler
	c *Process
}

// ListControllers lists what this one knows of the others.
func (a *standbyAdmin) ListControllers(ctx context.Context, _ *connect.Request[apiv1.ListControllersRequest]) (*connect.Response[apiv1.ListControllersResponse], error) {
	return connect.NewResponse(a.c.List(ctx, nil)), nil
}

// List is the controllers that run, those that are members of the state's cluster, and those that the network remembers.
func (c *Process) List(ctx context.Context, known map[string]store.Controller) *apiv1.ListControllersResponse {
	answer := &apiv1.ListControllersResponse{Asked: c.cfg.Name, Store: c.where()}
	if !c.store.Elected() {
		endpoints := c.cfg.Listen
		if len(c.cfg.Advertise) > 0 {
			endpoints = c.cfg.Advertise
		}
		answer.Controllers = []*apiv1.Controller{{Name: c.cfg.Name, Endpoints: endpoints, State: "leads", Answers: "yes", SinceUnixMs: c.began.UnixMilli()}}
		return answer
	}
	answer.Controllers = c.Peers.List(c.store.Peers(), known)
	c.asked(ctx, answer.Controllers)
	if c.Peers.Leader() == nil {
		answer.Trouble = c.noLeader().Error()
		for _, p := range c.Watch.Problems(ctx) {
			if p.Kind == health.NoLeader {
				answer.Trouble, answer.Next = p.What, p.Next
			}
		}
	}
	return answer
}

// asked notes who of them answers. Where nobody leads that is all that is known of them: leases cannot end then, and the
// list of before would show the dead as they were.
func (c *Process) asked(ctx context.Context, list []*apiv1.Controller) {
	at := map[string][]string{}
	for _, x := range list {
		if x.Name != c.cfg.Name && len(x.Endpoints) > 0 {
			at[x.Name] = x.Endpoints
		}
	}
	answers, leaderless := c.askOthers(ctx, at), c.Peers.Leader() == nil
	for _, x := range list {
		here := x.Name == c.cfg.Name || answers[x.Name] != nil
		switch {
		case here:
			x.Answers = "yes"
		case at[x.Name] != nil:
			x.Answers = "no"
		}
		switch {
		case leaderless && here && x.State != "joins":
			x.State = "stands by"
		case leaderless && !here:
			x.State = "gone"
		}
	}
}

// where is the state, for people.
func (c *Process) where() string {
	switch {
	case c.cfg.Cluster != nil:
		return "in the controllers"
	case c.store.Elected():
		return c.store.String()
	}
	return "in this controller"
}
