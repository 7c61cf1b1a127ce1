package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// fakeNames serve a name on loopback, and connect to a listener in the place of who serves.
type fakeNames struct {
	listening chan *toldListener
	server    net.Listener
	refuses   bool
}

// A toldListener tells when it is closed.
type toldListener struct {
	net.Listener
	closed chan struct{}
}

func (l *toldListener) Close() error {
	defer close(l.closed)
	return l.Listener.Close()
}

func (f *fakeNames) Listen(netip.AddrPort) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	told := &toldListener{l, make(chan struct{})}
	f.listening <- told
	return told, nil
}

func (f *fakeNames) Dial(ctx context.Context, _ netip.AddrPort) (*net.TCPConn, error) {
	if f.refuses {
		return nil, &trunk.Refused{Reason: frame.RefusedByHost}
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", f.server.Addr().String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// named is the lane of a name that x serves for clients on loopback, and y brings to who serves.
var named = Lane{
	Number: 7, Client: netip.MustParsePrefix("127.0.0.0/8"), Server: netip.PrefixFrom(server.Addr(), 32), Port: 80,
	Near: []string{"x"}, Far: []string{"y"}, AtOnce: true, Named: true,
}

// namedOf is two agents that carry a name; it is not served before y is told of x.
func namedOf(t *testing.T, change func(far *fakeNames)) (x, y *site, near, far *fakeNames) {
	n := newNetwork(t)
	near, far = &fakeNames{listening: make(chan *toldListener, 10)}, &fakeNames{server: listen(t)}
	if change != nil {
		change(far)
	}
	x, y = n.agent("x", func(c *Config) { c.Names = near }), n.agent("y", func(c *Config) { c.Names = far })
	y.tell(t, []Peer{x.at}, named)
	x.tell(t, []Peer{y.at}, named)
	return x, y, near, far
}

func soon[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(within):
		t.Fatalf("%s: not in %v", what, within)
	}
	return v
}

func (l *toldListener) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(within))
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// reset connects and has to be reset. The reset may come before connect is done, which fails then: the kernel has
// accepted the client long before the agent hears of it.
func (l *toldListener) reset(t *testing.T, why string) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if errors.Is(err, unix.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(within))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%s: %d bytes, %v; want a reset", why, n, err)
	}
}

// A client of a name is brought to who serves it, by the agent at the other site; without that one the name is served no longer.
func TestANameIsServedWhileAnotherAgentIsThere(t *testing.T) {
	safety.Test(t, safety.Bytes)
	_, y, near, far := namedOf(t, nil)
	l := soon(t, "x serves the name", near.listening)
	c := l.dial(t)
	there, err := far.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.Copy(there, there); there.Close() }()
	io.WriteString(c, "there and back")
	c.CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "there and back" {
		t.Errorf("%q came back, %v", b, err)
	}
	y.Close()
	soon(t, "x serves the name no longer", l.closed)
	if len(near.listening) > 0 {
		t.Error("it is served again, and nobody is there to whom it could be carried")
	}
}

// Who serves may refuse, which the client hears late, as a reset and never as the end of a stream.
func TestAServiceThatRefusesIsAReset(t *testing.T) {
	safety.Test(t, safety.Bytes)
	_, _, near, _ := namedOf(t, func(far *fakeNames) { far.refuses = true })
	soon(t, "x serves the name", near.listening).reset(t, "y has refused")
}

// An agent that serves a name for its site brings nobody to it: the network may lead it to itself.
func TestWhoServesANameIsNotTheOtherEndOfIt(t *testing.T) {
	n := newNetwork(t)
	near, far := &fakeNames{listening: make(chan *toldListener, 10)}, &fakeNames{listening: make(chan *toldListener, 10), server: listen(t)}
	x, y := n.agent("x", func(c *Config) { c.Names = near }), n.agent("y", func(c *Config) { c.Names = far })
	back := named
	back.Number, back.Near, back.Far = 8, []string{"y"}, []string{"x"}
	y.tell(t, []Peer{x.at}, named, back)
	x.tell(t, []Peer{y.at}, named, back)
	soon(t, "x serves the name", near.listening).reset(t, "y serves the name, too")
}
