package scaffold

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// daemon knows one service, "web", whose address is the loopback's.
type daemon struct {
	apiv1connect.UnimplementedAdminHandler
}

func (daemon) GetService(_ context.Context, req *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	if req.Msg.Name != "web" {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no service named "+req.Msg.Name))
	}
	return connect.NewResponse(&apiv1.Service{Name: "web", Address: "::1"}), nil
}

func host(t *testing.T) *Host {
	t.Helper()
	endpoint := "unix:" + filepath.Join(t.TempDir(), "hostd.sock")
	l, err := api.Listen(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewAdminHandler(daemon{}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, mux, l) }()
	t.Cleanup(func() { stop(); <-done })
	return &Host{Daemon: endpoint}
}

func TestAServiceIsServedAndReachedByName(t *testing.T) {
	h := host(t)
	l, err := h.Listen(t.Context(), "tcp", "web:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, err := h.Dial(t.Context(), "tcp", "web:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pc, err := h.ListenPacket(t.Context(), "udp", "web:0")
	if err != nil {
		t.Fatal(err)
	}
	pc.Close()
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	h := host(t)
	if _, err := h.Dial(t.Context(), "tcp", "nobody:80"); !errors.Is(err, ErrUnknownService) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("unknown service: %v", err)
	}
	if _, err := h.Dial(t.Context(), "sctp", "web:80"); err == nil || !strings.Contains(err.Error(), "sctp") {
		t.Errorf("unknown network: %v", err)
	}
	if _, err := h.Dial(t.Context(), "tcp", "web"); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("no port: %v", err)
	}
	away := &Host{Daemon: "unix:/nowhere/hostd.sock"}
	if _, err := away.Listen(t.Context(), "tcp", "web:80"); err == nil || !strings.Contains(err.Error(), "/nowhere/hostd.sock") {
		t.Errorf("no daemon: %v", err)
	}
}
