package peering

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/boost/door"
	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// within is how long a test waits for what has to happen.
const within = 30 * time.Second

// A called is an agent that a dialer keeps a trunk with, and whose control connection is the test's.
type called struct {
	t     *testing.T
	trunk *trunk.Trunk
	near  *trunk.Trunk
	says  chan frame.Header // goes out on the control connection
	hears chan frame.Header // came on it, answers left out
	data  chan net.Conn     // which have begun
	// failed is what each attempt to begin a control connection was told of those before.
	failed chan int

	way way // between the two

	mu     sync.Mutex
	secret seal.Secret
	ready  bool
}

// A way passes connections on, until it is told to keep the ends of their streams.
type way struct {
	mu    sync.Mutex
	all   []net.Conn // of the agent that dials, in their order: the first is the control connection
	keeps bool
	ended chan net.Conn // on which the agent that dials has said its FIN, from then on
}

// between is the other end of a connection to somebody, by this way.
func (w *way) between(to string) (*net.TCPConn, error) {
	far, err := net.Dial("tcp", to)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	own, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	near, err := l.Accept()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.all = append(w.all, near)
	w.mu.Unlock()
	go func() { // until both ends are closed
		io.Copy(far, near)
		w.mu.Lock()
		keeps := w.keeps
		w.mu.Unlock()
		if keeps {
			w.ended <- near
		} else {
			far.(*net.TCPConn).CloseWrite()
		}
	}()
	go func() { io.Copy(near, far); near.Close(); far.Close() }()
	return own.(*net.TCPConn), nil
}

// keep has ends of streams not arrived from now on.
func (w *way) keep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keeps = true
}

func newTrunk(t *testing.T, c trunk.Config) *trunk.Trunk {
	t.Helper()
	for _, m := range []**memory.Mapping{&c.Send, &c.Receive} {
		var err error
		if *m, err = memory.Map(stripe.MaxChunk); err != nil {
			t.Fatal(err)
		}
	}
	c.Protection, c.Patience, c.Paths = frame.Sealed, within, []trunk.Way{{}}
	c.Strategy, _ = stripe.StrategyNamed("pull")
	made := trunk.New(c)
	t.Cleanup(made.Close)
	return made
}

// call has a dialer that wants one connection, and may have so many, keep the trunk.
func call(t *testing.T, most int) *called {
	a := &called{t: t, says: make(chan frame.Header), hears: make(chan frame.Header, 1000), data: make(chan net.Conn, 1000), failed: make(chan int, 1000), way: way{ended: make(chan net.Conn, 1000)}}
	a.trunk = newTrunk(t, trunk.Config{})
	a.near = newTrunk(t, trunk.Config{Dials: true, Shape: tune.Settings{First: 1, Most: most}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { end(); all.Wait() })
	cert := certificate(t)
	all.Go(func() {
		door.Serve(ctx, l, door.Config{
			TLS: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}, Known: func(netip.Addr) bool { return true },
			Secret: func(uint64, net.Conn) (seal.Secret, bool) { a.mu.Lock(); defer a.mu.Unlock(); return a.secret, a.ready },
			Control: func(c *tls.Conn) {
				stop := context.AfterFunc(ctx, func() { c.Close() })
				defer stop()
				a.control(c)
			},
			Data:  a.serve,
			Count: func(door.Reason) {},
		})
	})
	d := Dialer{
		Config: Config{Path: a.near.Path(trunk.Pair{}), Number: 1, Incarnation: 1, Protection: frame.Sealed, Silence: within}, Connections: most, Lingers: time.Nanosecond, Numbers: &atomic.Uint64{},
		TLS: func(failed int) *tls.Config {
			a.failed <- failed
			return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} // #nosec G402 -- who is who is not what is tried here
		},
		TCP:    func(context.Context) (*net.TCPConn, error) { return a.way.between(l.Addr().String()) },
		Failed: func(error) {},
	}
	all.Go(func() { d.Run(ctx) })
	return a
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	in := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, in, in, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// control is the other agent as the protocol has it, but for what it wants, which the test says.
func (a *called) control(c *tls.Conn) {
	defer c.Close()
	h, err := Greet(c)
	if err != nil {
		a.t.Error(err)
		return
	}
	secret, err := seal.Export(c.ConnectionState())
	if err != nil {
		a.t.Error(err)
		return
	}
	a.mu.Lock()
	a.secret, a.ready = secret, true
	a.mu.Unlock()
	down, err := a.trunk.Path(trunk.Pair{}).Up(secret, h.Incarnation, versions.Trunk().To)
	if err != nil {
		a.t.Error(err)
		return
	}
	defer func() { down(io.EOF) }()
	own := a.config()
	if err := say(c, own.hello(frame.Control, 0, versions.Trunk()), nil, 0); err != nil {
		a.t.Error(err)
		return
	}
	heard := make(chan frame.Header)
	go func() { // until the connection ends
		defer close(heard)
		for b := make([]byte, frame.HeaderLen); ; {
			if _, err := io.ReadFull(c, b); err != nil {
				return
			}
			h, err := frame.ParseHeader(b)
			if err != nil {
				a.t.Error(err)
				return
			}
			heard <- h
		}
	}()
	for {
		var out frame.Header
		select {
		case out = <-a.says:
		case h, ok := <-heard:
			if !ok {
				return
			}
			if a.hears <- h; h.IsAnswer() {
				continue
			}
			out = h.Answered()
		}
		if _, err := c.Write(out.Append(nil)); err != nil {
			return
		}
	}
}

func (a *called) config() *Config {
	return &Config{Path: a.trunk.Path(trunk.Pair{}), Number: 1, Incarnation: 1, Protection: frame.Sealed, Silence: within}
}

func (a *called) serve(c net.Conn, h frame.Hello) {
	a.mu.Lock()
	secret := a.secret
	a.mu.Unlock()
	a.data <- c
	Data(c.(*net.TCPConn), h, secret, *a.config())
}

// wants says how many connections are wanted, in whatever words, and waits until that was heard.
func (a *called) wants(connections uint64) {
	a.t.Helper()
	h := frame.Want(1)
	h.Offset = connections
	a.says <- h
	for end := time.After(within); ; {
		select {
		case h := <-a.hears:
			if h.IsAnswer() && h.Offset == connections {
				return
			}
		case <-end:
			a.t.Fatal("nobody answers a PING")
		}
	}
}

// has waits until both ends have so many connections.
func (a *called) has(connections int) {
	a.t.Helper()
	for end := time.Now().Add(within); ; {
		near, far := a.near.Connections(), a.trunk.Connections()
		if near == connections && far == connections {
			return
		}
		if time.Now().After(end) {
			a.t.Fatalf("%d connections at the agent that dials, %d at the other one, want %d", near, far, connections)
		}
	}
}

// The agent that dials opens as many connections as the other one asks for, within what its own file allows, and ends those
// that nobody wants any more.
func TestAnAgentThatAsksForConnectionsGetsThem(t *testing.T) {
	a := call(t, 6)
	a.has(1)
	for _, n := range []int{3, 6, 2, 4, 1} {
		a.wants(uint64(n))
		a.has(n)
	}
	a.wants(7)
	a.has(6)
}

// What nobody may ask for changes nothing, and ends nothing.
func TestAnAgentThatAsksForTooManyConnectionsIsNotHeard(t *testing.T) {
	safety.Test(t, safety.Door)
	a := call(t, 5)
	a.has(1)
	for _, n := range []uint64{1_000_000, frame.MaxConnections + 1, 1 << 32, 1<<64 - 1, 0} {
		a.wants(n)
	}
	a.wants(2) // heard behind them, on the same control connection
	a.has(2)
	if n := len(a.data); n != 2 {
		t.Errorf("%d connections have begun, of 2", n)
	}
}

// Who asks for many, few and many again, as often as he can, has no more at a time than the file allows.
func TestAnAgentThatChangesItsMindHasNoMoreConnections(t *testing.T) {
	safety.Test(t, safety.Door)
	a := call(t, 3)
	a.has(1)
	for i := range 200 {
		a.wants(uint64(1 + 63*(i%2)))
		if n := a.trunk.Connections(); n > 3 { // one that ends has ended there before it has here
			t.Fatalf("%d connections", n)
		}
	}
	a.wants(64)
	a.has(3)
}

// Connections that die are made again, as many as are wanted, also while they are being wanted less.
func TestConnectionsThatDieAreMadeAgain(t *testing.T) {
	a := call(t, 8)
	a.wants(4)
	a.has(4)
	for range 4 {
		(<-a.data).Close()
	}
	a.has(4)
	a.wants(2)
	for range 2 {
		(<-a.data).Close()
	}
	a.has(2)
}

// The one connection that is kept dies while others are about to end, which the other agent does not answer: another one is made
// at once, not when those are given up for silent.
func TestAConnectionThatDiesWhileOthersRetireIsMadeAgain(t *testing.T) {
	a := call(t, 4)
	a.wants(4)
	a.has(4)
	for range 4 {
		<-a.data
	}
	a.way.keep()
	a.wants(1)
	retire := map[net.Conn]bool{}
	for range 3 {
		select {
		case c := <-a.way.ended:
			retire[c] = true
		case <-time.After(within):
			t.Fatalf("%d of 3 connections retire", len(retire))
		}
	}
	a.way.mu.Lock()
	for _, c := range a.way.all[1:] {
		if !retire[c] {
			c.Close()
		}
	}
	a.way.mu.Unlock()
	select {
	case <-a.data:
	case <-time.After(2 * time.Second): // they are silent for 3 s
		t.Error("none is made: the two agents have no connection that takes anything")
	}
}

// One that is wanted no more and pauses is no reason for the last that works to have no next one.
func TestAKeeperThatPausesIsNotCounted(t *testing.T) {
	k := &keepers{want: 1, running: 3, idle: 1}
	if k.needed(false) {
		t.Error("of two that are at work and one that pauses, all stay, where one is wanted")
	}
	if k.running != 2 || !k.needed(false) {
		t.Errorf("the one that has a connection ends, and the one that pauses stays: %+v", k)
	}
	if k.idle--; k.needed(false) {
		t.Error("the one that has paused stays beside the one that works")
	}
}

// An agent of before this never says what it wants: there are as many connections as it was used to, within what the file of
// the one that dials allows, and its PINGs are answered as ever.
func TestAnAgentThatKnowsNoWishIsAnsweredAsEver(t *testing.T) {
	for most, want := range map[int]int{2: 2, 4: 4, 6: 4} {
		a := call(t, most)
		a.has(1)
		a.pings()
		a.has(want)
	}
}

// pings says a PING of nothing but its number, and waits for the answer.
func (a *called) pings() {
	a.t.Helper()
	a.says <- frame.Ping(7)
	for h := range a.hears {
		if h.IsAnswer() {
			if h != frame.Ping(7).Answered() {
				a.t.Errorf("%+v", h)
			}
			return
		}
		if _, ok := h.Wanted(); ok {
			a.t.Error("the agent that dials says what it wants: it opens that itself")
		}
	}
}

// An agent that is called says in each PING how many connections it wants, at once; another one takes it for any PING.
func TestTheAgentThatIsCalledSaysWhatItWants(t *testing.T) {
	far := newTrunk(t, trunk.Config{Shape: tune.Settings{First: 3}})
	a, b := net.Pipe()
	defer a.Close()
	b.SetDeadline(time.Now().Add(within))
	soon, ended := make(chan struct{}), make(chan error, 1)
	w := &watcher{conn: a, silence: within, soon: soon, ping: (&Config{Path: far.Path(trunk.Pair{})}).wish}
	go func() { ended <- w.watch(t.Context()) }()
	for range 3 {
		var in [frame.HeaderLen]byte
		if _, err := io.ReadFull(b, in[:]); err != nil {
			t.Fatal(err)
		}
		h, err := frame.ParseHeader(in[:])
		if n, ok := h.Wanted(); err != nil || h.Type != frame.TypePing || n != 3 || !ok {
			t.Fatalf("%+v, %v", h, err)
		}
		if _, err := b.Write(h.Answered().Append(nil)); err != nil {
			t.Fatal(err)
		}
		soon <- struct{}{}
	}
	b.Close()
	<-ended
}

// Control connections that come to nothing are counted until one stands.
func TestAttemptsInVainAreCounted(t *testing.T) {
	a := call(t, 1)
	a.has(1)
	a.way.mu.Lock()
	control := a.way.all[0]
	a.way.mu.Unlock()
	control.Close()
	for i, want := range []int{0, 0} { // the first one, and that after one that stood
		select {
		case got := <-a.failed:
			if got != want {
				t.Errorf("attempt %d is told of %d in vain, want %d", i, got, want)
			}
		case <-time.After(within):
			t.Fatalf("there is no attempt %d", i)
		}
	}
}
