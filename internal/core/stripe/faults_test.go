package stripe

import (
	"errors"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// pair is a sender that has sent two chunks of 1,000 bytes of session 2, and a receiver of it.
func pair(t *testing.T) (*Sender, *Receiver, time.Time) {
	t.Helper()
	now := time.Unix(0, 0)
	s, r := NewSender(1<<20, pull{}), NewReceiver(64, 10*ms)
	credit, err := r.Open(2, 0)
	if err == nil {
		err = s.Open(2, 0, credit)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Connect(1, Measure{RTT: 10 * ms})
	for i := range uint64(2) {
		s.Push(2, Chunk{i * 1000, 1000, uint32(i), 0})
		if f, ok := s.Next(now, 1); !ok || f.Offset != i*1000 {
			t.Fatal(f, ok)
		}
	}
	return s, r, now
}

// TestEachViolationIsNamed: what a peer can do wrong is an error that says what, and leaves the stream as it was.
func TestEachViolationIsNamed(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(s *Sender, r *Receiver, now time.Time) error
	}{
		{"frame STATE of session 0x4: no such session was ever opened", func(s *Sender, _ *Receiver, _ time.Time) error { return s.State(&frame.State{Session: 4}) }},
		{"frame STATE of session 0x1: no such session was ever opened", func(s *Sender, _ *Receiver, _ time.Time) error { return s.State(&frame.State{Session: 1}) }},
		{"frame RESUME of session 0x4: no such", func(s *Sender, _ *Receiver, _ time.Time) error { return s.Resume(&frame.Resume{Session: 4}) }},
		{"frame RESUME of session 0x4: no such", func(_ *Sender, r *Receiver, now time.Time) error { return r.Resume(now, &frame.Resume{Session: 4}) }},
		{"frame DATA of session 0x4: no such", func(_ *Sender, r *Receiver, now time.Time) error {
			_, err := r.Arrive(now, frame.Chunk(4, 0, 1), nil)
			return err
		}},
		{"frame END of session 0x4: no such", func(_ *Sender, r *Receiver, now time.Time) error { return r.End(now, frame.End(4, 0)) }},
		{"frame ABORT of session 0x4: no such", func(_ *Sender, r *Receiver, now time.Time) error {
			return r.Abort(now, frame.Abort{Session: 4, Cause: frame.Reset})
		}},
		{"frame DATA of session 0x2: offset 65537 is beyond the credit of 65536", func(_ *Sender, r *Receiver, now time.Time) error {
			_, err := r.Arrive(now, frame.Chunk(2, 1, 65536), nil)
			return err
		}},
		{"beyond the credit of 65536", func(_ *Sender, r *Receiver, now time.Time) error {
			_, err := r.Arrive(now, frame.Chunk(2, frame.MaxOffset-1, 1), nil)
			return err
		}},
		{"frame DATA of session 0x2: offset 11 is behind the stream's end at 10", func(_ *Sender, r *Receiver, now time.Time) error {
			if err := r.End(now, frame.End(2, 10)); err != nil {
				return err
			}
			_, err := r.Arrive(now, frame.Chunk(2, 5, 6), nil)
			return err
		}},
		{"frame END of session 0x2: it puts the stream's end at 11, where 10 was known", func(_ *Sender, r *Receiver, now time.Time) error {
			if err := r.End(now, frame.End(2, 10)); err != nil {
				return err
			}
			return r.End(now, frame.End(2, 11))
		}},
		{"frame END of session 0x2: it puts the stream's end at 9, where 10 was known", func(_ *Sender, r *Receiver, now time.Time) error {
			if _, err := r.Arrive(now, frame.Chunk(2, 5, 5), nil); err != nil {
				return err
			}
			return r.End(now, frame.End(2, 9))
		}},
		{"frame ABORT of session 0x2: it puts the stream's end at 9, where 10 was known", func(_ *Sender, r *Receiver, now time.Time) error {
			if _, err := r.Arrive(now, frame.Chunk(2, 5, 5), nil); err != nil {
				return err
			}
			return r.Abort(now, frame.Abort{Session: 2, Offset: 9, Cause: frame.Dead})
		}},
		{"frame STATE of session 0x2: it says that bytes up to 2001 arrived, 2000 were sent", func(s *Sender, _ *Receiver, _ time.Time) error {
			return s.State(&frame.State{Session: 2, Arrived: 2001, Credit: 9999})
		}},
		{"it says that bytes up to 2001 arrived, 2000 were sent", func(s *Sender, _ *Receiver, _ time.Time) error {
			return s.State(&frame.State{Session: 2, Credit: 9999, Ranges: []frame.Range{{From: 1, To: 2001}}})
		}},
		{"frame RESUME of session 0x2: it says that bytes up to 2001 arrived, 2000 were sent", func(s *Sender, _ *Receiver, _ time.Time) error {
			return s.Resume(&frame.Resume{Session: 2, Wanted: 2001, Credit: 9999})
		}},
		{"frame STATE of session 0x2: it says that the stream's end arrived, which was not sent", func(s *Sender, _ *Receiver, _ time.Time) error {
			return s.State(&frame.State{Session: 2, Ended: true})
		}},
		{"frame RESUME of session 0x2: it wants bytes from 999, what is before 1000 was acknowledged", func(s *Sender, _ *Receiver, _ time.Time) error {
			if err := s.State(&frame.State{Session: 2, Acknowledged: 1000, Arrived: 1000, Credit: 9999}); err != nil {
				return err
			}
			s.PeerRestarted()
			return s.Resume(&frame.Resume{Session: 2, Wanted: 999, Credit: 9999})
		}},
		{"frame RESUME of session 0x2: it has lost the bytes at 0, of 10 that it has told", func(_ *Sender, r *Receiver, now time.Time) error {
			if _, err := r.Arrive(now, frame.Chunk(2, 5, 5), nil); err != nil {
				return err
			}
			return r.Resume(now, &frame.Resume{Session: 2, Kept: frame.Range{From: 5, To: 10}})
		}},
		{"frame RESUME of session 0x2: it has lost the bytes at 9, of 10 that it has told", func(_ *Sender, r *Receiver, now time.Time) error {
			if _, err := r.Arrive(now, frame.Chunk(2, 5, 5), nil); err != nil {
				return err
			}
			r.PeerRestarted()
			return r.Resume(now, &frame.Resume{Session: 2, Kept: frame.Range{From: 0, To: 9}})
		}},
		{"frame RESUME of session 0x2: it puts the stream's end at 9, where 10 was known", func(_ *Sender, r *Receiver, now time.Time) error {
			if err := r.End(now, frame.End(2, 10)); err != nil {
				return err
			}
			return r.Resume(now, &frame.Resume{Session: 2, Kept: frame.Range{From: 0, To: 9}, Ended: true})
		}},
		{"frame DATA of session 0x2: it makes 32769 ranges with gaps, at most 32768 are kept", func(_ *Sender, r *Receiver, now time.Time) error {
			in := r.streams[2] // a stream fast enough for a larger window
			in.rate.bytes = 1 << 17
			r.grant(in)
			for i := range uint64(maxGaps + 1) {
				if _, err := r.Arrive(now, frame.Chunk(2, 1+2*i, 1), nil); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		s, r, now := pair(t)
		err := c.do(s, r, now)
		if v := (*Violation)(nil); !errors.As(err, &v) || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%v; want %q", err, c.what)
		}
	}
}

func TestFramesOfSessionsThatEndedAreNoViolations(t *testing.T) {
	s, r, now := pair(t)
	s.Close(2)
	r.Close(2)
	_, arrive := r.Arrive(now, frame.Chunk(2, 0, 1), nil)
	for name, err := range map[string]error{
		"STATE": s.State(&frame.State{Session: 2}), "RESUME": s.Resume(&frame.Resume{Session: 2}), "DATA": arrive,
		"END": r.End(now, frame.End(2, 0)), "ABORT": r.Abort(now, frame.Abort{Session: 2, Cause: frame.Reset}),
	} {
		if !errors.Is(err, ErrRetired) {
			t.Errorf("%s: %v, want %v", name, err, ErrRetired)
		}
	}
	if slots := s.Freed(); len(slots) != 2 || r.Reserved() != 0 {
		t.Errorf("slots %v are free, want both; %d blocks are reserved, want none", slots, r.Reserved())
	}
}

// Two connections do not keep frames in order: an older STATE is none.
func TestAnOlderStateChangesNothing(t *testing.T) {
	s, _, _ := pair(t)
	newer := frame.State{Session: 2, Acknowledged: 1000, Arrived: 2000, Credit: 70000}
	older := frame.State{Session: 2, Acknowledged: 0, Arrived: 0, Credit: 65536}
	for _, m := range []*frame.State{&newer, &older} {
		if err := s.State(m); err != nil {
			t.Fatal(err)
		}
	}
	if kept, _ := s.Kept(2); kept != (frame.Range{From: 1000, To: 2000}) || s.Room(2) != 68000 {
		t.Errorf("%+v is kept, there is room for %d; want 1000 to 2000, and 68000", kept, s.Room(2))
	}
}

func TestAnAbortTakesEffectBehindItsBytesAndAfterFiveSecondsAtTheLatest(t *testing.T) {
	var into [4]Place
	_, r, now := pair(t)
	abort := frame.Abort{Session: 2, Offset: 10, Cause: frame.Reset}
	if err := r.Abort(now, abort); err != nil {
		t.Fatal(err)
	}
	if got := r.Deliver(2, into[:]); got.Abort != 0 || got.End {
		t.Errorf("before its bytes: %+v", got)
	}
	if _, err := r.Arrive(now, frame.Chunk(2, 0, 10), nil); err != nil {
		t.Fatal(err)
	}
	if got := r.Deliver(2, into[:]); got.Abort != frame.Reset || total(got.Places) != 10 || got.End {
		t.Errorf("with its bytes: %+v", got)
	}

	_, r, now = pair(t)
	if err := r.Abort(now, abort); err != nil {
		t.Fatal(err)
	}
	r.Next(now.Add(stateDelay))
	at := r.Deadline()
	if at != now.Add(5*time.Second) {
		t.Errorf("the deadline is %v, want 5 s", at.Sub(now))
	}
	if over := r.Expire(at, nil); len(over) != 1 || over[0] != 2 {
		t.Errorf("%v are over, want session 2", over)
	}
	if got := r.Deliver(2, into[:]); got.Abort != frame.Reset || len(got.Places) != 0 {
		t.Errorf("after 5 s: %+v", got)
	}
	if at := r.Deadline(); !at.IsZero() {
		t.Errorf("there is a deadline at %v", at)
	}
}

// An end host that has sent FIN may send RST as well, and the END that went out first may have arrived.
func TestAnENDThatArrivedIsNoFaultWhereAnABORTFollows(t *testing.T) {
	s, _, now := pair(t)
	s.End(2)
	if f, ok := s.Next(now, 1); !ok || f.Type != frame.TypeEnd {
		t.Fatalf("the END does not go out: %v", f)
	}
	s.Abort(2, frame.Reset)
	if err := s.State(&frame.State{Session: 2, Acknowledged: 2000, Arrived: 2000, Credit: 65536, Ended: true}); err != nil || !s.Ended(2) {
		t.Errorf("%v; the stream has ended: %v", err, s.Ended(2))
	}
}
