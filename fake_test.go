package scaffold

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// fake is a host daemon that knows one service, "web", whose address is the loopback's, and notes what
// it is asked.
type fake struct {
	apiv1connect.UnimplementedAdminHandler
	apiv1connect.UnimplementedLocalHandler
	host *Host
	old  bool // knows no call of the Local service

	mu     sync.Mutex
	serves []*apiv1.ServeRequest
	fails  []*apiv1.FailFlowsRequest
	moves  []*apiv1.MoveFlowsRequest
	flow   *apiv1.FlowIdentity // nil: there is none
	notes  chan string         // notices to give
	stop   func()              // ends the daemon
}

func newFake(t testing.TB) *fake {
	t.Helper()
	f := &fake{host: &Host{Daemon: "unix:" + filepath.Join(t.TempDir(), "hostd.sock")}, notes: make(chan string)}
	f.start(t)
	t.Cleanup(func() { f.stop() })
	return f
}

// start brings the daemon up, also again.
func (f *fake) start(t testing.TB) {
	t.Helper()
	l, err := api.Listen(f.host.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAdminHandler(f))
	mux.Handle(apiv1connect.NewLocalHandler(f))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, mux, l) }()
	f.stop = sync.OnceFunc(func() { cancel(); <-done })
}

func (f *fake) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) unknown() error {
	if f.old {
		return connect.NewError(connect.CodeUnimplemented, errors.New("unknown method"))
	}
	return nil
}

func (f *fake) GetService(_ context.Context, r *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	if r.Msg.Name != "web" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no service named "+r.Msg.Name))
	}
	return connect.NewResponse(&apiv1.Service{Name: "web", Address: "::1"}), nil
}

func (f *fake) Serve(ctx context.Context, r *connect.Request[apiv1.ServeRequest], s *connect.ServerStream[apiv1.ServeNotice]) error {
	if err := f.unknown(); err != nil {
		return err
	}
	f.locked(func() { f.serves = append(f.serves, r.Msg) })
	for kind := "serving"; ; {
		if err := s.Send(&apiv1.ServeNotice{Kind: kind}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case kind = <-f.notes:
		}
	}
}

func (f *fake) Identify(context.Context, *connect.Request[apiv1.IdentifyRequest]) (*connect.Response[apiv1.FlowIdentity], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unknown(); err != nil {
		return nil, err
	}
	if f.flow == nil {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such flow here"))
	}
	return connect.NewResponse(f.flow), nil
}

func (f *fake) FailFlows(_ context.Context, r *connect.Request[apiv1.FailFlowsRequest]) (*connect.Response[apiv1.FailFlowsResponse], error) {
	f.locked(func() { f.fails = append(f.fails, r.Msg) })
	return connect.NewResponse(&apiv1.FailFlowsResponse{Failed: 1}), f.unknown()
}

func (f *fake) MoveFlows(_ context.Context, r *connect.Request[apiv1.MoveFlowsRequest]) (*connect.Response[apiv1.MoveFlowsResponse], error) {
	f.locked(func() { f.moves = append(f.moves, r.Msg) })
	switch r.Msg.To {
	case "down":
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("down is not attached to a router"))
	case "late":
		return connect.NewResponse(&apiv1.MoveFlowsResponse{Failed: 1}), nil
	}
	return connect.NewResponse(&apiv1.MoveFlowsResponse{Moved: 1}), nil
}

// pair is a connection over the loopback, both ends.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestCallsShareOneConnectionToTheDaemon(t *testing.T) {
	f := newFake(t)
	first, err := f.host.dial()
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.host.dial()
	if err != nil || second != first {
		t.Errorf("the second call has another daemon, or %v", err)
	}
	first.Close()
	if again, err := f.host.dial(); err != nil || again != second {
		t.Errorf("one call goes on, and the next has another daemon, or %v", err)
	}
	second.Close()
	second.Close()
	if last, err := f.host.dial(); err != nil || last == second {
		t.Errorf("nobody called any more, and the next has the old daemon, or %v", err)
	} else {
		last.Close()
	}
	if d := called.all[f.host.Daemon]; d != nil {
		t.Errorf("%d users are left", d.users)
	}
}
