package trunk

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/tests/safety"
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
			r.t.Fatalf("sessions stay: %d at the near agent, %d at the far one", r.near.Sessions(), r.far.Sessions())
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

func TestBothStreamsArriveWhole(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, connections := range []int{1, 4} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			r := newRig(t, connections)
			client, server := r.dial()
			const bytes = 20 << 20 // more than all memory
			want := make(chan [32]byte, 2)
			go func() { want <- send(t, client, bytes, 1) }()
			n, got, err := receive(server)
			if err != nil || n != bytes || got != <-want {
				t.Errorf("the server got %d bytes, %v", n, err)
			}
			go func() { want <- send(t, server, bytes/2, 2) }()
			if n, got, err = receive(client); err != nil || n != bytes/2 || got != <-want {
				t.Errorf("the client got %d bytes, %v", n, err)
			}
			client.Close()
			server.Close()
			r.isEmpty(1)
		})
	}
}

func TestAMessageIsNotHeldBackByOthers(t *testing.T) {
	r := newRig(t, 2)
	var echoes sync.WaitGroup
	for range 50 {
		client, server := r.dial()
		echoes.Go(func() {
			io.Copy(server, server)
			server.CloseWrite()
			server.Close()
		})
		echoes.Go(func() {
			defer client.Close()
			b := make([]byte, 100)
			for i := range 100 {
				client.Write(bytes.Repeat([]byte{byte(i)}, 100))
				if _, err := io.ReadFull(client, b); err != nil || b[99] != byte(i) {
					t.Errorf("answer %d: %v", i, err)
					return
				}
			}
			client.CloseWrite()
			io.Copy(io.Discard, client)
		})
	}
	echoes.Wait()
	r.isEmpty(50)
}

// Connections of the trunk are cut and made while bytes are under way; at times there is none.
func TestConnectionsOfTheTrunkDieUnderAStream(t *testing.T) {
	r := newRig(t, 2)
	client, server := r.dial()
	const bytes = 30 << 20
	want := make(chan [32]byte, 1)
	go func() { want <- send(t, client, bytes, 3) }()
	got := sha256.New()
	b := make([]byte, 1<<20)
	total, at := 0, 0
	for {
		n, err := server.Read(b)
		got.Write(b[:n])
		if total += n; total/(2<<20) > at { // each two megabytes
			at = total / (2 << 20)
			for number := range r.live {
				r.cut(number)
				if at%4 != 0 {
					break // one; each fourth time all
				}
			}
			r.connect()
			r.connect()
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("after %d bytes: %v", total, err)
			}
			break
		}
	}
	if w := <-want; total != bytes || [32]byte(got.Sum(nil)) != w {
		t.Errorf("the server got %d of %d bytes, or others", total, bytes)
	}
	server.Close()
	client.Close()
	r.isEmpty(1)
	select {
	case err := <-r.broken:
		t.Errorf("one agent blames the other: %v", err)
	default:
	}
}

func TestAResetOfOneEndIsAResetOfTheOther(t *testing.T) {
	for _, first := range []string{"client", "server"} {
		t.Run(first, func(t *testing.T) {
			r := newRig(t, 1)
			dead, other := r.dial()
			if first == "server" {
				dead, other = other, dead
			}
			if _, err := dead.Write([]byte("before")); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 6)
			if _, err := io.ReadFull(other, b); err != nil {
				t.Fatal(err)
			}
			dead.SetLinger(0)
			dead.Close()
			if n, err := other.Read(b); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%d bytes, %v: the other end takes it for a whole stream", n, err)
			}
			other.Close()
			r.isEmpty(1)
		})
	}
}

func TestAHalfClosedStreamGoesOnTheOtherWay(t *testing.T) {
	r := newRig(t, 1)
	client, server := r.dial()
	client.CloseWrite()
	if n, _, err := receive(server); n != 0 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	for i := range 20 {
		server.Write([]byte{byte(i)})
		b := make([]byte, 1)
		if _, err := io.ReadFull(client, b); err != nil || b[0] != byte(i) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	server.Close()
	if n, _, err := receive(client); n != 0 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	client.Close()
	r.isEmpty(1)
}

// Who does not read holds up its own sender and nobody else.
func TestAReaderThatStopsStopsItsSender(t *testing.T) {
	r := newRig(t, 1)
	client, server := r.dial()
	sent := make(chan [32]byte, 1)
	const bytes = 40 << 20
	go func() { sent <- send(t, client, bytes, 4) }()
	other, there := r.dial()
	want := send(t, other, 8<<20, 5)
	if n, got, err := receive(there); err != nil || n != 8<<20 || got != want {
		t.Errorf("beside it: %d bytes, %v", n, err)
	}
	other.Close()
	there.Close()
	select {
	case <-sent:
		t.Error("40 MiB went somewhere although nobody reads them")
	default:
	}
	if n, got, err := receive(server); err != nil || n != bytes || got != <-sent {
		t.Errorf("then %d bytes, %v", n, err)
	}
	client.Close()
	server.Close()
	r.isEmpty(2)
}

func TestARefusedConnectionIsRefused(t *testing.T) {
	r := newRig(t, 2)
	r.server.Close()
	for range 10 {
		_, err := r.near.Open(t.Context(), ends)
		var refused *Refused
		if !errors.As(err, &refused) || refused.Reason != frame.RefusedByHost {
			t.Errorf("it was refused: %v", err)
		}
	}
	r.isEmpty(10)
}

func TestWhoGivesUpBeforeTheAnswerLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	r := newRig(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if s, err := r.near.Open(ctx, ends); err == nil { // the answer was as quick
			s.Abandon()
		}
	}
	r.isEmpty(10)
}

// The other agent is away for too long: its sessions are reset, not ended.
func TestSessionsOfALostAgentAreReset(t *testing.T) {
	r := newRig(t, 1)
	client, server := r.dial()
	r.near.mu.Lock()
	r.near.Patience = time.Millisecond
	r.near.mu.Unlock()
	r.down()
	r.far.Close()
	for name, c := range map[string]*net.TCPConn{"client": client, "server": server} {
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the %s got %d bytes, %v: it takes the stream for whole", name, n, err)
		}
		c.Close()
	}
	r.isEmpty(1)
}

func TestAConnectionOfAnotherSecretIsRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	r := newRig(t, 1)
	a, b := pair(t)
	defer b.Close()
	if err := only(r.near).Serve(a, 99, seal.Secret{1}, nil); !errors.Is(err, ErrStale) {
		t.Errorf("another secret: %v", err)
	}
	a, c := pair(t)
	defer c.Close()
	if err := only(r.near).Serve(a, 1, r.secret, nil); !errors.Is(err, ErrStale) {
		t.Errorf("a number for the second time: %v", err)
	}
}

// An agent that stood still hears of the next control connection and of the end of the last one in any order.
func TestTheEndOfAFormerControlConnectionTakesNothingAway(t *testing.T) {
	r := newRig(t, 0)
	former := r.down
	up(r.near, r.secret, 1)
	former()
	r.connect() // refused by a trunk that is down
	client, server := r.dial()
	defer client.Close()
	defer server.Close()
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, make([]byte, len("hello"))); err != nil {
		t.Error(err)
	}
}

// An agent that died and begins anew has no sessions. The other one resets what it had with the former, and the next
// connection is carried: what it would still say of sessions of before is a fault to who never heard of them.
func TestAnAgentThatBeginsAnewIsToldNothingOfBefore(t *testing.T) {
	safety.Test(t, safety.Flow)
	r := newRig(t, 3)
	client, server := r.dial()
	defer server.Close()
	if _, err := client.Write(make([]byte, 100<<10)); err != nil { // some of it is not acknowledged
		t.Fatal(err)
	}
	former := r.far
	r.far = r.trunk(false, nil)
	rand.Read(r.secret[:])
	up(r.near, r.secret, 2)
	up(r.far, r.secret, 1)
	r.connect()
	r.connect()
	if n, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the client got %d bytes, %v: it takes the stream for whole", n, err)
	}
	client.Close()
	next, served := r.dial()
	defer next.Close()
	defer served.Close()
	if _, err := next.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(served, make([]byte, len("hello"))); err != nil {
		t.Error(err)
	}
	former.Close()
	select {
	case err := <-r.broken:
		t.Errorf("a connection has ended by a fault: %v", err)
	default:
	}
}

// One that does not say what it has is waited for as long as one that is gone.
func TestAnAgentThatBeginsAnewAndSaysNothingIsNotWaitedForForEver(t *testing.T) {
	r := newRig(t, 0)
	up(r.near, r.secret, 2)
	waits := func(since time.Duration) bool {
		r.near.mu.Lock()
		r.near.resuming = time.Now().Add(-since)
		r.near.mu.Unlock()
		r.near.expire()
		r.near.mu.Lock()
		defer r.near.mu.Unlock()
		return r.near.resumed != nil
	}
	if !waits(0) {
		t.Error("it does not wait for the other agent's word")
	}
	if waits(within) {
		t.Error("it waits on")
	}
}

// A near agent that died and begins anew opens sessions that the far one does not take for those of before, and data
// connections neither.
func TestANearAgentThatBeginsAnewIsServedAtOnce(t *testing.T) {
	first := uint64(0)
	r := newRig(t, 2, func(c *Config) { c.Incarnation = first })
	for range 3 {
		client, server := r.dial()
		client.Close()
		server.Close()
	}
	former := r.near
	first = 1 << 40
	r.near = r.trunk(true, []func(*Config){func(c *Config) { c.Incarnation = first }})
	rand.Read(r.secret[:])
	up(r.near, r.secret, 1)
	up(r.far, r.secret, 2)
	r.connect()
	client, server := r.dial()
	defer client.Close()
	defer server.Close()
	former.Close()
}

// Data connections that nobody answers on are none: sessions are given up as without any, and new ones are refused at once.
func TestConnectionsWithoutAnAnswerDoNotCount(t *testing.T) {
	r := newRig(t, 1)
	client, server := r.dial()
	defer client.Close()
	defer server.Close()
	for number := range r.live {
		r.cut(number)
	}
	until(t, func() error { return is("connections", r.near.Connections(), 0) })
	a, b := pair(t)
	defer b.Close()
	hangs, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- only(r.near).Serve(a, 1000, r.secret, func() error { <-hangs; return errors.New("no answer") })
	}()
	until(t, func() error {
		r.near.mu.Lock()
		defer r.near.mu.Unlock()
		return is("connections without an answer", len(r.near.conns), 1)
	})
	if s := r.near.Status(); s.Up || s.Connections != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := r.near.Open(t.Context(), ends); err == nil {
		t.Error("a session is opened over it")
	}
	r.near.mu.Lock()
	if r.near.lonely.IsZero() {
		t.Error("it counts as company")
	}
	r.near.isolated(r.near.lonely.Add(r.near.Patience))
	r.near.mu.Unlock()
	if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the client's connection was not given up: %v", err)
	}
	close(hangs)
	<-served
}
