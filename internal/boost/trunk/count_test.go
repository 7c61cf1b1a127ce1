package trunk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/link"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// decides has a trunk take a decision, after which no other one comes.
func decides(t *Trunk, d tune.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	only(t).shaping.at = time.Now().Add(time.Hour)
	only(t).decide(d)
}

// carries is by which connections a trunk carries chunks.
func carries(t *Trunk) (numbers string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range connectionID(20) {
		if c := t.conns[id]; c != nil && !c.rests {
			numbers += fmt.Sprint(id, " ")
		}
	}
	return numbers
}

func rethinks(t *Trunk) bool {
	select {
	case <-only(t).Rethinks():
		return true
	default:
		return false
	}
}

// Each end uses as many connections as it has found to be worth it, whatever the other one does, and goes on by the next where
// one dies. So does an end whose number is an operator's.
func TestEachEndUsesAsManyConnectionsAsItWants(t *testing.T) {
	r := newRig(t, 4, func(c *Config) {
		if c.Shape.First = 2; c.Dials {
			c.Shape = tune.Settings{First: 1, Most: 8}
		}
	})
	if near, far := carries(r.near), carries(r.far); near != "1 " || far != "1 2 " || only(r.near).Wants() != 1 || only(r.far).Wants() != 2 {
		t.Errorf("one end that begins with one uses %s, and wants %d; one of a fixed number uses %s, and wants %d", near, only(r.near).Wants(), far, only(r.far).Wants())
	}
	decides(r.near, tune.Decision{Connections: 3})
	if got := carries(r.near); got != "1 2 3 " || only(r.near).Wants() != 3 || !rethinks(r.near) {
		t.Errorf("it wants %d, and uses %s", only(r.near).Wants(), got)
	}
	decides(r.near, tune.Decision{Connections: 3, Cap: 1e9})
	if rethinks(r.near) {
		t.Error("it tells of a number that is the same")
	}
	decides(r.far, tune.Decision{Connections: 1, Beside: true})
	if got := carries(r.far); got != "1 " || only(r.far).Wants() != 2 || rethinks(r.far) {
		t.Errorf("beside others a fixed number is %d, and %s are used", only(r.far).Wants(), got)
	}
	client, server := r.dial()
	defer client.Close()
	defer server.Close()
	sent := make(chan [32]byte, 1)
	go func() { sent <- send(t, client, 4<<20, 1) }()
	r.cut(1)
	n, sum, err := receive(server)
	if n != 4<<20 || err != nil || sum != <-sent {
		t.Errorf("%d bytes have arrived: %v", n, err)
	}
	if got := carries(r.near); got != "2 3 4 " {
		t.Errorf("the first has died: %s are used", got)
	}
}

// Connections retire, come and die under streams both ways: all bytes arrive, and nobody blames anybody.
func TestConnectionsRetireUnderAStream(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for _, strategy := range stripe.Strategies {
		t.Run(strategy, func(t *testing.T) {
			r := newRig(t, 4, func(c *Config) { c.Strategy, _ = stripe.StrategyNamed(strategy) })
			client, server := r.dial()
			const bytes = 16 << 20
			want, back := make(chan [32]byte, 2), make(chan [32]byte, 1)
			go func() { want <- send(t, client, bytes, 3) }()
			go func() { want <- send(t, server, bytes, 3) }()
			go func() {
				_, sum, err := receive(client)
				if err != nil {
					t.Errorf("the client: %v", err)
				}
				back <- sum
			}()
			got, total, at := sha256.New(), 0, 0
			for b := make([]byte, 1<<20); ; {
				n, err := server.Read(b)
				got.Write(b[:n])
				if total += n; total/(2<<20) > at {
					at = total / (2 << 20)
					r.retire(at)
				}
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("after %d bytes: %v", total, err)
				}
			}
			if sum := <-want; [32]byte(got.Sum(nil)) != sum || <-back != sum || <-want != sum {
				t.Errorf("%d bytes have arrived at the server, or others, or others at the client", total)
			}
			only(r.near).Retire(1)
			until(t, func() error { return is("connections", r.far.Connections(), 1) })
			server.Close()
			client.Close()
			r.isEmpty(1)
			select {
			case err := <-r.broken:
				t.Errorf("one agent blames the other: %v", err)
			default:
			}
		})
	}
}

// retire has the near trunk keep one to three of four connections, and then some come; each third time one that stays dies.
func (r *rig) retire(turn int) {
	keep := 1 + turn%3
	only(r.near).Retire(keep)
	until(r.t, func() error { return is("connections", r.far.Connections(), keep) })
	for number := range r.live {
		r.near.mu.Lock()
		c := r.near.conns[connectionID(number)]
		stays := c != nil && !c.retires
		r.near.mu.Unlock()
		if !stays {
			delete(r.live, number)
		}
	}
	for range 4 - keep {
		r.connect()
	}
	if turn%3 == 0 {
		for number := range r.live {
			r.cut(number)
			break
		}
		r.connect()
	}
	for _, t := range []*Trunk{r.near, r.far} { // one that dies is counted until that is noticed
		until(r.t, func() error { return is("connections", t.Connections(), 4) })
	}
}

// lone is a connection of the near trunk whose other end is the test's.
func (r *rig) lone(number uint64) (*net.TCPConn, *link.Reader, *link.Writer) {
	a, b := pair(r.t)
	c := newConnection(only(r.near), a, number, r.secret)
	if err := r.near.add(c, r.secret); err != nil {
		r.t.Fatal(err)
	}
	r.serving.Go(func() { c.serve() })
	b.SetDeadline(time.Now().Add(within))
	return b, link.NewReader(b, frame.Sealed, seal.NewOpener(frame.Sealed, r.secret, number, seal.FromDialer)),
		link.NewWriter(b, seal.NewSealer(frame.Sealed, r.secret, number, seal.ToDialer))
}

// A connection that retires ends between two frames, and what the other agent says on it until it has seen that is heard. It
// counts no more, and nothing new goes out on it.
func TestAConnectionThatRetiresIsHeardToItsEnd(t *testing.T) {
	r := newRig(t, 1)
	b, in, out := r.lone(1000)
	defer b.Close()
	if n := r.near.Connections(); n != 2 {
		t.Fatalf("%d connections", n)
	}
	only(r.near).Retire(1)
	if n := r.near.Connections(); n != 1 {
		t.Errorf("%d connections beside one that retires", n)
	}
	if r.near.collect(r.near.connection(1000), &batch{}) {
		t.Error("something goes out on it")
	}
	for {
		_, _, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it does not end between two frames: %v", err)
		}
	}
	if err := errors.Join(out.Put(frame.Chunk(1, 0, 4), []byte("data")), out.Flush()); err != nil { // of no session: whoever hears it says so
		t.Fatal(err)
	}
	select {
	case err := <-r.broken:
		t.Log(err)
	case <-time.After(within):
		t.Error("nobody hears what comes behind its FIN")
	}
}

// Where the best connection retires, or dies, nothing small waits for it: the others are not late any more.
func TestNoConnectionIsLateBesideOneThatRetires(t *testing.T) {
	for _, dies := range []bool{false, true} {
		r := newRig(t, 1)
		b, _, _ := r.lone(1000)
		r.near.mu.Lock()
		for id, c := range r.near.conns {
			if c.rtt = 100 * time.Millisecond; id == 1000 {
				c.rtt = 10 * time.Millisecond
			}
		}
		r.near.compare()
		before := r.near.lates()
		r.near.mu.Unlock()
		if dies {
			r.near.remove(r.near.connection(1000))
		} else {
			only(r.near).Retire(1)
		}
		r.near.mu.Lock()
		after := r.near.lates()
		r.near.mu.Unlock()
		if b.Close(); before != 1 || after != 0 {
			t.Errorf("it dies %v: %d are late before, %d then; want 1 and 0", dies, before, after)
		}
	}
}

// lates is how many connections take much longer than the best one.
func (t *Trunk) lates() (connections int) {
	for _, c := range t.conns {
		if c.late {
			connections++
		}
	}
	return connections
}

// An agent that does not end its half of a connection that retires keeps it for no longer than one may be silent.
func TestAnAgentThatKeepsARetiredConnectionIsNotWaitedFor(t *testing.T) {
	safety.Test(t, safety.Door)
	r := newRig(t, 1)
	b, _, _ := r.lone(1000)
	defer b.Close()
	only(r.near).Retire(1)
	until(t, func() error {
		if r.near.connection(1000) != nil {
			return errors.New("it is there still")
		}
		return nil
	})
	if n := r.near.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// connection is that of a number, nil without one.
func (t *Trunk) connection(number connectionID) *connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conns[number]
}

// Where the file says CUBIC no connection begins or goes on with BBR, whatever the kernel has.
func TestAControlThatIsNotAllowedIsNotUsed(t *testing.T) {
	r := newRig(t, 2, func(c *Config) { c.Control = "cubic" })
	decides(r.near, only(r.near).shaping.tuner.Step(tune.Measure{Now: time.Now(), Length: time.Second, RTT: time.Second, MinRTT: time.Second, Rate: 1e6, Flows: 2, Bound: true}))
	r.connect()
	for number, c := range r.live {
		if err := onSocket(c[0], func(fd int) error {
			if got := controlOf(fd); got == bbr {
				t.Errorf("connection %d uses %s", number, got)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// The one connection that carries answers nothing: another one carries in its place, what was on its way goes out there, and it is
// the first to end where fewer are wanted. Once it answers all is as before.
func TestAnotherConnectionCarriesForOneThatIsDoubted(t *testing.T) {
	r := newRig(t, 4, func(c *Config) { c.Shape.First = 1 })
	n := r.near
	doubt := func(timeouts uint8, numbers ...connectionID) {
		for _, number := range numbers {
			n.conns[number].timeouts = timeouts
		}
		n.compare()
	}
	n.mu.Lock()
	if err := n.sender.Open(2, 0, 1<<20); err != nil { // of a session that nobody else knows
		t.Error(err)
	}
	n.sender.Push(2, stripe.Chunk{Length: 1000})
	now := time.Now()
	if f, ok := n.sender.Next(now, 1); !ok || f.Length != 1000 {
		t.Errorf("on the one that carries goes %+v", f)
	}
	doubt(doubtful, 1)
	if f, ok := n.sender.Next(now, 2); !ok || f.Length != 1000 || f.Offset != 0 {
		t.Errorf("what was on the one that is doubted does not go out on the next one: %+v (it rests: %v)", f, n.conns[2].rests)
	}
	n.sender.Close(2)
	n.sender.Freed() // its slot is not one of the trunk's
	n.mu.Unlock()
	if got := carries(n); got != "2 " {
		t.Errorf("one is doubted: %s carry", got)
	}
	n.mu.Lock()
	doubt(doubtful, 1, 2)
	n.mu.Unlock()
	if got := carries(n); got != "3 " {
		t.Errorf("two are doubted: %s carry", got)
	}
	n.mu.Lock()
	doubt(doubtful, 1, 2, 3, 4)
	n.mu.Unlock()
	if got := carries(n); got != "1 " {
		t.Errorf("none answers: %s carry", got)
	}
	n.mu.Lock()
	doubt(0, 1, 2, 3, 4)
	n.mu.Unlock()
	if got := carries(n); got != "1 " {
		t.Errorf("all answer: %s carry", got)
	}
	n.mu.Lock()
	doubt(doubtful, 1)
	n.mu.Unlock()
	only(n).Retire(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	for number, c := range n.conns {
		if want := number != 2; c.retires != want {
			t.Errorf("the first is doubted, and one stays: connection %d retires %v, want %v", number, c.retires, want)
		}
	}
}

// What is small and went out on a connection that is doubted is said again by others before that ends, and whoever has heard it
// already takes it for what it is.
func TestWhatIsSmallIsSaidAgainOfAConnectionThatIsDoubted(t *testing.T) {
	r := newRig(t, 2)
	client, server := r.dial()
	for _, n := range []*Trunk{r.near, r.far} {
		n.mu.Lock()
		for _, s := range n.sessions {
			if s.on[frame.TypeOpened] = 1; s.mine {
				s.on[frame.TypeOpen] = 1
			}
		}
		for said := true; said; { // all STATE that waits is on its way
			_, said = n.receiver.Next(time.Now())
		}
		n.unsaid = unsaid{}
		n.conns[1].timeouts = doubtful
		n.compare()
		opens, openeds := 0, 0
		for _, c := range n.unsaid.list {
			switch c.typ {
			case frame.TypeOpen:
				opens++
			case frame.TypeOpened:
				openeds++
			}
		}
		want := 0
		if n == r.near {
			want = 1
		}
		if opens != want || openeds != 1 {
			t.Errorf("%d OPEN and %d OPENED are said again, want %d and 1 (near: %v)", opens, openeds, want, n == r.near)
		}
		if _, said := n.receiver.Next(time.Now()); !said {
			t.Errorf("no STATE is said again (near: %v)", n == r.near)
		}
		n.receiver.Repeat()
		n.changed()
		n.mu.Unlock()
	}
	sent := make(chan [32]byte, 2)
	go func() { sent <- send(t, client, 1<<20, 1) }()
	n, sum, err := receive(server)
	if n != 1<<20 || err != nil || sum != <-sent {
		t.Errorf("%d bytes have arrived: %v", n, err)
	}
	server.Close()
	receive(client)
	client.Close()
	r.isEmpty(1)
	select {
	case err := <-r.broken:
		t.Errorf("one agent blames the other: %v", err)
	default:
	}
}
