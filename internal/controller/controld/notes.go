package controld

import (
	"context"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/notes"
)

// Note takes what whoever drives the switches tells of them, and of its modules, into the history.
func (a *agentAPI) Note(ctx context.Context, req *connect.Request[apiv1.Event]) (*connect.Response[apiv1.NoteResponse], error) {
	if err := notes.Check(req.Msg); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return get(ctx, a.n, func() (*apiv1.NoteResponse, error) {
		if err := a.n.notes.FromSwitches(req.Msg); err != nil {
			return nil, connect.NewError(connect.CodeResourceExhausted, err)
		}
		return new(apiv1.NoteResponse), nil
	})
}
