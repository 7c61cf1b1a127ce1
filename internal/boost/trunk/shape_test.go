package trunk

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/core/tune"
)

// pacing is what the kernel lets a connection send, bytes a second.
func pacing(t *testing.T, c *net.TCPConn) (rate uint64) {
	t.Helper()
	if err := onSocket(c, func(fd int) (err error) {
		rate, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return rate
}

// An operator's limit is that of all connections together, from their first byte on, and of those that come later.
func TestALimitIsSharedByAllConnections(t *testing.T) {
	const limit = 6 << 20
	r := newRig(t, 2, func(c *Config) {
		if c.Dials {
			c.Shape = tune.Settings{Share: tune.Raw, Limit: limit}
		}
	})
	r.connect()
	r.near.mu.Lock()
	for range 2 { // the first interval is one in which a connection came
		only(r.near).shaping.at = time.Now().Add(-tune.Interval(0) - time.Millisecond)
		only(r.near).shape(time.Now())
	}
	r.near.mu.Unlock()
	for number, c := range r.live {
		if got := pacing(t, c[0]); got != limit/3 {
			t.Errorf("connection %d of three may send %d bytes a second, of %d", number, got, limit)
		}
		if got := pacing(t, c[1]); got != ^uint64(0) {
			t.Errorf("the other end, without a limit, may send %d", got)
		}
	}
}

// A drain that nobody has seen the end of, for there was no session, holds nobody back who comes then.
func TestADrainDoesNotOutlastItsInterval(t *testing.T) {
	r := newRig(t, 1)
	r.near.mu.Lock()
	defer r.near.mu.Unlock()
	s := &only(r.near).shaping
	s.tuner = tune.NewTuner(tune.Settings{})
	now := s.at
	for i := 0; s.decision.Why != tune.Drains; i++ {
		if i == 10 {
			t.Fatalf("a long queue is not drained: %+v", s.decision)
		}
		now = now.Add(tune.Interval(0))
		only(r.near).decide(s.tuner.Step(tune.Measure{Now: now, Length: tune.Interval(0), RTT: 60 * time.Millisecond, MinRTT: 10 * time.Millisecond, Rate: 1e8, Sent: 2e7, Flows: 1, Bound: true, Sessions: 1}))
	}
	if got := pacing(t, r.live[1][0]); got != uint64(s.decision.Cap) || got > 9e7 {
		t.Fatalf("in a drain it may send %d bytes a second, of %+v", got, s.decision)
	}
	s.at = now
	only(r.near).shape(now.Add(time.Minute))
	if got := pacing(t, r.live[1][0]); got < 9.5e7 {
		t.Errorf("a minute behind a drain it may send %d bytes a second", got)
	}
}

// Beside others as many connections carry chunks as sessions would be flows, the oldest; what is small goes on all. No
// strategy leaves a chunk to one that rests.
func TestBesideOthersSomeConnectionsRest(t *testing.T) {
	for _, strategy := range stripe.Strategies {
		t.Run(strategy, func(t *testing.T) {
			r := newRig(t, 3, func(c *Config) { c.Strategy, _ = stripe.StrategyNamed(strategy) })
			rest := func() (ids int) {
				r.near.mu.Lock()
				defer r.near.mu.Unlock()
				for id, c := range r.near.conns {
					if c.rests {
						ids |= 1 << id
					}
				}
				return ids
			}
			become := func(d tune.Decision) {
				r.near.mu.Lock()
				defer r.near.mu.Unlock()
				only(r.near).shaping.decision, only(r.near).shaping.at = d, time.Now().Add(time.Hour) // no other one comes
				only(r.near).rest()
			}
			become(tune.Decision{Connections: 1})
			if got := rest(); got != 0 {
				t.Errorf("alone: %b rest", got)
			}
			become(tune.Decision{Connections: 1, Beside: true})
			if got := rest(); got != 1<<2|1<<3 {
				t.Errorf("beside others: %b rest", got)
			}
			r.connect()
			if got := rest(); got != 1<<2|1<<3|1<<4 {
				t.Errorf("another one has come: %b rest", got)
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
			if got := rest(); got != 1<<3|1<<4 {
				t.Errorf("the first has died: %b rest", got)
			}
		})
	}
}

// A connection takes no more where its congestion window is full, or where the kernel has bytes that it does not send: behind the
// small window of the other agent's socket the congestion window never fills.
func TestAConnectionThatTakesNoMoreIsSeen(t *testing.T) {
	for what, c := range map[string]struct {
		info unix.TCPInfo
		full bool
	}{
		"nothing on its way":                     {unix.TCPInfo{Snd_cwnd: 10}, false},
		"half a window on its way":               {unix.TCPInfo{Snd_cwnd: 10, Unacked: 5}, false},
		"a full congestion window":               {unix.TCPInfo{Snd_cwnd: 10, Unacked: 10}, true},
		"the same, half of it lost":              {unix.TCPInfo{Snd_cwnd: 10, Unacked: 10, Lost: 5}, false},
		"the other end's window, of 18 segments": {unix.TCPInfo{Snd_cwnd: 56, Unacked: 18, Notsent_bytes: 71402}, true},
	} {
		if got := full(&c.info); got != c.full {
			t.Errorf("%s: full %v, expected %v", what, got, c.full)
		}
	}
}
