package emud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/internal/lab/emud/v1/emudv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A service is an engine that answers on a socket; ended gets what serving it came to.
type service struct {
	*Client
	socket string
	ended  chan error
}

func serve(t *testing.T, cfg Config, programs Programs) *service {
	t.Helper()
	e := running(t, cfg, programs)
	e.began = time.Now()
	e.since = e.began
	s := &service{socket: filepath.Join(t.TempDir(), "engine.sock"), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { s.ended <- e.serve(ctx, s.socket); close(gone) }()
	t.Cleanup(func() { cancel(); <-gone })
	s.Client = Dial(s.socket)
	nstest.Wait(t, "the engine's socket", func() error { return s.Ready(t.Context()) })
	return s
}

func TestTheSocketIsOfTheEnginesUserAlone(t *testing.T) {
	s := serve(t, square(), Shipped())
	info, err := os.Stat(s.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// The kernel says who connects: a mode that somebody changed, or a directory that others may enter, lets nobody in.
func TestOtherUsersGetNoAnswer(t *testing.T) {
	nstest.Root(t)
	s := serve(t, square(), Shipped())
	for path, mode := range map[string]os.FileMode{s.socket: 0o666, filepath.Dir(s.socket): 0o755, filepath.Dir(filepath.Dir(s.socket)): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	var c net.Conn
	var err error
	nstest.Nobody(t, func() { c, err = net.Dial("unix", s.socket) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST "+emudv1connect.EmulatorListProgramsProcedure+" HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}") // it may be closed
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("nobody was told %q", b)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLinksAreChangedAndRead(t *testing.T) {
	s := serve(t, square(), Shipped())
	want := [2]emu.Params{{Rate: 1e6, Queue: 1e5, Delay: 2 * time.Millisecond, Jitter: time.Millisecond, Unordered: true, Loss: 0.25}, {
		BurstLoss: 0.125, Burst: 3, Duplicate: 0.5, Reorder: 0.0625, ReorderBy: 7 * time.Microsecond, Seed: 1<<64 - 1, Delay: 1}}
	one, err := s.SetParams(t.Context(), 1, want)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Links(t.Context())
	if err != nil || len(all) != 4 {
		t.Fatalf("%d links, %v", len(all), err)
	}
	for _, l := range []LinkState{one, all[1]} {
		if l.Link != 1 || l.Ends != [2]string{"r1", "r2"} || l.Inside != [2]bool{true, true} || l.Causes != nil {
			t.Errorf("%+v", l)
		}
		for i, line := range l.Lines {
			if line.Params != want[i] || line.SetFor <= 0 {
				t.Errorf("direction %d: %+v", i, line)
			}
		}
	}
}

func TestFaultsAreToldAndFollowed(t *testing.T) {
	s := serve(t, square(), Shipped())
	one, port := 1, 0
	r, err := s.Change(t.Context(), Fault{Link: &one, Cause: CauseCut, Down: true}, Fault{Link: &one, Down: true}, Fault{Router: "r3", Down: true},
		Fault{Router: "r0", Port: &port, Down: true})
	if err != nil || r.Faults != 4 {
		t.Errorf("%+v, %v", r, err)
	}
	nstest.Wait(t, "computed routes", func() error {
		if r, err = s.Routes(t.Context()); err == nil && r.Installed != r.Faults {
			err = fmt.Errorf("%+v", r)
		}
		return err
	})
	if r.Changed == 0 || r.Took == 0 || r.Error != "" {
		t.Errorf("%+v", r)
	}
	if links, err := s.Links(t.Context()); err != nil || !slices.Equal(links[1].Causes, []string{CauseCut, CauseFail}) {
		t.Errorf("%+v, %v", links[1], err)
	}
	all, err := s.Routers(t.Context())
	if err != nil || len(all) != 4 {
		t.Fatalf("%d routers, %v", len(all), err)
	}
	if !all[3].Down || all[0].Down || !slices.Equal(all[0].Ports, []PortState{{Port: 0, Far: "r1", Link: 0, Down: true}, {Port: 1, Far: "r3", Link: 3}}) {
		t.Errorf("%+v, %+v", all[0], all[3])
	}
}

func TestRoutersAreChangedAndRead(t *testing.T) {
	cfg := square()
	cfg.Shards, cfg.Routers[3].Core = 2, 1 // a router that wants the second thread: otherwise one would do
	s := serve(t, cfg, Shipped())
	ctx := t.Context()
	if err := s.Swap(ctx, "r1", Swap{Program: "load", Parameters: map[string]string{"interval": "100ms"}}); err != nil {
		t.Fatal(err)
	}
	for _, shard := range []int{1, 0, 1} {
		if err := s.Move(ctx, "r1", shard); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Router(ctx, "r1"); err != nil || r.Name != "r1" || r.Program != "load" || r.Shard != shard || r.Failure != "" || r.Feed != nil {
			t.Errorf("on thread %d: %+v, %v", shard, r, err)
		}
	}
	if err := s.Set(ctx, "r0", "icmp-rate", "17"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(ctx, "r0", "icmp-rate"); got != "17" || err != nil {
		t.Errorf("icmp-rate %q, %v", got, err)
	}
	handlers, err := s.Handlers(ctx, "r0")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(handlers, func(h HandlerState) bool { return h.Name == "icmp-rate" })
	if i < 0 || !handlers[i].Read || !handlers[i].Write || handlers[i].Doc == "" {
		t.Errorf("%+v", handlers)
	}
}

func TestCountingBeginsAnewWhereThatIsAskedFor(t *testing.T) {
	s := serve(t, square(), Shipped())
	before, err := s.Certificate(t.Context())
	if err != nil || len(before.Links) != 8 || len(before.Shards) == 0 || before.Bounds != fidelity.Usual || before.Since.IsZero() {
		t.Errorf("%+v, %v", before, err)
	}
	if same, err := s.CertificateAnew(t.Context()); err != nil || !same.Since.Equal(before.Since) {
		t.Errorf("counted since %v and %v, %v", before.Since, same.Since, err)
	}
	if after, err := s.Certificate(t.Context()); err != nil || !after.Since.After(before.Since) {
		t.Errorf("counted since %v and %v, %v", before.Since, after.Since, err)
	}
}

// An odd program has a handler whose value is no text, and panics when it gets a packet.
type odd struct{ *forward.Forwarder }

func (odd) Handlers(*emu.Router) map[string]emu.Handler {
	return map[string]emu.Handler{"odd": {Get: func() (string, error) { return "a\xffb", nil }, Doc: "\xff"}}
}

func TestAValueThatIsNoTextIsRepaired(t *testing.T) {
	s := serve(t, square(), Programs{"forward": func(set Setting) (emu.Program, error) {
		f, err := forward.New(set.Forward)
		return odd{f}, err
	}})
	if got, err := s.Get(t.Context(), "r0", "odd"); got != "a\ufffdb" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := s.Handlers(t.Context(), "r0"); err != nil || !slices.ContainsFunc(all, func(h HandlerState) bool { return h.Doc == "\ufffd" }) {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAnEngineEndsWhenItIsAskedTo(t *testing.T) {
	s := serve(t, square(), Shipped())
	begun, ended := make(chan bool, 1), make(chan error, 1)
	seen := sink{grew: func(int) { begun <- true }}
	go func() { ended <- s.Capture(t.Context(), 0, &seen) }()
	<-begun
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrGone) {
		t.Errorf("a capture that the engine's end cut off: %v", err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

// Engines may be built by users, from another version than the lab that starts them.
func TestAnEngineOfAnotherVersionIsNotWaitedFor(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Listener.Close()
	other.Listener = l
	other.Start()
	t.Cleanup(other.Close)
	if err := Dial(socket).Ready(t.Context()); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), socket) {
		t.Error(err)
	}
}
