package stripe

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// resting is a sender of one session over connection 1, which carries, and 2, which rests. It has sent and heard of enough for
// copies that are late, and one chunk of 1,000 bytes is on its way since now.
func resting(t *testing.T, strategy Strategy) (s *Sender, now time.Time) {
	t.Helper()
	s, now = NewSender(1<<20, strategy), time.Unix(0, 0)
	if err := s.Open(2, 0, 1<<40); err != nil {
		t.Fatal(err)
	}
	for c := range Conn(2) {
		s.Connect(c+1, Measure{RTT: 20 * ms, Rate: 10e6})
	}
	s.Rest(2, true)
	for i := range uint64(50) {
		s.Push(2, Chunk{i * 1000, 1000, uint32(i), 0})
		if f, ok := s.Next(now, 1); !ok || f.Offset != i*1000 {
			t.Fatalf("chunk %d: %+v, %v", i, f, ok)
		}
		if i == 49 {
			break
		}
		if err := s.State(&frame.State{Session: 2, Acknowledged: (i + 1) * 1000, Arrived: (i + 1) * 1000, Credit: 1 << 40}); err != nil {
			t.Fatal(err)
		}
	}
	return s, now
}

// What a connection carries that nothing comes from goes out again on one that rests, though not for a loss, which takes a round
// trip; on one that retires nothing does.
func TestAConnectionThatRestsCarriesWhatIsLate(t *testing.T) {
	s, now := resting(t, pull{})
	for at := time.Duration(0); ; at += ms {
		if f, ok := s.Next(now.Add(at), 2); ok {
			if f.Offset != 49_000 || at < 45*ms {
				t.Errorf("after %v: %+v", at, f)
			}
			break
		}
		if due := s.Deadline(); due.IsZero() || at > 100*ms {
			t.Fatalf("after %v nothing is sent again, and the deadline is %v", at, due)
		}
	}
	if c := s.Counts; c.Late != 1000 {
		t.Errorf("%+v", c)
	}
	s, now = resting(t, pull{})
	s.Retire(2)
	s.Rest(2, false) // who retires does not come back
	if f, ok := s.Next(now.Add(time.Second), 2); ok {
		t.Errorf("on one that retires goes %+v", f)
	}
}

// No new chunk, no end and no more than a twentieth go out on a connection that rests.
func TestAConnectionThatRestsCarriesNothingElse(t *testing.T) {
	s, now := resting(t, pull{})
	s.Push(2, Chunk{50_000, 8_000, 50, 0})
	s.End(2)
	if f, ok := s.Next(now, 2); ok {
		t.Errorf("%+v", f)
	}
	for range 2 {
		if _, ok := s.Next(now, 1); !ok {
			t.Fatal("one that carries takes nothing")
		}
	}
	sent := 0
	for at := time.Duration(0); at < time.Second; at += ms {
		if f, ok := s.Next(now.Add(at), 2); ok && f.Type == frame.TypeData {
			sent += int(f.Length)
		}
	}
	if sent != 1000 {
		t.Errorf("%d bytes of 58,000 have gone out again, want 1,000: the next chunk is too much (%+v)", sent, s.Counts)
	}
}

// The end of a stream that went out on a connection from which nothing comes goes out on another one, once.
func TestTheEndOfAStreamIsSentAgainOnceWhereItIsLate(t *testing.T) {
	for _, rests := range []bool{false, true} {
		s, now := resting(t, pull{})
		s.Rest(2, rests)
		if err := s.State(&frame.State{Session: 2, Acknowledged: 50_000, Arrived: 50_000, Credit: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		s.End(2)
		if f, ok := s.Next(now, 1); !ok || f.Type != frame.TypeEnd {
			t.Fatalf("%+v, %v", f, ok)
		}
		ends, first := 0, time.Duration(0)
		for at := time.Duration(0); at < time.Second; at += ms {
			for c := range Conn(2) {
				if f, ok := s.Next(now.Add(at), c+1); ok {
					if ends++; first == 0 {
						first = at
					}
					if f.Type != frame.TypeEnd || f.Offset != 50_000 || c != 1 {
						t.Errorf("on %d after %v: %+v", c+1, at, f)
					}
				}
			}
		}
		if ends != 1 || first < 30*ms || first > 100*ms {
			t.Errorf("the other one rests %v: %d ends, the first after %v", rests, ends, first)
		}
		if at := s.Deadline(); !at.IsZero() && at.After(now.Add(time.Second)) {
			t.Errorf("there is a deadline at %v", at)
		}
	}
}

// The one connection that carries falls silent: who reads has all that was on its way, and the end, long before the kernel gives
// it up.
func TestAStallOfTheOneThatCarriesIsBridged(t *testing.T) {
	for _, strategy := range Strategies {
		l := link{rate: 5e6, delay: 10 * ms}
		w, took := transfer(t, strategy, 5e6, func(w *world) {
			w.sender.Rest(w.wires[1].id, true)
			w.sender.Rest(w.wires[2].id, true)
			w.sender.Retire(w.wires[2].id)
			c := w.wires[0]
			w.after(1010*ms, func() { c.delay = time.Minute })
			w.after(4*time.Second, func() { w.kill(c, -1) })
		}, l, l, l)
		if took > 1500*ms || w.wires[len(w.wires)-1].delivered > 0 {
			t.Errorf("%s: it took %v (%+v), and the one that retires has brought %d bytes", strategy, took, w.sender.Counts, w.wires[len(w.wires)-1].delivered)
		}
	}
}

// Each chunk goes out twice where only one connection carries, if there is another one at all; if not nobody looks for what to
// copy.
func TestRedundantMakesItsCopiesOnOnesThatRest(t *testing.T) {
	l := link{rate: 5e6, delay: 20 * ms}
	w, _ := transfer(t, "redundant", 1e6, func(w *world) {
		w.sender.Rest(w.wires[1].id, true)
		w.sender.Rest(w.wires[2].id, true)
	}, l, l, l)
	if c := w.sender.Counts; c.Copy < c.First*9/10 || c.Copy > c.First {
		t.Errorf("%+v: want a copy of nearly each chunk", c)
	}
	w, _ = transfer(t, "redundant", 1e6, func(w *world) { w.sender.Rest(w.wires[2].id, true) }, l, l, l)
	if c := w.sender.Counts; c.Copy < c.First*9/10 || w.wires[2].delivered > 0 {
		t.Errorf("two carry, and one that rests has brought %d bytes (%+v)", w.wires[2].delivered, c)
	}
	s, now := resting(t, redundant{})
	s.Retire(2)
	if s.Next(now, 1); s.streams[2].copied > 0 {
		t.Errorf("%d chunks were looked through for copies that nobody could carry", s.streams[2].copied)
	}
}
