package run

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// A countingDaemon is a host's, of which it knows how many flows are left.
type countingDaemon struct {
	apiv1connect.UnimplementedLocalHandler
	mu     sync.Mutex
	left   uint32
	drains []*apiv1.DrainLocalRequest
}

// DrainLocal counts down: a flow ends between one word and the next.
func (f *countingDaemon) DrainLocal(ctx context.Context, r *connect.Request[apiv1.DrainLocalRequest], s *connect.ServerStream[apiv1.DrainProgress]) error {
	f.mu.Lock()
	f.drains = append(f.drains, r.Msg)
	left := f.left
	f.mu.Unlock()
	if r.Msg.Undrain {
		return s.Send(&apiv1.DrainProgress{})
	}
	for ; left > 0 && r.Msg.Mode != "stuck"; left-- {
		if err := s.Send(&apiv1.DrainProgress{Flows: left}); err != nil {
			return err
		}
	}
	if err := s.Send(&apiv1.DrainProgress{Flows: left}); err != nil || left == 0 {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// parting is a program under `scaffold run`, reduced to the signals that it gets.
type parting struct {
	daemon  *countingDaemon
	down    *shutdown
	signals chan os.Signal
	got     chan syscall.Signal
	said    *bytes.Buffer
	ended   chan error
	over    chan struct{}
}

func part(t *testing.T, mode string, flows uint32) *parting {
	t.Helper()
	f := &countingDaemon{left: flows}
	p := &parting{daemon: f, signals: make(chan os.Signal, 4), got: make(chan syscall.Signal, 4), said: &bytes.Buffer{},
		ended: make(chan error, 1), over: make(chan struct{})}
	p.down = &shutdown{service: "web", endpoint: serveLocal(t, f), mode: mode, limit: time.Minute, w: p.said, drained: make(chan os.Signal, 1)}
	go func() {
		defer close(p.over)
		p.down.pass(p.signals, func(s syscall.Signal) { p.got <- s }, p.ended)
		p.down.done()
	}()
	return p
}

func serveLocal(t *testing.T, f *countingDaemon) (endpoint string) {
	t.Helper()
	endpoint = "unix:" + filepath.Join(t.TempDir(), "s")
	l, err := api.Listen(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewLocalHandler(f))
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, mux, l) }()
	t.Cleanup(func() { stop(); <-served })
	return endpoint
}

// end lets the program end and returns what the daemon was asked.
func (p *parting) end() []*apiv1.DrainLocalRequest {
	p.ended <- nil
	<-p.over
	return p.daemon.drains
}

func TestTheFirstSignalDrainsBeforeItPasses(t *testing.T) {
	p := part(t, "wait", 2)
	p.signals <- syscall.SIGTERM
	if s := <-p.got; s != syscall.SIGTERM {
		t.Errorf("the program got %v", s)
	}
	asked := p.end()
	if len(asked) != 2 || asked[0].Mode != "wait" || asked[0].Undrain || !asked[1].Undrain {
		t.Errorf("the daemon was asked %v, want a drain, and its end after that of the program", asked)
	}
	want := "scaffold: draining web: 2 flows left\nscaffold: draining web: 1 flow left\nscaffold: draining web: 0 flows left\n"
	if p.said.String() != want {
		t.Errorf("printed %q, want %q", p.said, want)
	}
}

func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	p := part(t, "stuck", 2)
	p.signals <- syscall.SIGINT
	p.signals <- syscall.SIGTERM
	if s := <-p.got; s != syscall.SIGTERM {
		t.Errorf("the program got %v, want the second", s)
	}
	p.end()
	if len(p.got) != 0 {
		t.Error("the first signal was passed on too")
	}
}

func TestALimitEndsTheDrain(t *testing.T) {
	p := part(t, "stuck", 2)
	p.down.limit = 500 * time.Millisecond
	p.signals <- syscall.SIGTERM
	<-p.got
	p.end()
	if !strings.Contains(p.said.String(), "web: 500ms are over, 2 flows left") {
		t.Errorf("printed %q", p.said)
	}
}

func TestOtherSignalsAndNoDrainPass(t *testing.T) {
	p := part(t, "wait", 2)
	p.signals <- syscall.SIGHUP
	<-p.got
	if asked := p.end(); len(asked) != 0 {
		t.Errorf("SIGHUP: the daemon was asked %v", asked)
	}
	p = part(t, "none", 2)
	p.signals <- syscall.SIGTERM
	<-p.got
	if asked := p.end(); len(asked) != 0 {
		t.Errorf("--drain none: the daemon was asked %v", asked)
	}
}

func TestWithoutDaemonTheSignalPasses(t *testing.T) {
	p := part(t, "wait", 2)
	p.down.endpoint = "unix:/nowhere/hostd.sock"
	p.signals <- syscall.SIGTERM
	<-p.got
	p.end()
	if !strings.Contains(p.said.String(), "web is not drained: no answer from unix:/nowhere/hostd.sock") {
		t.Errorf("printed %q", p.said)
	}
}
