package controld

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
)

// GetPath tells the way of packets between two hosts or routers.
func (a *adminAPI) GetPath(ctx context.Context, req *connect.Request[apiv1.GetPathRequest]) (*connect.Response[apiv1.Path], error) {
	return get(ctx, a.n, func() (*apiv1.Path, error) {
		w, err := a.n.plan.Way(req.Msg.From, req.Msg.To)
		if errors.Is(err, plan.ErrNoEnd) {
			return nil, connect.NewError(connect.CodeNotFound, err)
		}
		if err != nil {
			return nil, connect.NewError(connect.CodeFailedPrecondition, err)
		}
		p := &apiv1.Path{Cost: w.Cost}
		for _, h := range w.Hops {
			p.Hops = append(p.Hops, &apiv1.Hop{Router: h.Router, In: h.In, Out: h.Out})
		}
		return p, nil
	})
}
