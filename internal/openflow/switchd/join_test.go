package switchd

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/userstack"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// aSwitch has the ports p1 and p2, both up.
func aSwitch(name string, id byte) controller.Switch {
	return controller.Switch{Name: name, Up: true, Service: true, MAC: [6]byte{2, 0, 0, 0, 0, id},
		LinkLocal: netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 11: 0xff, 12: 0xfe, 15: id}),
		Locator:   sid.DefaultSpace().Locator(0x100).Host(),
		Ports:     []controller.Port{{Name: "p1", Number: 1, Up: true}, {Name: "p2", Number: 2, Up: true}}}
}

// An echoing is a controller's API that echoes.
type echoing struct {
	net.Listener
	wg sync.WaitGroup
}

func newEchoing(t *testing.T) *echoing {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echoing{Listener: l}
	e.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.wg.Go(func() {
				defer c.Close()
				io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); e.wg.Wait() })
	return e
}

func (e *echoing) endpoint() api.Endpoint {
	return api.Endpoint{Network: "tcp", Address: e.Addr().String()}
}

// startJoin runs the join module over a fake network.
func startJoin(t *testing.T, to api.Endpoint) (*join, *fakeNetwork) {
	j := newJoin(to, agent.NewLinkKeys(), slog.New(slog.DiscardHandler))
	n := newFakeNetwork(t, j)
	t.Cleanup(j.Close)
	return j, n
}

// hear collects the messages that come to a stack.
func hear(s *userstack.Stack) <-chan wire.Message {
	c := make(chan wire.Message, 1024)
	s.HandleUDP(sid.Port, func(d userstack.Datagram) {
		if m, err := wire.Parse(d.Data); err == nil {
			select {
			case c <- m:
			default:
			}
		}
	})
	return c
}

// hello waits for a HELLO as it should be.
func hello(t *testing.T, c <-chan wire.Message, good func(wire.Hello) bool) wire.Hello {
	t.Helper()
	var last wire.Message
	for late := time.After(patience); ; {
		select {
		case last = <-c:
			if h, ok := last.(wire.Hello); ok && good(h) {
				return h
			}
		case <-late:
			t.Fatalf("no such HELLO; the last message was %+v", last)
		}
	}
}

func say(t *testing.T, s *userstack.Stack, m wire.Message) {
	t.Helper()
	if err := s.SendUDP("eth0", sid.Port, netip.AddrPortFrom(allNodes, sid.Port), m.Append(nil)); err != nil {
		t.Fatal(err)
	}
}

// drain empties what was heard.
func drain(c <-chan wire.Message) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}

func TestGreets(t *testing.T) {
	j, n := startJoin(t, api.Endpoint{})
	heard := hear(n.host("s1", 2, 1))
	s := aSwitch("s1", 1)
	s.Locator = netip.Addr{}
	n.set(s)
	want := wire.Hello{Service: true, Relay: true, RelayPort: j.relay, Name: "s1", Port: "p2"}
	if h := hello(t, heard, func(wire.Hello) bool { return true }); h != want {
		t.Errorf("HELLO %+v, want %+v", h, want)
	}
	s.Locator = sid.DefaultSpace().Locator(0x100).Host()
	n.set(s)
	hello(t, heard, func(h wire.Hello) bool { return h.Locator == sid.DefaultSpace().Locator(0x100) })
	s.Service = false
	n.set(s)
	hello(t, heard, func(h wire.Hello) bool { return !h.Service })
	n.call(func() { drain(heard) })
	n.call(n.tick)
	hello(t, heard, func(h wire.Hello) bool { return true })
}

func TestGreetsAtOnce(t *testing.T) {
	_, n := startJoin(t, api.Endpoint{})
	host := n.host("s1", 1, 1)
	heard := hear(host)
	s := aSwitch("s1", 1)
	s.Ports = []controller.Port{{Name: "p1", Number: 1}}
	n.set(s)
	select {
	case m := <-heard:
		t.Fatalf("%+v on a port without a carrier", m)
	default:
	}
	s.Ports = []controller.Port{{Name: "p1", Number: 1, Up: true}}
	n.set(s)
	hello(t, heard, func(wire.Hello) bool { return true })
	n.call(func() { drain(heard) })
	say(t, host, wire.Solicit{Name: "h1"})
	hello(t, heard, func(wire.Hello) bool { return true })
}

// TestGreetsWhenHeard: who answers a greeting at once must be heard.
func TestGreetsWhenHeard(t *testing.T) {
	_, n := startJoin(t, api.Endpoint{})
	heard := hear(n.host("s1", 1, 1))
	n.deaf = true
	s := aSwitch("s1", 1)
	n.set(s)
	n.call(n.tick)
	n.call(n.try)
	n.call(func() {})
	select {
	case m := <-heard:
		t.Fatalf("%+v before the switch punts", m)
	default:
	}
	n.mu.Lock()
	n.deaf = false
	n.mu.Unlock()
	n.call(n.try)
	hello(t, heard, func(h wire.Hello) bool { return true })
}

// TestHearsRouters: links to routers that greet, and none between switches of our own.
func TestHearsRouters(t *testing.T) {
	_, n := startJoin(t, api.Endpoint{})
	router := n.host("s1", 1, 7)
	heard := hear(router)
	s := aSwitch("s1", 1)
	n.set(s)
	greeting := wire.Hello{Name: "r7", Port: "down0"}
	say(t, router, greeting)
	up := controller.Link{Router: "s1", Port: "p1", Peer: "r7", PeerPort: "down0", Via: hostAddr(7), MAC: [6]byte{2, 0, 0, 0, 0xff, 7}, Up: true, Cost: 1}
	n.linksAt("s1", func(l []controller.Link) bool { return len(l) == 1 && l[0] == up })
	hello(t, heard, func(wire.Hello) bool { return true })
	for range 4 {
		n.call(n.tick)
	}
	n.linksAt("s1", func(l []controller.Link) bool { return len(l) == 1 && !l[0].Up && l[0].Reason == "hello" })
	say(t, router, greeting)
	n.linksAt("s1", func(l []controller.Link) bool { return len(l) == 1 && l[0] == up })
	s.Ports = []controller.Port{{Name: "p1", Number: 1}, {Name: "p2", Number: 2, Up: true}}
	n.set(s)
	n.linksAt("s1", func(l []controller.Link) bool { return len(l) == 1 && !l[0].Up && l[0].Reason == "carrier" })
	n.set(aSwitch("r7", 9))
	n.linksAt("s1", func(l []controller.Link) bool { return len(l) == 0 })
	s = aSwitch("s1", 1)
	n.set(s)
	greeting.Name = "r8"
	say(t, router, greeting)
	n.linksAt("s1", func(l []controller.Link) bool { return len(l) == 1 && l[0].Peer == "r8" })
	for range 61 {
		n.call(n.tick)
	}
	n.linksAt("s1", func(l []controller.Link) bool { return len(l) == 0 })
}

// TestManyNamesAreBounded: HELLOs of made-up routers.
func TestManyNamesAreBounded(t *testing.T) {
	j, n := startJoin(t, api.Endpoint{})
	router := n.host("s1", 1, 7)
	n.set(aSwitch("s1", 1))
	for i := range 1000 {
		say(t, router, wire.Hello{Name: strings.Repeat("x", i%200+1), Port: "p"})
	}
	n.call(func() {
		if got := len(j.links(j.switches["s1"])); got != agent.MaxNeighbours {
			t.Errorf("%d neighbours", got)
		}
	})
}

func dial(t *testing.T, j *join, host *userstack.Stack, to controller.Switch) *userstack.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := host.DialTCP(ctx, "eth0", netip.AddrPortFrom(to.LinkLocal, j.relay))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

func TestRelays(t *testing.T) {
	j, n := startJoin(t, newEchoing(t).endpoint())
	s := aSwitch("s1", 1)
	n.set(s)
	said := strings.Repeat("0123456789", 30_000)
	var all sync.WaitGroup
	for i := range byte(2) {
		host := n.host("s1", ofp.Port(1+i), i)
		all.Go(func() {
			c := dial(t, j, host, s)
			all.Go(func() { io.WriteString(c, said); c.CloseWrite() })
			if back, err := io.ReadAll(c); err != nil || string(back) != said {
				t.Errorf("%d bytes came back, %v", len(back), err)
			}
		})
	}
	all.Wait()
}

// TestRelayWithoutController resets, so that the host tries again.
func TestRelayWithoutController(t *testing.T) {
	e := newEchoing(t)
	e.Close()
	j, n := startJoin(t, e.endpoint())
	s := aSwitch("s1", 1)
	n.set(s)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := n.host("s1", 1, 1).DialTCP(ctx, "eth0", netip.AddrPortFrom(s.LinkLocal, j.relay))
	if err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		_, err = io.ReadAll(c)
	}
	if err == nil || ctx.Err() != nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("not reset: %v", err)
	}
}

// TestConnectionsOutliveTheSwitch: a switch that is away for a while, or whose cable is, loses no connection;
// one that does not come back is forgotten.
func TestConnectionsOutliveTheSwitch(t *testing.T) {
	j, n := startJoin(t, newEchoing(t).endpoint())
	s := aSwitch("s1", 1)
	n.set(s)
	c := dial(t, j, n.host("s1", 1, 1), s)
	echo := func() {
		t.Helper()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	echo()
	s.Up = false
	n.set(s)
	n.call(n.tick)
	s.Up = true
	s.Ports = []controller.Port{{Name: "p1", Number: 1}}
	n.set(s)
	s.Ports = []controller.Port{{Name: "p1", Number: 1, Up: true}} // the module has the others
	n.set(s)
	echo()
	s.Up = false
	n.set(s)
	for range keepTicks + 1 {
		n.call(n.tick)
	}
	n.call(func() {
		if len(j.switches) != 0 {
			t.Error("a switch that is gone is kept")
		}
	})
}

func TestJoinLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		j, n := startJoin(t, newEchoing(t).endpoint())
		s := aSwitch("s1", 1)
		n.set(s)
		c := dial(t, j, n.host("s1", 1, 1), s)
		j.Close()
		if _, err := io.ReadAll(c); err == nil {
			t.Error("not reset")
		}
		n.set(aSwitch("s2", 2))
		n.call(n.tick)
	})
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			b := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
		}
	}
}
