package stripe

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/boost/frame"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// Sessions share a trunk by bytes, whatever the size of their chunks.
func TestSessionsShareATrunkEvenly(t *testing.T) {
	s, now := NewSender(1<<30, pull{}), time.Unix(0, 0)
	s.Connect(1, Measure{})
	sizes := []uint32{1000, 16 << 10, 1 << 20, 100_000}
	for i, size := range sizes {
		session := uint64(2 * (i + 1))
		if err := s.Open(session, 0, 1<<40); err != nil {
			t.Fatal(err)
		}
		for n := range uint32(20e6) / size {
			s.Push(session, Chunk{uint64(n) * uint64(size), size, n, 0})
		}
	}
	sent := map[uint64]int{}
	for all := 0; all < 40e6; {
		f, ok := s.Next(now, 1)
		if !ok {
			t.Fatalf("nothing to send after %v", sent)
		}
		sent[f.Session] += int(f.Length)
		all += int(f.Length)
	}
	for session, n := range sent {
		if n < 10e6-MaxChunk-quantum || n > 10e6+MaxChunk+quantum {
			t.Errorf("session %d sent %d bytes of 40e6, want a quarter, give or take a chunk", session, n)
		}
	}
}

// The memory is never given to one session whole: while all that are there take what they can get, whoever comes later
// has the window that is its right, and there is no more than there is.
func TestNoSessionTakesTheMemoryOfOthers(t *testing.T) {
	const blocks, sessions = 400, 30
	r, now := NewReceiver(blocks, 10*ms), time.Unix(0, 0)
	for session := uint64(2); session <= 2*sessions; session += 2 {
		credit, err := r.Open(session, 0)
		if err != nil || credit < MinWindow {
			t.Fatalf("session %d: credit %d, %v, %d blocks reserved", session, credit, err, r.Reserved())
		}
		for range 5 { // all that are there receive as fast as they may
			for _, in := range r.streams {
				in.rate.bytes = 100 << 20
				in.arrived = in.credit
				r.Delivered(now, in.session, int(in.arrived-in.delivered))
				if r.Reserved() > blocks || in.credit < in.delivered+MinWindow {
					t.Fatalf("%d of %d blocks are reserved, session %d has %d", r.Reserved(), blocks, in.session, in.credit-in.delivered)
				}
			}
		}
	}
	var err error
	for session := uint64(2 * (sessions + 1)); err == nil; session += 2 {
		_, err = r.Open(session, 0)
	}
	if !errors.Is(err, ErrNoRoom) || r.Reserved() > blocks || r.Reserved() < blocks/2 {
		t.Errorf("%v, with %d of %d blocks reserved", err, r.Reserved(), blocks)
	}
}

func TestNoSessionTakesTheSendersMemoryOfOthers(t *testing.T) {
	const memory, sessions = 100 * MinWindow, 30
	s, now := NewSender(memory, pull{}), time.Unix(0, 0)
	s.Connect(1, Measure{})
	fill := func(o *outgoing) {
		for s.Room(o.session) > 0 {
			s.Push(o.session, Chunk{Offset: o.tail, Length: uint32(min(s.Room(o.session), MaxChunk))})
		}
	}
	for session := uint64(2); session <= 2*sessions; session += 2 {
		if err := s.Open(session, 0, 1<<40); err != nil || s.Room(session) < MinWindow {
			t.Fatalf("session %d: room for %d, %v, %d bytes beyond", session, s.Room(session), err, s.beyond)
		}
		for range 5 { // all that are there send as fast as they may
			kept := uint64(0)
			for _, o := range s.streams {
				fill(o)
				kept += o.tail - o.from
			}
			if kept > memory {
				t.Fatalf("%d bytes are kept, of %d", kept, memory)
			}
			for _, ok := s.Next(now, 1); ok; _, ok = s.Next(now, 1) {
			}
			for _, o := range s.streams {
				if err := s.State(&frame.State{Session: o.session, Acknowledged: o.tail, Arrived: o.tail, Credit: 1 << 40}); err != nil {
					t.Fatal(err)
				}
				fill(o)
			}
		}
	}
}

// A session that has nothing on its way holds no more than its floor: 80 KiB, of which the machine gives what was written.
func TestAnIdleSessionHoldsItsFloor(t *testing.T) {
	r, now := NewReceiver(10_000, 10*ms), time.Unix(0, 0)
	if _, err := r.Open(2, 0); err != nil {
		t.Fatal(err)
	}
	var places [64]Place
	at := uint64(0)
	turn := func(n uint32) {
		if _, err := r.Arrive(now, frame.Chunk(2, at, n), nil); err != nil {
			t.Fatal(err)
		}
		at += uint64(n)
		r.Delivered(now, 2, total(r.Deliver(2, places[:]).Places))
		now = now.Add(10 * ms)
	}
	for range 20 {
		turn(MinWindow)
	}
	if r.Reserved() <= floorBlocks {
		t.Errorf("%d blocks are reserved for a fast stream", r.Reserved())
	}
	for range 40 {
		turn(MinWindow / 8)
	}
	if r.Reserved() > floorBlocks {
		t.Errorf("%d blocks are reserved for a stream that does nearly nothing, want %d", r.Reserved(), floorBlocks)
	}
}

func TestRangesAreThoseOfABitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rs ranges
		var bits [64]bool
		for range rapid.IntRange(1, 20).Draw(t, "adds") {
			from := rapid.Uint64Range(0, 62).Draw(t, "from")
			r := frame.Range{From: from, To: rapid.Uint64Range(from+1, 63).Draw(t, "to")}
			for _, g := range rs.missing(r, nil) {
				for i := g.From; i < g.To; i++ {
					if bits[i] || i < r.From || i >= r.To {
						t.Fatalf("%d is missing in %v of %v", i, r, rs)
					}
					bits[i] = true
				}
			}
			for i := r.From; i < r.To; i++ {
				if !bits[i] {
					t.Fatalf("%d of %v was there, in %v", i, r, rs)
				}
			}
			rs = rs.add(r)
			at, last := uint64(0), uint64(0)
			for i, have := range rs {
				if i > 0 && have.From <= last {
					t.Fatalf("%v has no gap", rs)
				}
				for ; at < have.To; at++ {
					if bits[at] != (at >= have.From) {
						t.Fatalf("%v is not %v", rs, bits)
					}
				}
				last = have.To
			}
		}
	})
}
