package trunk

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// heldServer has the far agent's connections to servers wait, and end as a test says.
type heldServer struct {
	asked chan struct{} // each time one is to be made
	goOn  chan error    // nil: it is made
}

func holdServer(c *Config, h *heldServer) {
	connect := c.Connect
	if connect == nil {
		return
	}
	c.Connect = func(ctx context.Context, m frame.Open) (Attached, error) {
		h.asked <- struct{}{}
		select {
		case err := <-h.goOn:
			if err != nil {
				return Attached{}, err
			}
		case <-ctx.Done():
			return Attached{}, ctx.Err()
		}
		return connect(ctx, m)
	}
}

func newHeldRig(t *testing.T, connections int, change ...func(*Config)) (*rig, *heldServer) {
	h := &heldServer{asked: make(chan struct{}, 1000), goOn: make(chan error, 1000)}
	return newRig(t, connections, append(change, func(c *Config) { holdServer(c, h) })...), h
}

// An early client has been accepted; done is what becomes of its session.
type earlyClient struct {
	client, agent *net.TCPConn
	done          chan error
	cancel        context.CancelFunc
}

func (r *rig) dialEarly() *earlyClient {
	r.t.Helper()
	e := &earlyClient{done: make(chan error, 1)}
	e.client, e.agent = pair(r.t)
	r.t.Cleanup(func() { e.client.Close(); e.agent.Close() })
	e.client.SetDeadline(time.Now().Add(within))
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	e.cancel = cancel
	r.serving.Go(func() { e.done <- r.near.OpenWith(ctx, ends, Attached{Conn: e.agent}) })
	return e
}

// sent waits until the near agent has sent so many bytes, each once.
func (r *rig) sent(bytes uint64) {
	r.t.Helper()
	until(r.t, func() error {
		if got := r.near.Counts().First; got != bytes {
			return fmt.Errorf("%d bytes have gone out, not %d", got, bytes)
		}
		return nil
	})
}

func (r *rig) accept() *net.TCPConn {
	r.t.Helper()
	c, err := r.server.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(within))
	return c.(*net.TCPConn)
}

func (r *rig) nobodyIsBlamed() {
	r.t.Helper()
	select {
	case err := <-r.broken:
		r.t.Errorf("one agent blames the other: %v", err)
	default:
	}
}

// What an early client says goes out before the far agent has connected, and arrives once, with all that follows it.
func TestWhatAnEarlyClientSaysGoesOutBeforeTheAnswer(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, first := range map[string]int{"a request": 500, "as much as may be": stripe.Early, "more": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			r, server := newHeldRig(t, 3)
			e := r.dialEarly()
			<-server.asked
			const all = 1 << 20
			want, held := make(chan [32]byte, 1), make([]byte, first)
			for i := range held {
				held[i] = byte(i>>8) ^ byte(i) ^ 9
			}
			early := min(first, stripe.Early)
			go e.client.Write(held)
			r.sent(uint64(early))
			server.goOn <- nil
			if err := <-e.done; err != nil {
				t.Fatal(err)
			}
			c := r.accept()
			b := make([]byte, first)
			if _, err := io.ReadFull(c, b); err != nil || !bytes.Equal(b, held) {
				t.Fatalf("the server got other bytes, or %v", err)
			}
			go func() { want <- send(t, e.client, all, 7) }()
			if n, sum, err := receive(c); err != nil || n != all || sum != <-want {
				t.Fatalf("behind them the server got %d of %d bytes, %v", n, all, err)
			}
			sum := send(t, c, all, 8)
			if n, got, err := receive(e.client); err != nil || n != all || got != sum {
				t.Fatalf("the client got %d of %d bytes, %v", n, all, err)
			}
			e.client.Close()
			c.Close()
			r.isEmpty(1)
			r.nobodyIsBlamed()
		})
	}
}

// Where nothing can be early for want of memory the client's bytes come later, and whole.
func TestWithoutMemoryNothingIsEarlyAndNothingIsLost(t *testing.T) {
	safety.Test(t, safety.Bytes)
	r, server := newHeldRig(t, 1)
	r.near.mu.Lock()
	var taken []uint32
	for {
		slot, room := r.near.slots.all.Get(stripe.MaxChunk)
		if room == nil {
			break
		}
		taken = append(taken, slot)
	}
	r.near.mu.Unlock()
	e := r.dialEarly()
	<-server.asked
	if _, err := e.client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	server.goOn <- nil
	if err := <-e.done; err != nil {
		t.Fatal(err)
	}
	r.near.mu.Lock()
	for _, slot := range taken {
		r.near.slots.free(slot)
	}
	r.near.changed()
	for s := range r.near.starved {
		wake(s.room)
	}
	r.near.mu.Unlock()
	c := r.accept()
	if _, err := e.client.Write([]byte(", again")); err != nil {
		t.Fatal(err)
	}
	e.client.CloseWrite()
	if b, err := io.ReadAll(c); err != nil || string(b) != "hello, again" {
		t.Errorf("the server got %q, %v", b, err)
	}
}

// Who is refused may ask another agent: nothing of what the client has said is gone.
func TestARefusalLeavesAnEarlyClientAsItWas(t *testing.T) {
	safety.Test(t, safety.Bytes)
	r, server := newHeldRig(t, 3)
	e := r.dialEarly()
	<-server.asked
	if _, err := e.client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	r.sent(5)
	server.goOn <- &Refused{frame.Draining}
	var refused *Refused
	if err := <-e.done; !errors.As(err, &refused) || refused.Reason != frame.Draining {
		t.Fatalf("it was refused, and is told %v", err)
	}
	r.isEmpty(1)
	e.agent.SetReadDeadline(time.Now().Add(within))
	b := make([]byte, 5)
	if _, err := io.ReadFull(e.agent, b); err != nil || string(b) != "hello" {
		t.Errorf("what the client said is %q, %v", b, err)
	}
	r.nobodyIsBlamed()
}

// An OPEN that died with its connection is said again, and what was early goes with it, to no other connection before.
func TestEarlyBytesOutliveTheirConnection(t *testing.T) {
	safety.Test(t, safety.Bytes)
	r, server := newHeldRig(t, 4)
	e := r.dialEarly()
	<-server.asked
	if _, err := e.client.Write(bytes.Repeat([]byte("hello"), 1000)); err != nil {
		t.Fatal(err)
	}
	r.sent(5000)
	for number := range r.live {
		r.cut(number)
	}
	until(t, func() error { return is("connections", r.near.Connections(), 0) })
	r.connect()
	r.connect()
	server.goOn <- nil
	if err := <-e.done; err != nil {
		t.Fatal(err)
	}
	c := r.accept()
	e.client.CloseWrite()
	if n, _, err := receive(c); n != 5000 || err != nil {
		t.Errorf("the server got %d bytes, %v", n, err)
	}
	r.nobodyIsBlamed()
}

// A client that goes before the answer leaves nothing, and its server is reset.
func TestAnEarlyClientThatGoesLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	for name, says := range map[string]string{"silent": "", "after a word": "hello"} {
		t.Run(name, func(t *testing.T) {
			r, server := newHeldRig(t, 2)
			e := r.dialEarly()
			<-server.asked
			io.WriteString(e.client, says)
			r.sent(uint64(len(says)))
			cut(e.client)
			var refused *Refused
			if err := <-e.done; err == nil || errors.As(err, &refused) {
				t.Errorf("the client has gone, and who waits is told %v", err)
			}
			server.goOn <- nil
			c := r.accept()
			if n, _, err := receive(c); err == nil {
				t.Errorf("the server got %d bytes and takes them for a whole stream", n)
			}
			r.isEmpty(1)
		})
	}
}

// Who does not want to wait any longer may not ask somebody else: the server may have heard the client.
func TestAnEarlyClientIsNotWaitedForForEver(t *testing.T) {
	r, server := newHeldRig(t, 1)
	e := r.dialEarly()
	<-server.asked
	e.cancel()
	var refused *Refused
	if err := <-e.done; !errors.Is(err, context.Canceled) || errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	server.goOn <- os.ErrDeadlineExceeded
	r.isEmpty(1)
}

// However many say something before their servers have answered: they have no more memory than the trunk.
func TestEarlyClientsHaveNoMoreMemoryThanTheTrunk(t *testing.T) {
	r, server := newHeldRig(t, 2)
	said := bytes.Repeat([]byte{1}, stripe.Early)
	var all []*earlyClient
	var writing sync.WaitGroup
	for r.near.Ready() {
		e := r.dialEarly()
		select {
		case <-server.asked:
		case err := <-e.done:
			t.Fatalf("session %d: there was room, and then %v", len(all), err)
		}
		all = append(all, e)
		writing.Go(func() { e.client.Write(said) })
	}
	writing.Wait()
	r.sent(uint64(len(all)) * stripe.Early)
	t.Logf("%d sessions", len(all))
	for name, trunk := range map[string]*Trunk{"near": r.near, "far": r.far} {
		trunk.mu.Lock()
		if used, most := trunk.slots.all.Used(), len(trunk.Send.Bytes()); used > most {
			t.Errorf("the %s agent has %d bytes to send, in %d", name, used, most)
		}
		if used, most := trunk.receiver.Reserved()*stripe.Block, len(trunk.Receive.Bytes()); used > most {
			t.Errorf("the %s agent has %d bytes received, in %d", name, used, most)
		}
		trunk.mu.Unlock()
	}
	one := r.dialEarly()
	var refused *Refused
	if err := <-one.done; !errors.As(err, &refused) || refused.Reason != frame.NoRoom {
		t.Errorf("one more is told %v", err)
	}
	for range all {
		server.goOn <- &Refused{frame.RefusedByHost}
	}
	for _, e := range all {
		if err := <-e.done; !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
	}
	r.isEmpty(len(all))
}

// A far agent without memory refuses, and what comes behind the OPEN is no fault: others' connection would end by it.
func TestEarlyBytesToAFullAgentAreNoFault(t *testing.T) {
	safety.Test(t, safety.Flow)
	r, server := newHeldRig(t, 1, func(c *Config) {
		if c.Dials {
			return
		}
		var err error
		if c.Receive, err = memory.Map(stripe.MaxChunk); err != nil { // less than the near agent has to send from
			t.Fatal(err)
		}
	})
	var asked []*earlyClient
	for {
		e := r.dialEarly()
		if _, err := e.client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		var err error
		select {
		case <-server.asked:
			asked = append(asked, e)
			continue
		case err = <-e.done:
		case err = <-r.broken:
		}
		var refused *Refused
		if !errors.As(err, &refused) || refused.Reason != frame.NoRoom {
			t.Fatalf("behind %d sessions: %v", len(asked), err)
		}
		break
	}
	for range asked {
		server.goOn <- nil
	}
	for _, e := range asked {
		if err := <-e.done; err != nil {
			t.Error(err)
		}
		s := r.accept()
		if _, err := io.ReadFull(s, make([]byte, 5)); err != nil {
			t.Error(err)
		}
	}
	r.nobodyIsBlamed()
	if got := r.near.Connections(); got != 1 {
		t.Errorf("%d connections are left of one", got)
	}
}

// What comes early of a session that was refused is no word of one that has ended: RETIRE might come before REFUSED.
func TestWhatComesEarlyOfARefusedSessionIsRefusedAgain(t *testing.T) {
	r := newRig(t, 0)
	r.far.mu.Lock()
	defer r.far.mu.Unlock()
	r.far.refused.add(8, frame.Draining)
	r.far.receiver.Gone(8)
	if got := r.far.gone(8); got != frame.TypeRefused {
		t.Errorf("it is answered by %v", got)
	}
	if got := r.far.gone(6); got != frame.TypeRetire {
		t.Errorf("one that has ended is answered by %v", got)
	}
}

// A far agent that begins anew and has not the session may have told the server what the client said: it is not asked again.
func TestAFarAgentThatBeginsAnewIsNotToldEarlyBytesTwice(t *testing.T) {
	safety.Test(t, safety.Bytes)
	for name, says := range map[string]string{"nothing was said": "", "something was": "hello"} {
		t.Run(name, func(t *testing.T) {
			r, server := newHeldRig(t, 2)
			e := r.dialEarly()
			<-server.asked
			io.WriteString(e.client, says)
			r.sent(uint64(len(says)))
			former := r.far
			defer former.Close()
			r.far = r.trunk(false, []func(*Config){func(c *Config) { holdServer(c, server) }})
			rand.Read(r.secret[:])
			up(r.near, r.secret, 2)
			up(r.far, r.secret, 1)
			r.connect()
			if says == "" {
				<-server.asked
				server.goOn <- nil
				server.goOn <- nil // the former one's is held as well
				if err := <-e.done; err != nil {
					t.Errorf("nothing was said, and it is not asked again: %v", err)
				}
				return
			}
			var refused *Refused
			if err := <-e.done; err == nil || errors.As(err, &refused) {
				t.Errorf("who waits is told %v", err)
			}
		})
	}
}
