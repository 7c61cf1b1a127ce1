package controld

import (
	"context"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
)

// adminAPI serves operators.
type adminAPI struct {
	apiv1connect.UnimplementedAdminHandler
	n *network
}

// after is the service that an order was of, by what the history says of the order: as it is once the routers have applied
// the change, or with the names of those that have not.
func (a *adminAPI) after(ctx context.Context, says *apiv1.Event, err error) (*connect.Response[apiv1.Service], error) {
	if err != nil {
		return nil, err
	}
	pending := a.n.pushes.Await(ctx)
	answer, err := a.GetService(ctx, connect.NewRequest(&apiv1.GetServiceRequest{Name: says.GetSubject()}))
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
		return nil, orders.Error(err)
	}
	return connect.NewResponse(answer), nil
}
