package kick

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// The end that did not move has data in flight and a doubled timer. The retransmission must come while that
// timer still runs, so that the kick made it. Nothing here depends on how long anything took: a run in which
// the timer came first proves nothing and is repeated.
func TestDataInFlightIsSentAgainBeforeItsTimer(t *testing.T) {
	for _, gone := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		t.Run("cut for "+gone.String(), func(t *testing.T) { kickPending(t, gone) })
	}
}

func kickPending(t *testing.T, gone time.Duration) {
	w := newWorld(t)
	// A timer of 20 ms lets the shortest of the cuts double it.
	w.other.Run(t, "ip", "-6", "route", "replace", "::/0", "via", w.router.LinkLocal(t, "o").String(), "dev", "up", "rto_min", "20ms")
	c := w.connect()
	k := openIn(t, w.other)
	for range 20 {
		exchange(t, c.other, c.mover, "hello") // a measured round trip
		await(t, k, c.other, "acknowledged", func(s Socket) bool { return s.InFlight() == 0 })
		w.cut()
		if _, err := io.WriteString(c.other, "world"); err != nil {
			t.Fatal(err)
		}
		before := await(t, k, c.other, "backed off for as long as the cut", func(s Socket) bool {
			// The timer that runs must have been doubled, and its undoubled length be over.
			return s.Backoff > 0 && s.RTO<<1 > gone/2 && s.Due < s.RTO-s.RTO>>s.Backoff
		})
		w.heal()
		sent := kicked(t, k, c.other, w.wire, before)
		got := make([]byte, 5)
		if _, err := io.ReadFull(c.mover, got); err != nil || string(got) != "world" {
			t.Fatalf("after the kick: read %q, %v", got, err)
		}
		if sent {
			return
		}
	}
	t.Fatal("in 20 runs the timer was always earlier than the kick")
}

// jiffy is what a timer counts, at most.
const jiffy = 10 * time.Millisecond

// kicked kicks and waits for the first unacknowledged byte on the wire. It says whether that was surely
// before the timer.
func kicked(t *testing.T, k *Kicker, c net.Conn, wire *nstest.Frames, before Socket) bool {
	t.Helper()
	wire.Drain(t)
	state := one(t, k, c)
	if state.Retransmits != before.Retransmits {
		return false
	}
	r, err := k.Kick(SetOf(tupleOf(c)))
	if err != nil {
		t.Fatal(err)
	}
	early := monotonic()+jiffy < state.At+state.Due
	if want := (Result{Found: 1, Pending: 1, Refusals: int(state.Backoff) + 1}); early && r != want {
		t.Errorf("kick of %s: %+v, want %+v", state.String(), r, want)
	}
	wire.Next(t, "first unacknowledged byte of "+state.String(), func(frame []byte) bool {
		s, ok := segmentOf(frame)
		return ok && s.Tuple == tupleOf(c) && s.seq == state.SndUna && s.payload > 0
	})
	return monotonic() < state.At+state.Due
}

// The end that lost its own link could send nothing: its bytes are queued behind a probe timer.
func TestWhatCouldNotBeSentIsSentBeforeItsTimer(t *testing.T) {
	for _, gone := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		t.Run("cut for "+gone.String(), func(t *testing.T) { kickStuck(t, gone) })
	}
}

func kickStuck(t *testing.T, gone time.Duration) {
	w := newWorld(t)
	c := w.connect()
	k := openIn(t, w.mover)
	for range 20 {
		exchange(t, c.mover, c.other, "hello")
		await(t, k, c.mover, "acknowledged", func(s Socket) bool { return s.InFlight() == 0 })
		w.cut()
		if _, err := io.WriteString(c.mover, "world"); err != nil {
			t.Fatal(err)
		}
		await(t, k, c.mover, "in the probe timer with nothing in flight", func(s Socket) bool {
			return s.InFlight() == 0 && s.Queued() == 5 && s.Timer == WindowProbe && s.RTO<<s.Backoff > gone/2
		})
		w.heal()
		w.wire.Drain(t)
		state := one(t, k, c.mover)
		if state.InFlight() != 0 { // the timer was earlier
			io.ReadFull(c.other, make([]byte, 5))
			continue
		}
		r, err := k.Kick(SetOf(tupleOf(c.mover)))
		if err != nil {
			t.Fatal(err)
		}
		early := monotonic() < state.At+state.Due
		if want := (Result{Found: 1, Stuck: 1, Acks: 1}); early && r != want {
			t.Errorf("kick of %s: %+v, want %+v", state.String(), r, want)
		}
		w.wire.Next(t, "first byte of "+state.String(), func(frame []byte) bool {
			s, ok := segmentOf(frame)
			return ok && s.Tuple == tupleOf(c.mover) && s.seq == state.SndNxt && s.payload == 5
		})
		early = early && monotonic() < state.At+state.Due
		got := make([]byte, 5)
		if _, err := io.ReadFull(c.other, got); err != nil || string(got) != "world" {
			t.Fatalf("after the kick: read %q, %v", got, err)
		}
		if early {
			return
		}
	}
	t.Fatal("in 20 runs the timer was always earlier than the kick")
}

func TestIdleConnectionsAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	exchange(t, c.mover, c.other, "hello")
	exchange(t, c.other, c.mover, "hello")
	for _, end := range []struct {
		k    *Kicker
		conn net.Conn
	}{{openIn(t, w.mover), c.mover}, {openIn(t, w.other), c.other}} {
		await(t, end.k, end.conn, "acknowledged", func(s Socket) bool { return s.InFlight() == 0 })
		r, err := end.k.Kick(nil)
		if want := (Result{Found: 1, Idle: 1}); err != nil || r != want {
			t.Errorf("kick: %+v, %v; want %+v", r, err, want)
		}
	}
}

// A reset that is made here is one of the peer's to the program.
func TestResetIsTheProgramsECONNRESET(t *testing.T) {
	w := newWorld(t)
	c, rest := w.connect(), w.connect()
	exchange(t, c.mover, c.other, "hello")
	k := openIn(t, w.mover)
	if _, err := k.Reset(nil); err == nil {
		t.Error("all connections may be reset at once by saying nothing")
	}
	r, err := k.Reset(SetOf(tupleOf(c.mover)))
	if want := (Result{Found: 1, Resets: 1}); err != nil || r != want {
		t.Fatalf("reset: %+v, %v; want %+v", r, err, want)
	}
	if _, err := c.mover.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v, want ECONNRESET", err)
	}
	exchange(t, rest.mover, rest.other, "the other one lives")
	for _, frame := range w.wire.Drain(t) {
		if s, ok := segmentOf(frame); ok && s.flags&header.RST != 0 {
			t.Errorf("a reset left the host: %+v", s)
		}
	}
}

// A service's address is on no interface: only the rule for the daemon's mark leads to its sockets.
func TestTheMarkLeadsToAddressesThatAreNobodys(t *testing.T) {
	w := newWorld(t)
	const service = "fd5c::7"
	w.other.Sysctl(t, "net/ipv6/ip_nonlocal_bind", "1")
	w.other.Run(t, "ip", "-6", "rule", "add", "fwmark", "0x5caf", "lookup", "23727")
	w.other.Run(t, "ip", "-6", "rule", "add", "iif", "up", "lookup", "23727")
	w.other.Run(t, "ip", "-6", "route", "add", "local", service+"/128", "dev", "lo", "table", "23727")
	w.router.Route(t, service+"/128", w.other.LinkLocal(t, "up").String(), "o")
	c := w.connectTo(service)
	exchange(t, c.mover, c.other, "hello")
	k := openIn(t, w.other)
	if _, err := k.Reset(SetOf(tupleOf(c.other))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.other.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v, want ECONNRESET\nlook at: ip -6 rule; ip -6 route show table 23727", err)
	}
}

// A refusal given to a socket that still connects would end the attempt.
func TestConnectingSocketsGoOn(t *testing.T) {
	w := newWorld(t)
	l := w.other.Listen(t, "tcp6", "["+otherAddr+"]:0")
	w.router.Run(t, "ip", "-6", "route", "replace", "blackhole", otherAddr+"/128", "metric", "1")
	connected := make(chan error, 1)
	go func() {
		c, err := w.mover.Dial("tcp6", l.Addr().String())
		if err == nil {
			c.Close()
		}
		connected <- err
	}()
	k := openIn(t, w.mover)
	nstest.Wait(t, "ss -tan in the mover", func() error {
		all, err := k.Snapshot(nil)
		if err == nil && (len(all) != 1 || all[0].State != SynSent || all[0].InFlight() == 0) {
			err = fmt.Errorf("not one connecting socket: %v", all)
		}
		return err
	})
	if r, err := k.Kick(nil); err != nil || r != (Result{Found: 1, Waiting: 1}) {
		t.Errorf("kick: %+v, %v", r, err)
	}
	w.router.Run(t, "ip", "-6", "route", "del", "blackhole", otherAddr+"/128", "metric", "1")
	if err := nstest.Receive(t, "ss -tan in the mover: the SYN is sent again after a second", connected); err != nil {
		t.Errorf("connect: %v", err)
	}
}
