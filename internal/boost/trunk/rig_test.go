package trunk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// within is how long a test waits for what has to happen.
const within = 30 * time.Second

// A rig is two trunks, joined by TCP on loopback, between a client and a server on loopback.
type rig struct {
	t         testing.TB
	near, far *Trunk
	secret    seal.Secret
	server    net.Listener
	next      uint64
	live      map[uint64][2]*net.TCPConn
	others    map[connectionID]*net.TCPConn // of connections whose other end has no trunk
	serving   sync.WaitGroup
	ended     chan Ended
	broken    chan error
	down      func() // ends the near trunk's control connection
}

func newRig(t testing.TB, connections int, change ...func(*Config)) *rig {
	r := &rig{t: t, server: listen(t), live: map[uint64][2]*net.TCPConn{}, ended: make(chan Ended, 1000), broken: make(chan error, 10)}
	rand.Read(r.secret[:])
	r.near, r.far = r.trunk(true, change), r.trunk(false, change)
	r.down = up(r.near, r.secret, 1)
	up(r.far, r.secret, 1)
	for range connections {
		r.connect()
	}
	t.Cleanup(func() {
		r.near.Close()
		r.far.Close()
		r.serving.Wait()
	})
	return r
}

// only is the path of a trunk that has one, and up says that it has a control connection.
func only(t *Trunk) *Path { return t.paths[Pair{}] }

func up(t *Trunk, secret seal.Secret, incarnation uint64) (down func()) {
	over, err := only(t).Up(secret, incarnation, 2)
	if err != nil {
		panic(err)
	}
	return func() { over(io.EOF) }
}

// Speaks says which version of the trunk protocol the other agent speaks.
func (t *Trunk) Speaks(version uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (r *rig) trunk(dials bool, change []func(*Config)) *Trunk {
	c := Config{
		Dials: dials, Protection: frame.Sealed, Patience: within, Paths: []Way{{}},
		Send: mapping(r.t), Receive: mapping(r.t),
		Ended: func(e Ended) { r.ended <- e }, Broken: func(err error) { r.broken <- err },
	}
	c.Strategy, _ = stripe.StrategyNamed("pull")
	if !dials {
		c.Connect = func(ctx context.Context, _ frame.Open) (Attached, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "tcp", r.server.Addr().String())
			if err != nil {
				return Attached{}, &Refused{frame.RefusedByHost}
			}
			return Attached{Conn: conn.(*net.TCPConn)}, nil
		}
	}
	for _, f := range change {
		f(&c)
	}
	return New(c)
}

func mapping(t testing.TB) *memory.Mapping {
	t.Helper()
	m, err := memory.Map(16 * stripe.MaxChunk)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// connect adds a data connection to the trunk.
func (r *rig) connect() uint64 {
	a, b := pair(r.t)
	r.next++
	number := r.next
	r.live[number] = [2]*net.TCPConn{a, b}
	for t, conn := range map[*Trunk]*net.TCPConn{r.near: a, r.far: b} {
		c := newConnection(only(t), conn, number, r.secret)
		if err := t.add(c, r.secret); err != nil {
			r.t.Fatal(err)
		}
		r.serving.Go(func() { c.serve() })
	}
	return number
}

// cut ends a data connection.
func (r *rig) cut(number uint64) {
	r.live[number][0].Close()
	delete(r.live, number)
}

// pair is a connection of TCP with both its ends.
func pair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l := listen(t)
	defer l.Close()
	dialed := make(chan net.Conn, 1)
	go func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
		}
		dialed <- c
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return (<-dialed).(*net.TCPConn), c.(*net.TCPConn)
}

var ends = frame.Open{Client: netip.MustParseAddrPort("192.0.2.1:40000"), Server: netip.MustParseAddrPort("192.0.2.2:80")}

// dial is a boosted connection: the client's end, and the server's, which is accepted once the client has it.
func (r *rig) dial() (client, server *net.TCPConn) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	s, err := r.near.Open(ctx, ends)
	if err != nil {
		r.t.Fatal(err)
	}
	client, agent := pair(r.t)
	s.Attach(Attached{Conn: agent})
	c, err := r.server.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	client.SetDeadline(time.Now().Add(within))
	c.(*net.TCPConn).SetDeadline(time.Now().Add(within))
	return client, c.(*net.TCPConn)
}

// until waits until there is no error; what it says in the end fails the test.
func until(t testing.TB, ok func() error) {
	t.Helper()
	for end := time.Now().Add(within); ; {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func is(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%d %s, not %d", got, what, want)
	}
	return nil
}

// isEmpty waits until neither trunk has anything of a session any more.
func (r *rig) isEmpty(sessions int) {
	r.t.Helper()
	for range 2 * sessions {
		select {
		case <-r.ended:
		case <-time.After(within):
			r.t.Fatalf("sessions stay:\n%s%s%s", remaining("near", r.near), remaining("far", r.far), r.faults())
		}
	}
	for name, t := range map[string]*Trunk{"near": r.near, "far": r.far} {
		t.mu.Lock()
		if len(t.sessions)+len(t.unacked)+len(t.starved)+t.slots.all.Used()+len(t.slots.filled)+t.receiver.Reserved() > 0 {
			r.t.Errorf("the %s agent keeps %d sessions, %d that wait, %d bytes of slots, %d blocks", name, len(t.sessions), len(t.starved), t.slots.all.Used(), t.receiver.Reserved())
		}
		t.mu.Unlock()
	}
}

// faults are those by which connections have ended.
func (r *rig) faults() (all string) {
	for {
		select {
		case err := <-r.broken:
			all += fmt.Sprintf("a connection has ended by a fault: %v\n", err)
		default:
			return all
		}
	}
}

// remaining says where each session of an agent stands.
func remaining(agent string, t *Trunk) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: reaches the other agent over %d connections\n", agent, t.reached())
	for _, s := range t.sessions {
		fmt.Fprintf(&b, "%s: %v; read %d, written %d; whole %v, sent %v, arrived %v, finishing %v, finished %v, aborted %v, over %v, retired %v",
			agent, s, s.read, s.written, s.whole, s.sent, s.arrived, s.finishing, s.finished, s.aborted, s.over, s.retired)
		if s.end.Conn != nil {
			left, err := outstanding(s.end.Conn)
			i, fail := info(s.end.Conn)
			fmt.Fprintf(&b, "; its connection has %d to be acknowledged (%v), %+v (%v)", left, err, i, fail)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func send(t *testing.T, c *net.TCPConn, bytes int, seed byte) (sum [32]byte) {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i) ^ seed
	}
	if _, err := c.Write(b); err != nil {
		t.Errorf("write: %v", err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Errorf("FIN: %v", err)
	}
	return sha256.Sum256(b)
}

func receive(c *net.TCPConn) (n int, sum [32]byte, err error) {
	b, err := io.ReadAll(c)
	return len(b), sha256.Sum256(b), err
}
