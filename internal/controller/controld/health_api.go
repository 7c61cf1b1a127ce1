package controld

import (
	"context"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/operate/verdict"
)

// GetHealth judges the network.
func (a *adminAPI) GetHealth(ctx context.Context, req *connect.Request[apiv1.GetHealthRequest]) (*connect.Response[apiv1.Health], error) {
	c := a.n.process
	answer := c.OwnHealth()
	if req.Msg.Own {
		return connect.NewResponse(answer), nil
	}
	answer.Problems = verdict.ToAPI(c.Watch.Problems(ctx))
	status, err := a.GetStatus(ctx, connect.NewRequest(new(apiv1.GetStatusRequest)))
	if err != nil {
		return nil, err
	}
	answer.Status = status.Msg
	return connect.NewResponse(answer), nil
}
