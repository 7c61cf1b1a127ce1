package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

type historian struct {
	apiv1connect.UnimplementedLocalHandler
}

func (historian) GetFlowHistory(_ context.Context, r *connect.Request[apiv1.GetFlowHistoryRequest]) (*connect.Response[apiv1.FlowHistory], error) {
	return connect.NewResponse(&apiv1.FlowHistory{Flow: &apiv1.Flow{Id: r.Msg.Flow}}), nil
}

func TestACommandOfTheVersionBeforeIsToldTheHistoryOfAFlow(t *testing.T) {
	mux := http.NewServeMux()
	path, local := apiv1connect.NewLocalHandler(historian{})
	mux.Handle(path, local)
	former := Former(local)
	mux.Handle(former.Path, former.Handler)
	s := httptest.NewServer(mux)
	defer s.Close()
	for _, path := range []string{FormerFlowHistory, apiv1connect.LocalGetFlowHistoryProcedure} {
		c := connect.NewClient[apiv1.GetFlowHistoryRequest, apiv1.FlowHistory](s.Client(), s.URL+path)
		h, err := c.CallUnary(t.Context(), connect.NewRequest(&apiv1.GetFlowHistoryRequest{Flow: "9f3c1b2a44d0e871"}))
		if err != nil || h.Msg.Flow.GetId() != "9f3c1b2a44d0e871" {
			t.Errorf("%s: %v, %v", path, h, err)
		}
	}
}
