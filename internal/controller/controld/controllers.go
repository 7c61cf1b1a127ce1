package controld

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
)

// ListControllers lists those that run, those that are members of the state's cluster, and those of before.
func (a *adminAPI) ListControllers(ctx context.Context, _ *connect.Request[apiv1.ListControllersRequest]) (*connect.Response[apiv1.ListControllersResponse], error) {
	known, err := a.n.known(ctx)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(a.n.process.List(ctx, known)), nil
}

// known are the controllers that the network remembers, whether they run or not.
func (n *network) known(ctx context.Context) (known map[string]store.Controller, err error) {
	told := make(chan map[string]store.Controller, 1)
	if err := n.ask(ctx, func() { told <- n.controllers.Known() }); err != nil {
		return nil, err
	}
	return <-told, nil
}

// AddController takes one into the cluster that the state is in.
func (a *adminAPI) AddController(ctx context.Context, req *connect.Request[apiv1.AddControllerRequest]) (*connect.Response[apiv1.AddControllerResponse], error) {
	m, n := req.Msg, a.n
	if m.Network != n.cfg.Network {
		return nil, orders.Error(fmt.Errorf("%w: this is a controller of the network %s, not of %.80q: start the other one with --network %s", orders.ErrConflict, n.cfg.Network, m.Network, n.cfg.Network))
	}
	if name, err := names.Clean(m.Name, ""); err != nil || name != m.Name {
		return nil, orders.Error(fmt.Errorf("%w: controller name %.80q: want letters, digits and hyphens, in lower case", names.ErrInvalid, m.Name))
	}
	if err := store.CheckPeer(m.Member); err != nil {
		return nil, orders.Error(fmt.Errorf("%w: peer %w", names.ErrInvalid, err))
	}
	defer a.n.orders.Alone()()
	members, err := n.process.store.AddMember(ctx, m.Name, m.Member)
	switch {
	case errors.Is(err, store.ErrMember), errors.Is(err, store.ErrNoMember):
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	case err != nil:
		return nil, orders.Error(err)
	}
	err = a.n.orders.Record(ctx, events.New("controller.add", m.Name, "controller is taken in and learns the state; it has no vote yet", "peer", m.Member))
	if err != nil {
		n.log.Warn("the history lacks that a controller was taken in", "name", m.Name, "error", err)
	}
	answer := new(apiv1.AddControllerResponse)
	for _, x := range members {
		answer.Members = append(answer.Members, &apiv1.Controller{Name: x.Name, Member: x.URL})
	}
	return connect.NewResponse(answer), nil
}

// RemoveController forgets one, and takes it out of the cluster that the state is in.
func (a *adminAPI) RemoveController(ctx context.Context, req *connect.Request[apiv1.RemoveControllerRequest]) (*connect.Response[apiv1.RemoveControllerResponse], error) {
	n, name := a.n, req.Msg.Name
	defer a.n.orders.Alone()()
	var known, runs bool
	if err := n.ask(ctx, func() {
		known, runs = n.controllers.Look(name)
	}); err != nil {
		return nil, err
	}
	if name == n.cfg.Name {
		return nil, orders.Error(fmt.Errorf("%w: controller %s leads: stop it first, another one takes over", orders.ErrConflict, name))
	}
	if runs && !req.Msg.Force {
		return nil, orders.Error(fmt.Errorf("%w: controller %s runs: stop it first, or use force", orders.ErrConflict, name))
	}
	if n.cfg.Cluster != nil {
		switch err := n.process.store.RemoveMember(ctx, name); {
		case errors.Is(err, store.ErrNoMember) && known:
		case errors.Is(err, store.ErrNoMember):
			return nil, connect.NewError(connect.CodeNotFound, err)
		case err != nil:
			return nil, orders.Error(err)
		}
	} else if !known {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("controller %.80q: no such controller", name))
	}
	ctx = context.WithoutCancel(ctx)
	c := orders.Change{Records: []store.Change{store.DeleteController(name)}, Says: []*apiv1.Event{events.New("controller.remove", name, "controller is no longer one of the network's")}}
	if err := a.n.orders.Save(ctx, &c); err != nil {
		return nil, err
	}
	err := n.ask(ctx, func() {
		n.controllers.Forget(name)
		n.events.Ordered(c.Says)
	})
	return connect.NewResponse(new(apiv1.RemoveControllerResponse)), err
}
