package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A directory is a host's daemon whose services are all at the loopback; "nobody" does not exist.
type directory struct {
	apiv1connect.UnimplementedLocalHandler
	apiv1connect.UnimplementedAdminHandler
	mu     sync.Mutex
	events []string
}

func (n *directory) LookUp(_ context.Context, r *connect.Request[apiv1.LookUpRequest]) (*connect.Response[apiv1.ResolveResponse], error) {
	if r.Msg.Name == "nobody" {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no service %q", r.Msg.Name))
	}
	return connect.NewResponse(&apiv1.ResolveResponse{Name: r.Msg.Name, Address: "::1"}), nil
}

func (n *directory) GetService(_ context.Context, r *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no service %q", r.Msg.Name))
}

func (n *directory) Report(_ context.Context, r *connect.Request[apiv1.ReportRequest]) (*connect.Response[apiv1.ReportResponse], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, r.Msg.Event.Kind)
	return connect.NewResponse(&apiv1.ReportResponse{}), nil
}

// serveNames starts the daemon and returns its endpoint.
func serveNames(t *testing.T) (*directory, string) {
	t.Helper()
	n, endpoint := &directory{}, "unix:"+filepath.Join(t.TempDir(), "hostd.sock")
	l, err := api.Listen(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewLocalHandler(n))
	mux.Handle(apiv1connect.NewAdminHandler(n))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, mux, l) }()
	t.Cleanup(func() { cancel(); <-done })
	return n, endpoint
}

// A running gateway of a test.
type running struct {
	*Gateway
	t     *testing.T
	names *directory
	cfg   Config
	out   *log
	stop  context.CancelFunc
	done  chan error
}

// log keeps what a gateway says.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// start runs a gateway to the end of the test. Its listeners are "=web:PORT" and so on; each gets an address.
func start(t *testing.T, cfg Config, listens ...string) (g *running, at []string) {
	t.Helper()
	g = &running{t: t, cfg: cfg, out: &log{}}
	if cfg.Daemon == "" {
		g.names, g.cfg.Daemon = serveNames(t)
	}
	if cfg.Socket == "" {
		g.cfg.Socket = filepath.Join(t.TempDir(), "gateway.sock")
	}
	for _, l := range listens {
		addr := free(t)
		at = append(at, addr)
		to, isUDP := strings.CutPrefix(l, "/udp")
		if isUDP {
			addr += "/udp"
		}
		g.cfg.Listen = append(g.cfg.Listen, addr+to)
	}
	g.run()
	return g, at
}

func (g *running) run() {
	g.t.Helper()
	if err := g.cfg.Check(); err != nil {
		g.t.Fatal(err)
	}
	g.Gateway = newGateway(g.cfg, slog.New(slog.NewTextHandler(g.out, nil)))
	if err := g.begin(); err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.stop, g.done = cancel, make(chan error, 1)
	go func() {
		err := g.loop(ctx, nil)
		g.closeAPI()
		g.end()
		g.done <- err
	}()
	g.t.Cleanup(func() {
		cancel()
		g.Gateway.end()
		if g.t.Failed() {
			g.t.Logf("the gateway said:\n%s", g.out)
		}
	})
}

// free is an address of the loopback that nobody has.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// serve is a server of a service; it returns its port.
func serve(t *testing.T, each func(*net.TCPConn)) int {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go each(c.(*net.TCPConn))
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func echo(c *net.TCPConn) {
	defer c.Close()
	io.Copy(c, c)
}

func dial(t *testing.T, at string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(nstest.Deadline))
	return c.(*net.TCPConn)
}

// ask sends a line and wants it back.
func ask(c net.Conn, line string) error {
	if _, err := io.WriteString(c, line); err != nil {
		return err
	}
	got := make([]byte, len(line))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != line {
		return fmt.Errorf("asked %q, got %q", line, got)
	}
	return nil
}

func random(n int) []byte {
	b, rng := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// eventually waits for what has no event.
func (g *running) eventually(what string, holds func() bool) {
	g.t.Helper()
	nstest.Wait(g.t, "what the gateway said", func() error {
		if !holds() {
			return fmt.Errorf("not so: %s", what)
		}
		return nil
	})
}
