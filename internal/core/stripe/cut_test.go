package stripe

import (
	"testing"
	"time"
)

// What was read at once goes out in chunks that each connection carries in 2 ms, without gaps: on one that has just begun a
// mebibyte would be there after a second, and nothing of it before.
func TestAChunkIsNoLongerThanItsConnectionCarriesInTwoMilliseconds(t *testing.T) {
	for rate, want := range map[float64]uint32{0: MinChunk, 30e6: 60_000, 1e9: MaxChunk} {
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
