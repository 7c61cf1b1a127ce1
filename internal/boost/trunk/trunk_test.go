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
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/tests/safety"
)

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
