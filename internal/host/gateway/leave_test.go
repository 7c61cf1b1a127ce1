package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A crowdOf clients comes and goes at an address until stop; it counts those whom something befell.
type crowdOf struct {
	at           string
	done, failed atomic.Int64
	stop         atomic.Bool
	all          sync.WaitGroup
	mu           sync.Mutex
	errs         []error
}

func load(t *testing.T, at string) *crowdOf {
	c := &crowdOf{at: at}
	for range 4 {
		c.all.Go(func() {
			for !c.stop.Load() {
				if err := c.once(); err != nil {
					c.failed.Add(1)
					c.mu.Lock()
					c.errs = append(c.errs, err)
					c.mu.Unlock()
				}
				c.done.Add(1)
			}
		})
	}
	t.Cleanup(func() { c.stop.Store(true); c.all.Wait() })
	return c
}

func (c *crowdOf) once() error {
	conn, err := net.Dial("tcp", c.at)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(nstest.Deadline))
	return ask(conn, "hello")
}

// more waits until so many have been served from now on.
func (c *crowdOf) more(t *testing.T, n int64) {
	t.Helper()
	from := c.done.Load()
	nstest.Wait(t, "the clients", func() error {
		if c.done.Load() < from+n {
			return fmt.Errorf("%d came since", c.done.Load()-from)
		}
		return nil
	})
}

func (c *crowdOf) end(t *testing.T) {
	t.Helper()
	c.stop.Store(true)
	c.all.Wait()
	if n := c.failed.Load(); n > 0 {
		t.Errorf("%d of %d clients failed: %v", n, c.done.Load(), errors.Join(c.errs[:min(3, len(c.errs))]...))
	}
}

// client speaks to the API of a gateway.
func (g *running) client() apiv1connect.GatewayClient {
	g.t.Helper()
	c, base, err := api.Dial("unix:" + g.cfg.Socket)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.CloseIdleConnections)
	return apiv1connect.NewGatewayClient(c, base)
}

// healthy asks as an announcer does.
func (g *running) healthy() bool {
	g.t.Helper()
	c, base, err := api.Dial("unix:" + g.cfg.Socket)
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	r, err := c.Get(base + "/healthz")
	if err != nil {
		g.t.Fatal(err)
	}
	defer r.Body.Close()
	io.Copy(io.Discard, r.Body)
	return r.StatusCode == http.StatusOK
}

func TestADrainSaysNoFirstAndTakesWhatComes(t *testing.T) {
	g, at := start(t, Config{DrainWait: 300 * time.Millisecond}, fmt.Sprintf("=web:%d", serve(t, echo)))
	g.eventually("no flow, while nobody came", func() bool {
		s, err := g.client().GetGateway(t.Context(), connect.NewRequest(&apiv1.GetGatewayRequest{}))
		return err == nil && s.Msg.Flows == 0 && s.Msg.Listeners[0].Flows == 0
	})
	live := dial(t, at[0])
	if err := ask(live, "hello"); err != nil || !g.healthy() {
		t.Fatal(err, g.healthy())
	}
	clients := load(t, at[0])
	clients.more(t, 20)
	s, err := g.client().DrainGateway(t.Context(), connect.NewRequest(&apiv1.DrainGatewayRequest{}))
	if err != nil || s.Msg.State != "leaving" || g.healthy() {
		t.Errorf("drained: %v, %v; healthy: %v", s, err, g.healthy())
	}
	clients.more(t, 20) // they are still taken
	clients.end(t)
	g.eventually("drained", func() bool {
		s, err := g.client().GetGateway(t.Context(), connect.NewRequest(&apiv1.GetGatewayRequest{}))
		return err == nil && s.Msg.State == "drained" && s.Msg.Flows == 1
	})
	if _, err := net.Dial("tcp", at[0]); err == nil {
		t.Error("drained, and listens")
	}
	if err := ask(live, "still here"); err != nil {
		t.Errorf("a flow from before the drain: %v", err)
	}
	if _, err := g.client().DrainGateway(t.Context(), connect.NewRequest(&apiv1.DrainGatewayRequest{Undrain: true})); err != nil || !g.healthy() {
		t.Errorf("undrained: %v; healthy: %v", err, g.healthy())
	}
	if err := ask(dial(t, at[0]), "again"); err != nil {
		t.Error(err)
	}
}

// What the kernel has accepted belongs to the gateway: closing must not reset it.
func TestClosingAListenerResetsNobody(t *testing.T) {
	for range 20 {
		g, at := start(t, Config{DrainLimit: time.Minute}, fmt.Sprintf("=web:%d", serve(t, echo)))
		conns := make(chan net.Conn, 1000)
		var all sync.WaitGroup
		var stop atomic.Bool
		for range 4 {
			all.Go(func() {
				for !stop.Load() && len(conns) < cap(conns)-8 {
					if c, err := net.DialTimeout("tcp", at[0], 50*time.Millisecond); err == nil {
						conns <- c // its handshake is done
					}
				}
			})
		}
		g.eventually("clients", func() bool { return len(conns) > 20 })
		g.stop()
		if err := nstest.Receive(t, g.out.String(), after(func() { stop.Store(true); all.Wait() })); err != nil {
			t.Fatal(err)
		}
		close(conns)
		n := 0
		for c := range conns {
			c.SetDeadline(time.Now().Add(nstest.Deadline))
			if err := ask(c, "hello"); err != nil {
				t.Fatalf("client %d: %v", n, err)
			}
			c.Close()
			n++
		}
		if err := nstest.Receive(t, g.out.String(), g.done); err != nil {
			t.Fatal(err)
		}
	}
}

func after(do func()) <-chan error {
	c := make(chan error, 1)
	go func() { do(); c <- nil }()
	return c
}

func TestFlowsThatOutliveTheLimitAreReset(t *testing.T) {
	g, at := start(t, Config{DrainLimit: 50 * time.Millisecond}, fmt.Sprintf("=web:%d", serve(t, echo)))
	c := dial(t, at[0])
	if err := ask(c, "hello"); err != nil {
		t.Fatal(err)
	}
	g.stop()
	if err := nstest.Receive(t, g.out.String(), g.done); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("its client sees %v, want a reset", err)
	}
	g.names.mu.Lock()
	defer g.names.mu.Unlock()
	if !slices.Equal(g.names.events, []string{"gateway.drain", "gateway.stop"}) {
		t.Errorf("the network's history: %v", g.names.events)
	}
}

func TestTheNextGatewayTakesOverAndNobodyNotices(t *testing.T) {
	port, ports := serve(t, echo), serveUDP(t)
	old, at := start(t, Config{DrainLimit: time.Minute}, fmt.Sprintf("=web:%d", port), fmt.Sprintf("/udp=dns:%d", ports))
	live, datagrams := dial(t, at[0]), dialUDP(t, at[1])
	if err := ask(live, "hello"); err != nil {
		t.Fatal(err)
	}
	before, err := tell(datagrams, "hello")
	if err != nil {
		t.Fatal(err)
	}
	clients := load(t, at[0])
	for range 3 {
		clients.more(t, 20)
		cfg := old.cfg
		cfg.TakeOver = true
		next, _ := start(t, cfg)
		clients.more(t, 20)
		if err := ask(live, "hello"); err != nil {
			t.Errorf("the flow from before: %v", err)
		}
		if from, err := tell(datagrams, "again"); err != nil || from != before {
			t.Errorf("the UDP session from before: %v, from %v, before %v", err, from, before)
		}
		if s, err := next.client().GetGateway(t.Context(), connect.NewRequest(&apiv1.GetGatewayRequest{})); err != nil || s.Msg.State != "serving" {
			t.Errorf("the next gateway: %v, %v", s, err)
		}
		if old.names == nil { // the first has the flow
			nstest.Receive(t, old.out.String(), old.done)
		}
		old = next
	}
	clients.end(t)
}

func TestASecondGatewayAtTheSameSocketIsRefused(t *testing.T) {
	g, at := start(t, Config{}, fmt.Sprintf("=web:%d", serve(t, echo)))
	err := Run(context.Background(), g.cfg, g.log)
	if !errors.Is(err, api.ErrRunning) {
		t.Errorf("a second gateway: %v", err)
	}
	if err := ask(dial(t, at[0]), "hello"); err != nil {
		t.Errorf("the first: %v", err)
	}
}

func TestReloadLeavesFlowsAlone(t *testing.T) {
	name := func(text string) int {
		return serve(t, func(c *net.TCPConn) {
			defer c.Close()
			b := make([]byte, 100)
			for {
				if _, err := c.Read(b); err != nil {
					return
				}
				c.Write([]byte(text))
			}
		})
	}
	one, two := name("one"), name("two")
	var next atomic.Value
	cfg := Config{Reload: func() (Config, error) { return next.Load().(Config), nil }}
	g, at := start(t, cfg, fmt.Sprintf("=web:%d", one), fmt.Sprintf("=web:%d", one))
	who := func(c net.Conn) string {
		t.Helper()
		b := make([]byte, 3)
		c.Write([]byte("?"))
		if _, err := io.ReadFull(c, b); err != nil {
			t.Error(err)
		}
		return string(b)
	}
	stays, goes := dial(t, at[0]), dial(t, at[1])
	who(stays)
	who(goes)
	added := free(t)
	change := g.cfg
	change.Listen = []string{fmt.Sprintf("%s=web:%d", at[0], two), fmt.Sprintf("%s=web:%d", added, one)}
	next.Store(change)
	if _, err := g.client().ReloadGateway(t.Context(), connect.NewRequest(&apiv1.ReloadGatewayRequest{})); err != nil {
		t.Fatal(err)
	}
	if a, b := who(stays), who(goes); a != "one" || b != "one" {
		t.Errorf("flows from before are with %s and %s", a, b)
	}
	if a, b := who(dial(t, at[0])), who(dial(t, added)); a != "two" || b != "one" {
		t.Errorf("new flows are with %s and %s", a, b)
	}
	if _, err := net.Dial("tcp", at[1]); err == nil {
		t.Error("what is not in the configuration any more is listened on")
	}
	for _, bad := range [][]string{nil, {"nonsense"}, {at[0] + "=web", "192.0.2.1:80=web"}} {
		change.Listen = bad
		next.Store(change)
		_, err := g.client().ReloadGateway(t.Context(), connect.NewRequest(&apiv1.ReloadGatewayRequest{}))
		if connect.CodeOf(err) != connect.CodeFailedPrecondition || bytes.Contains([]byte(err.Error()), []byte("\n")) {
			t.Errorf("%q: %v", bad, err)
		}
		if a, b := who(dial(t, at[0])), who(dial(t, added)); a != "two" || b != "one" {
			t.Errorf("after %q new flows are with %s and %s", bad, a, b)
		}
	}
}
