package memory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/stripe"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// Whatever is taken and given back in whatever order: no two slots share a byte, each has the room that was asked for
// unless there was none, and in the end all is whole again.
func TestSlotsNeverOverlapAndGrowTogetherAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]byte, 4*stripe.MaxChunk)
		s := NewSlots(&Mapping{all: all})
		owner := make([]uint32, len(all)/stripe.Block) // of each block: slot + 1
		var have []uint32
		used := 0
		free := func(i int) {
			slot := have[i]
			n := len(s.Bytes(slot)) / stripe.Block
			for b := range n {
				owner[int(slot)+b] = 0
			}
			used -= n * stripe.Block
			s.Free(slot)
			have = slices.Delete(have, i, i+1)
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if len(have) > 0 && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				free(rapid.IntRange(0, len(have)-1).Draw(t, "which"))
				continue
			}
			n := rapid.IntRange(1, stripe.MaxChunk).Draw(t, "bytes")
			slot, room := s.Get(n)
			if room == nil {
				if used != len(all) {
					t.Fatalf("no slot although %d of %d bytes are in use", used, len(all))
				}
				continue
			}
			if len(room) < n && len(room) >= 2*n || len(room) > max(2*n, stripe.Block) {
				t.Fatalf("%d bytes for %d", len(room), n)
			}
			for b := range len(room) / stripe.Block {
				if o := owner[int(slot)+b]; o != 0 {
					t.Fatalf("block %d of slot %d belongs to slot %d", int(slot)+b, slot, o-1)
				}
				owner[int(slot)+b] = slot + 1
			}
			have, used = append(have, slot), used+len(room)
		}
		if s.Used() != used {
			t.Fatalf("%d bytes are said to be in use, %d are", s.Used(), used)
		}
		for len(have) > 0 {
			free(len(have) - 1)
		}
		for range 4 {
			if _, room := s.Get(stripe.MaxChunk); len(room) != stripe.MaxChunk {
				t.Fatalf("all is free, and the largest slot has %d bytes", len(room))
			}
		}
	})
}

func TestAMappingIsReadAndWritten(t *testing.T) {
	m, err := Map(stripe.MaxChunk)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Bytes()[stripe.MaxChunk-1] = 7
	if m.Bytes()[0] != 0 || m.Bytes()[stripe.MaxChunk-1] != 7 {
		t.Error("it is not what was written")
	}
}

func TestASlotTakesNoMemoryOfItsOwn(t *testing.T) {
	s := NewSlots(&Mapping{all: make([]byte, stripe.MaxChunk)})
	if n := testing.AllocsPerRun(100, func() {
		a, _ := s.Get(stripe.Block)
		b, _ := s.Get(3 * stripe.Block)
		s.Free(a)
		s.Free(b)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
