package ofconn

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A gate hands what connects to the test.
type gate struct {
	switches chan *Conn
	refused  chan error
}

func newGate() *gate { return &gate{make(chan *Conn, 10), make(chan error, 10)} }

func (g *gate) Switch(c *Conn) { g.switches <- c; <-c.Done() }

func (g *gate) Refused(_ net.Addr, err error) { g.refused <- err }

// open serves at the target until the test ends.
func (g *gate) open(t *testing.T, l net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); Serve(ctx, l, Config{}, g) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestOneThatTakesItsTimeHoldsUpNobody(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c")
	l, err := Listen(t.Context(), "unix:"+file, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := newGate()
	g.open(t, l)
	slow, err := net.Dial("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	browser, err := net.Dial("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Close()
	io.WriteString(browser, "GET / HTTP/1.1\r\n\r\n")
	if err := nstest.Receive(t, "Conn.Err", g.refused); !errors.Is(err, ErrVersion) {
		t.Errorf("the browser was refused by %v, want %v", err, ErrVersion)
	}
	sw, err := net.Dial("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(t, sw)
	go func() { defer sw.Close(); p.shake(); p.obey(func(ofp.Message) {}) }()
	c := nstest.Receive(t, "Conn.Err", g.switches)
	if err := c.Do(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil || !errors.Is(c.Err(), ErrClosed) {
		t.Errorf("Close = %v, Err = %v; want %v", err, c.Err(), ErrClosed)
	}
}

func TestTargets(t *testing.T) {
	for _, target := range []string{"", "tcp", "udp:1.2.3.4:5", "10.0.0.1:6653", "ssl:10.0.0.1:6653"} {
		if c, err := Dial(t.Context(), target, nil, Config{}); err == nil {
			t.Errorf("Dial(%q) = %v, want an error", target, c)
		}
		if l, err := Listen(t.Context(), target, nil); err == nil {
			t.Errorf("Listen(%q) = %v, want an error", target, l)
		}
	}
}

// dial connects to a bridge that waits for controllers.
func dial(t *testing.T, socket string) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nstest.Deadline)
	defer cancel()
	c, err := Dial(ctx, "unix:"+socket, nil, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.Send(ofp.SetConfig{Config: ofp.Config{MissLen: ofp.WholePacket}}); err != nil {
		t.Fatal(err)
	}
	return c
}
