package lead

import (
	"context"
	"fmt"
	"net/http"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// standbyHandler serves what a controller serves that does not lead: who does, for daemons; everything else by asking
// that one. Metrics and health are its own.
func (c *Process) standbyHandler() http.Handler {
	mux := http.NewServeMux()
	agent := &standbyAgent{c: c}
	path, handler := apiv1connect.NewAgentHandler(agent)
	mux.Handle(path+"Host", handler)
	mux.Handle(path+"Router", handler)
	onward := c.handOn()
	mux.Handle(path, onward)
	path, handler = apiv1connect.NewBoostStreamHandler(&standbyBoost{c})
	mux.Handle(path+"Agent", handler)
	mux.Handle(path, onward)
	path, _ = apiv1connect.NewBoostHandler(apiv1connect.UnimplementedBoostHandler{})
	mux.Handle(path, onward)
	path, handler = apiv1connect.NewAdminHandler(&standbyAdmin{c: c})
	mux.Handle(path+"ListControllers", handler)
	mux.Handle(path+"GetHealth", handler)
	mux.Handle(path, onward)
	path, _ = apiv1connect.NewTrustHandler(apiv1connect.UnimplementedTrustHandler{})
	mux.Handle(path, onward)
	for _, m := range c.cfg.Mounts {
		mux.Handle(m.Path, onward)
	}
	mux.Handle("GET /healthz", c.Watch)
	mux.Handle("/", obs.Handler(c.cfg.Registry, new(obs.Health), c.cfg.Profiles))
	if c.Gate != nil {
		return session.WithDeadlines(gate.WithConnection(c.Gate.Wrap(mux)))
	}
	return session.WithDeadlines(gate.WithConnection(mux))
}

// standbyAgent sends daemons to the leader.
type standbyAgent struct {
	apiv1connect.UnimplementedAgentHandler
	c *Process
}

// Host refuses a host and says where to go.
func (a *standbyAgent) Host(_ context.Context, stream *connect.BidiStream[apiv1.HostReport, apiv1.HostOrder]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	return stream.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Refused{Refused: a.c.elsewhere()}})
}

// Router refuses a router and says where to go.
func (a *standbyAgent) Router(_ context.Context, stream *connect.BidiStream[apiv1.RouterReport, apiv1.RouterOrder]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	return stream.Send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Refused{Refused: a.c.elsewhere()}})
}

// standbyBoost sends agents of boost to the leader.
type standbyBoost struct{ c *Process }

// Agent refuses an agent and says where to go.
func (b *standbyBoost) Agent(_ context.Context, stream *connect.BidiStream[apiv1.BoostReport, apiv1.BoostOrder]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	return stream.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Refused{Refused: b.c.elsewhere()}})
}

// elsewhere is the answer of one that does not lead.
func (c *Process) elsewhere() *apiv1.Refused {
	r := &apiv1.Refused{Retry: true, Standby: true, Controllers: &apiv1.Controllers{}}
	running, _, _ := c.Peers.Now()
	for _, x := range running {
		r.Controllers.Endpoints = append(r.Controllers.Endpoints, x.API...)
	}
	l := c.Peers.Leader()
	if l == nil || l.Name == c.cfg.Name { // it leads in a moment, or did until now
		r.Reason = c.noLeader().Error()
		return r
	}
	r.Leader, r.Reason = l.API, "controller "+c.cfg.Name+" stands by: "+l.Name+" leads"
	return r
}

// noLeader says why nothing can be ordered now.
func (c *Process) noLeader() error {
	_, trouble, _ := c.Peers.Now()
	if !c.store.Elected() {
		return fmt.Errorf("controller %s reads its state again, for it does not know what was saved last; its log says why", c.cfg.Name)
	}
	if trouble != nil {
		return fmt.Errorf("no controller leads: controller %s does not reach enough of the others' state: %w", c.cfg.Name, trouble)
	}
	return fmt.Errorf("no controller leads at the moment: controller %s stands by", c.cfg.Name)
}
