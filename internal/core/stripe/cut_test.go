package stripe

import (
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// What was read at once goes out in chunks that each connection carries in 2 ms, without gaps: on one that has just begun a
// mebibyte would be there after a second, and nothing of it before.
func TestAChunkIsNoLongerThanItsConnectionCarriesInTwoMilliseconds(t *testing.T) {
	for rate, want := range map[float64]uint32{0: first, 30e6: 60_000, 1e9: MaxChunk} {
		strategy, err := StrategyNamed("pull")
		if err != nil {
			t.Fatal(err)
		}
		s := NewSender(16<<20, strategy)
		if err := s.Open(2, 0, 8<<20); err != nil {
			t.Fatal(err)
		}
		s.Connect(1, Measure{RTT: 50 * time.Millisecond, Rate: rate})
		s.Push(2, Chunk{Length: MaxChunk, Slot: 1})
		at := uint64(0)
		for {
			f, ok := s.Next(time.Unix(0, 0), 1)
			if !ok {
				break
			}
			if f.Offset != at || uint64(f.Chunk.At) != at || f.Length >= 2*want && want < MaxChunk {
				t.Fatalf("at %v bytes a second: bytes %d to %d go out from %d in the slot, after %d, and at most %d at once", rate, f.Offset, f.Offset+uint64(f.Length), f.Chunk.At, at, 2*want)
			}
			at += uint64(f.Length)
		}
		if at != MaxChunk {
			t.Errorf("at %v bytes a second: %d bytes went out, of %d", rate, at, MaxChunk)
		}
	}
}

// A worker that has found what another one has read has it in chunks of its own. Of one that has arrived in part only the
// rest goes out.
func TestOfAChunkThatHasArrivedInPartTheRestGoesOut(t *testing.T) {
	strategy, err := StrategyNamed("pull")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSender(16<<20, strategy)
	if err := s.Open(2, 0, 0); err != nil {
		t.Fatal(err)
	}
	s.Push(2, Chunk{Length: 100_000, Slot: 1})
	s.Restore(2)
	if err := s.State(&frame.State{Session: 2, Arrived: 30_000, Credit: 1 << 20, Ranges: []frame.Range{{From: 50_000, To: 60_000}, {From: 90_000, To: 100_000}}}); err != nil {
		t.Fatal(err)
	}
	s.Connect(1, Measure{RTT: 50 * time.Millisecond, Rate: 1e6})
	var got []frame.Range
	for {
		f, ok := s.Next(time.Unix(0, 0), 1)
		if !ok {
			break
		}
		if n := len(got); n > 0 && got[n-1].To == f.Offset {
			got[n-1].To = f.Offset + uint64(f.Length)
		} else {
			got = append(got, frame.Range{From: f.Offset, To: f.Offset + uint64(f.Length)})
		}
	}
	if want := []frame.Range{{From: 30_000, To: 50_000}, {From: 60_000, To: 90_000}}; !slices.Equal(got, want) {
		t.Errorf("%v go out, want %v", got, want)
	}
}

// What is cut and acknowledged again and again leaves no memory behind, however long the stream is.
func TestALongStreamOfCutChunksTakesNoMoreMemory(t *testing.T) {
	o := &outgoing{}
	for at := uint64(0); at < 1<<20*2000; at += 1 << 20 {
		o.chunks.push(kept{Chunk: Chunk{Offset: at, Length: 1 << 20}})
		for range 16 {
			o.cut(o.chunks.len()-1, 1<<16)
		}
		for o.chunks.len() > 20 {
			o.chunks.pop()
		}
	}
	if n := cap(o.chunks.all); n > 1000 {
		t.Errorf("%d chunks have room, %d are there", n, o.chunks.len())
	}
}

// A peer that says of each second byte that it has arrived makes no chunk of so many.
func TestAPeerCannotHaveChunksCutToPieces(t *testing.T) {
	o := &outgoing{}
	o.chunks.push(kept{Chunk: Chunk{Length: 1 << 20}})
	for at := uint64(1); at < 1<<20; at += 2 {
		o.cutAt(at)
	}
	if n := o.chunks.len(); n > 1<<20/leastCut {
		t.Errorf("%d chunks of a mebibyte", n)
	}
}
