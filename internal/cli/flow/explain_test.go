package flow

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/cli/remote"
)

func TestADaemonOfTheVersionBeforeIsAskedByItsOwnWord(t *testing.T) {
	const flow = "9f3c1b2a44d0e871"
	socket := filepath.Join(t.TempDir(), "hostd.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(api.FormerFlowHistory, connect.NewUnaryHandler(api.FormerFlowHistory, func(_ context.Context, r *connect.Request[apiv1.GetFlowHistoryRequest]) (*connect.Response[apiv1.FlowHistory], error) {
		return connect.NewResponse(&apiv1.FlowHistory{Flow: &apiv1.Flow{Id: r.Msg.Flow}}), nil
	}))
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, mux, l) }()
	defer func() { stop(); <-served }()
	node := remote.NodeSocket{Node: "c1", Path: "unix:" + socket}
	http, base, err := api.Dial(node.Path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := historyFrom(ctx, apiv1connect.NewLocalClient(http, base), node, flow)
	if err != nil || h.Msg.Flow.GetId() != flow {
		t.Errorf("history of %s: %v, %v", flow, h, err)
	}
}
