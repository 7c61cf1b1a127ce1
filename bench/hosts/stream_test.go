package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A controller that answers each load by as many bytes, and ends the call at a host's leave.
type controller struct {
	apiv1connect.UnimplementedAgentHandler
}

func (controller) Host(_ context.Context, s *connect.BidiStream[apiv1.HostReport, apiv1.HostOrder]) error {
	for {
		m, err := s.Receive()
		if err != nil {
			return err
		}
		if m.GetLeave() != nil {
			return connect.NewError(connect.CodeAborted, errors.New("so long"))
		}
		reason := strings.Repeat("x", int(m.GetLoad().GetFlows()))
		if err := s.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Refused{Refused: &apiv1.Refused{Reason: reason}}}); err != nil {
			return err
		}
	}
}

// What a simulated host puts on the wire is what the API's server takes, and it takes whatever the server says, many
// windows of it.
func TestAStreamIsTheServersCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAgentHandler(controller{}))
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, mux, l) }()
	defer func() { cancel(); nstest.Receive(t, "the API's server", served) }()
	s, err := open(ctx, api.Endpoint{Network: "tcp", Address: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []uint32{0, 10, 100 << 10, 1 << 20, 3 << 20, 1} {
		if err := s.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Load{Load: &apiv1.Load{Flows: n}}}); err != nil {
			t.Fatal(err)
		}
		o, err := s.Receive()
		if err != nil || len(o.GetRefused().GetReason()) != int(n) {
			t.Fatalf("message %d: %d bytes, want %d: %v", i, len(o.GetRefused().GetReason()), n, err)
		}
	}
	if err := s.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(); fmt.Sprint(err) != "aborted: so long" {
		t.Errorf("the end of the call: %v", err)
	}
}
