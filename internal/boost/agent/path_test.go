package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/peering"
)

// A path is what lies between two agents: it can be cut, and stopped.
type path struct {
	mu      sync.Mutex
	conns   []net.Conn
	stopped chan struct{} // nil: it carries what comes; closed when it does again
	gone    bool
}

// dial connects to an agent over the path.
func (p *path) dial(ctx context.Context, from netip.Addr, to netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	far, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	near, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	middle, err := l.Accept()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil, errors.Join(errors.New("the path is gone"), far.Close(), middle.Close(), near.Close())
	}
	p.conns = append(p.conns, far, middle)
	go p.carry(far, middle)
	go p.carry(middle, far)
	return near.(*net.TCPConn), nil
}

func (p *path) carry(to, from net.Conn) {
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		wait := p.stopped
		p.mu.Unlock()
		if wait != nil {
			<-wait
		}
		if _, bad := to.Write(b[:n]); err != nil || bad != nil {
			return
		}
	}
}

func (p *path) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// lose cuts the path for good.
func (p *path) lose() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.cut()
}

// stop has the path carry nothing until the function that it returns is called.
func (p *path) stop() (again func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := make(chan struct{})
	p.stopped = wait
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stopped = nil
		close(wait)
	}
}

// stream is a boosted connection under which things happen: more bytes than fit anywhere go from the client to the
// server, and at each of some places among them the function is called.
func stream(t *testing.T, x, y *site, times int, happens func()) {
	t.Helper()
	syn, what := x.offer(t, 5)
	if what != "accepted" {
		t.Fatalf("the connection was %s", what)
	}
	there, err := y.ends.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	c := <-syn.client
	defer c.Close()
	part := make([]byte, 8<<20) // twice the memory of a trunk
	for i := range part {
		part[i] = byte(i ^ i>>8 ^ i>>16)
	}
	want, got := sha256.New(), sha256.New()
	sent := make(chan error, 1)
	go func() {
		var err error
		for range times {
			want.Write(part)
			if _, err = c.Write(part); err != nil {
				break
			}
		}
		c.CloseWrite()
		sent <- err
	}()
	there.SetReadDeadline(time.Now().Add(within))
	for range times {
		if _, err := io.CopyN(got, there, int64(len(part)/2)); err != nil {
			t.Fatalf("half of a part: %v", err)
		}
		happens()
		there.SetReadDeadline(time.Now().Add(within))
		if _, err := io.CopyN(got, there, int64(len(part)/2)); err != nil {
			t.Fatalf("the other half of a part: %v", err)
		}
	}
	if n, err := io.Copy(io.Discard, there); n != 0 || err != nil {
		t.Errorf("%d bytes too many, %v", n, err)
	}
	if err := <-sent; err != nil {
		t.Errorf("the client: %v", err)
	}
	if string(want.Sum(nil)) != string(got.Sum(nil)) {
		t.Error("what came is not what was sent")
	}
}

// All connections between two agents end at once, the control connection too: the trunk is there again under the stream.
func TestATrunkThatIsCutComesBackUnderItsStreams(t *testing.T) {
	var p path
	x, y := twoAgents(t, func(c *Config) { c.Dial = p.dial })
	stream(t, x, y, 3, p.cut)
}

// The path carries nothing for longer than an agent may be silent. Both notice; nobody is reset.
func TestAnAgentThatIsSilentIsNoticedAndHeardAgain(t *testing.T) {
	var p path
	x, y := twoAgents(t, func(c *Config) { c.Dial, c.Silence = p.dial, time.Second })
	stream(t, x, y, 1, func() {
		again := p.stop()
		await(t, x, peering.ErrSilent)
		await(t, y, peering.ErrSilent)
		again()
	})
}

// Of two agents the one that begins the trunk opens what the one wants that wants more, as far as its own file goes.
func TestTheOtherAgentHasTheConnectionsThatItWants(t *testing.T) {
	for what, c := range map[string]struct{ dials, most, open, called, want int }{
		"the one that is called wants more":          {1, 8, 0, 3, 3},
		"it wants more than there may be":            {1, 2, 0, 6, 2},
		"the number of the other one is fixed":       {2, 0, 0, 6, 2},
		"the one that begins the trunk wants more":   {4, 8, 0, 1, 4},
		"it has its own number, and lets others ask": {2, 0, 8, 6, 6},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNetwork(t)
			x := n.agent("x", func(a *Config) { a.Connections, a.Most, a.Open = c.dials, c.most, c.open })
			y := n.agent("y", func(a *Config) { a.Connections = c.called })
			lane := Lane{Number: 5, Client: clients, Server: servers, Port: 80, Near: []string{"x"}, Far: []string{"y"}}
			y.tell(t, []Peer{x.at}, lane)
			x.tell(t, []Peer{y.at}, lane)
			for _, s := range []*site{x, y} {
				for end := time.Now().Add(within); ; {
					for _, status := range s.Trunks() {
						if status.Connections == c.want {
							end = time.Time{}
						}
					}
					if end.IsZero() {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("%s has %+v, want %d", s.Name, s.Trunks(), c.want)
					}
				}
			}
			stream(t, x, y, 1, func() {})
			if got := x.Trunks()["y"].Connections; got > max(c.dials, c.most, c.open) {
				t.Errorf("%d connections", got)
			}
		})
	}
}
