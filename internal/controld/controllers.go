package controld

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/store"
)

// ListControllers lists those that run, those that are members of the state's cluster, and those of before.
func (a *adminAPI) ListControllers(ctx context.Context, _ *connect.Request[apiv1.ListControllersRequest]) (*connect.Response[apiv1.ListControllersResponse], error) {
	known := map[string]store.Controller{}
	if err := a.n.ask(ctx, func() {
		for name, c := range a.n.controllers {
			known[name] = c
		}
	}); err != nil {
		return nil, err
	}
	return a.n.seat.listControllers(ctx, known), nil
}

// standbyAdmin answers what each controller can, also where none leads.
type standbyAdmin struct {
	apiv1connect.UnimplementedAdminHandler
	c *seat
}

// ListControllers lists what this one knows of the others.
func (a *standbyAdmin) ListControllers(ctx context.Context, _ *connect.Request[apiv1.ListControllersRequest]) (*connect.Response[apiv1.ListControllersResponse], error) {
	return a.c.listControllers(ctx, nil), nil
}

func (c *seat) listControllers(ctx context.Context, known map[string]store.Controller) *connect.Response[apiv1.ListControllersResponse] {
	answer := &apiv1.ListControllersResponse{Asked: c.cfg.Name, Store: c.where()}
	if !c.store.Elected() {
		endpoints := c.cfg.Listen
		if len(c.cfg.Advertise) > 0 {
			endpoints = c.cfg.Advertise
		}
		answer.Controllers = []*apiv1.Controller{{Name: c.cfg.Name, Endpoints: endpoints, State: "leads", SinceUnixMs: c.began.UnixMilli()}}
		return connect.NewResponse(answer)
	}
	_, trouble, _ := c.peers.now()
	members, err := c.store.Members(ctx)
	if err := errors.Join(trouble, err); err != nil {
		answer.Trouble = err.Error()
	}
	answer.Controllers = c.list(members, known)
	return connect.NewResponse(answer)
}

// where is the state, for people.
func (c *seat) where() string {
	switch {
	case c.cfg.Cluster != nil:
		return "in the controllers"
	case c.store.Elected():
		return c.store.String()
	}
	return "in this controller"
}

// AddController takes one into the cluster that the state is in.
func (a *adminAPI) AddController(ctx context.Context, req *connect.Request[apiv1.AddControllerRequest]) (*connect.Response[apiv1.AddControllerResponse], error) {
	m, n := req.Msg, a.n
	if m.Network != n.cfg.Network {
		return nil, apiError(fmt.Errorf("%w: this is a controller of the network %s, not of %.80q: start the other one with --network %s", errConflict, n.cfg.Network, m.Network, n.cfg.Network))
	}
	if name, err := names.Clean(m.Name, ""); err != nil || name != m.Name {
		return nil, apiError(fmt.Errorf("%w: controller name %.80q: want letters, digits and hyphens, in lower case", names.ErrInvalid, m.Name))
	}
	if err := store.CheckPeer(m.Member); err != nil {
		return nil, apiError(fmt.Errorf("%w: peer %w", names.ErrInvalid, err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	members, err := n.seat.store.AddMember(ctx, m.Name, m.Member)
	switch {
	case errors.Is(err, store.ErrMember), errors.Is(err, store.ErrNoMember):
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	case err != nil:
		return nil, apiError(err)
	}
	n.loop.post(func() {
		n.event("controller.add", m.Name, "controller is taken in and learns the state; it has no vote yet", "peer", m.Member)
	})
	answer := new(apiv1.AddControllerResponse)
	for _, x := range members {
		answer.Members = append(answer.Members, &apiv1.Controller{Name: x.Name, Member: x.URL})
	}
	return connect.NewResponse(answer), nil
}

// RemoveController forgets one, and takes it out of the cluster that the state is in.
func (a *adminAPI) RemoveController(ctx context.Context, req *connect.Request[apiv1.RemoveControllerRequest]) (*connect.Response[apiv1.RemoveControllerResponse], error) {
	n, name := a.n, req.Msg.Name
	a.mu.Lock()
	defer a.mu.Unlock()
	var known, runs bool
	if err := n.ask(ctx, func() {
		_, known = n.controllers[name]
		_, runs = n.running[name]
	}); err != nil {
		return nil, err
	}
	if name == n.cfg.Name {
		return nil, apiError(fmt.Errorf("%w: controller %s leads: stop it first, another one takes over", errConflict, name))
	}
	if runs && !req.Msg.Force {
		return nil, apiError(fmt.Errorf("%w: controller %s runs: stop it first, or use force", errConflict, name))
	}
	if n.cfg.Cluster != nil {
		switch err := n.seat.store.RemoveMember(ctx, name); {
		case errors.Is(err, store.ErrNoMember) && known:
		case errors.Is(err, store.ErrNoMember):
			return nil, connect.NewError(connect.CodeNotFound, err)
		case err != nil:
			return nil, apiError(err)
		}
	} else if !known {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("controller %.80q: no such controller", name))
	}
	if err := n.saver.now(context.WithoutCancel(ctx), store.DeleteController(name)); err != nil {
		return nil, n.unsaved(err)
	}
	err := n.ask(ctx, func() {
		delete(n.controllers, name)
		n.tellControllers()
		n.event("controller.remove", name, "controller is no longer one of the network's")
	})
	return connect.NewResponse(new(apiv1.RemoveControllerResponse)), err
}
