package controld

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/store"
)

// adminAPI serves operators. What they change is saved first and done then: an answer without error
// means that it outlives the controller.
type adminAPI struct {
	apiv1connect.UnimplementedAdminHandler
	n  *network
	mu sync.Mutex // one change at a time, from its check over its saving to its effect
}

var (
	errConflict = errors.New("refused")
	errNoHost   = errors.New("no such host")
)

// apiError gives our errors the codes that the command line makes exit codes of.
func apiError(err error) error {
	var known *connect.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, names.ErrUnknown), errors.Is(err, errNoHost):
		return connect.NewError(connect.CodeNotFound, err)
	case errors.Is(err, names.ErrExists):
		return connect.NewError(connect.CodeAlreadyExists, err)
	case errors.Is(err, names.ErrInvalid):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, errConflict):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return connect.NewError(connect.CodeUnavailable, err)
}

// A change is what an order comes to: records to save, and its effect once they are.
type change struct {
	records []store.Change
	effect  func()
}

// do checks an order in the loop, saves it outside, and carries it out in the loop. Once it is saved
// a caller who hangs up stops it no more.
func (a *adminAPI) do(ctx context.Context, check func() (change, error)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var c change
	var err error
	if asked := a.n.ask(ctx, func() { c, err = check() }); asked != nil {
		return asked
	}
	if err != nil {
		return apiError(err)
	}
	ctx = context.WithoutCancel(ctx)
	if err := a.n.saver.now(ctx, c.records...); err != nil {
		return a.n.unsaved(err)
	}
	return a.n.ask(ctx, func() {
		c.effect()
		a.n.flush()
	})
}

// unsaved is the answer to an order that could not be saved. Where etcd is spread over machines, no answer of it leaves
// open what was saved: the next term begins with what is there.
func (n *network) unsaved(err error) error {
	n.saved(err)
	if n.seat.store.Elected() && store.Doubtful(err) {
		n.resign(err)
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("it is not known whether this was saved, look before you try again: %w", err))
	}
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf("nothing was changed: %w", err))
}

// changed is do for orders that answer with the service as it is afterwards: once the routers have
// applied the change, or with the names of those that have not.
func (a *adminAPI) changed(ctx context.Context, check func() (names.Record, change, error)) (*connect.Response[apiv1.Service], error) {
	var name string
	err := a.do(ctx, func() (change, error) {
		r, c, err := check()
		name = r.Name
		return c, err
	})
	if err != nil {
		return nil, err
	}
	pending := a.await(ctx)
	answer, err := a.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: name}))
	if err == nil {
		answer.Msg.Pending = pending
	}
	return answer, err
}

// get runs a question in the loop.
func get[T any](ctx context.Context, n *network, f func() (*T, error)) (*connect.Response[T], error) {
	var answer *T
	var err error
	if asked := n.ask(ctx, func() { answer, err = f() }); asked != nil {
		return nil, asked
	}
	if err != nil {
		return nil, apiError(err)
	}
	return connect.NewResponse(answer), nil
}
