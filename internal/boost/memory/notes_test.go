package memory

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/stripe"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// stream is what a session has read, and its slots.
type stream struct {
	read  uint64
	slots []Kept // Length: how much was read into it
}

// Sessions read, and slots are given back from the front of their streams, until the process is killed: what the next one
// finds is every byte that was kept, in its place, whatever else there was.
func TestWhatAKilledProcessKeptIsFound(t *testing.T) {
	safety.Test(t, safety.Bytes)
	rapid.Check(t, func(t *rapid.T) {
		m, err := Map(3 * stripe.MaxChunk)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := NewSlots(m)
		streams := map[uint64]*stream{2: {}, 4: {read: 1 << 40}, 6: {}}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			id := rapid.SampledFrom([]uint64{2, 4, 6}).Draw(t, "session")
			o := streams[id]
			if len(o.slots) > 0 && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				s.Free(o.slots[0].Slot)
				o.slots = o.slots[1:]
				continue
			}
			slot, room := s.Get(rapid.IntRange(1, stripe.MaxChunk).Draw(t, "wanted"))
			if room == nil {
				continue
			}
			s.Note(slot, id, o.read)
			n := rapid.IntRange(0, len(room)).Draw(t, "got")
			if n == 0 && rapid.Bool().Draw(t, "killed before it reads") {
				break
			}
			if n == 0 {
				s.Free(slot)
				continue
			}
			for i := range n {
				room[i] = byte(o.read+uint64(i)) ^ byte(id)
			}
			o.slots, o.read = append(o.slots, Kept{slot, o.read, uint32(n)}), o.read+uint64(n)
		}
		gone := rapid.SampledFrom([]uint64{0, 2, 4}).Draw(t, "ended meanwhile")
		again, err := Of(dup(t, m), len(m.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		found, kept, broken := Recover(again, func(id uint64) (uint64, bool) { return streams[id].read, id != gone })
		if len(broken) > 0 {
			t.Fatalf("sessions %v are said to be broken", broken)
		}
		used := 0
		for id, o := range streams {
			if id == gone {
				o.slots = nil
			}
			if !slices.Equal(kept[id], o.slots) {
				t.Fatalf("session %d: found %v, kept was %v", id, kept[id], o.slots)
			}
			for _, k := range kept[id] {
				used += len(found.Bytes(k.Slot))
				for i, b := range found.Bytes(k.Slot)[:k.Length] {
					if b != byte(k.Offset+uint64(i))^byte(id) {
						t.Fatalf("session %d, %v: byte %d is another one", id, k, i)
					}
				}
			}
		}
		if found.Used() != used {
			t.Fatalf("%d bytes are in use, kept are %d", found.Used(), used)
		}
		for _, all := range kept {
			for _, k := range all {
				found.Free(k.Slot)
			}
		}
		for range 3 {
			if slot, room := found.Get(stripe.MaxChunk); len(room) != stripe.MaxChunk {
				t.Fatalf("all is free, and slot %d has %d bytes", slot, len(room))
			}
		}
	})
}

// What cannot be so is not guessed at: more was read than there is room for, or a slot between is missing.
func TestASessionWhoseBytesAreNotAllThereIsBroken(t *testing.T) {
	for name, fill := range map[string]func(*Slots) (read uint64){
		"more than there is room for": func(s *Slots) uint64 {
			slot, room := s.Get(stripe.Block)
			s.Note(slot, 2, 0)
			return uint64(len(room)) + 1
		},
		"less than the slots begin at": func(s *Slots) uint64 {
			slot, _ := s.Get(stripe.Block)
			s.Note(slot, 2, 5)
			return 4
		},
		"a gap": func(s *Slots) uint64 {
			a, room := s.Get(stripe.Block)
			b, _ := s.Get(stripe.Block)
			s.Note(a, 2, 0)
			s.Note(b, 2, uint64(len(room))+1)
			return uint64(len(room)) + 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Map(stripe.MaxChunk)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			read := fill(NewSlots(m))
			s, kept, broken := Recover(m, func(uint64) (uint64, bool) { return read, true })
			if !slices.Equal(broken, []uint64{2}) || len(kept) > 0 || s.Used() > 0 {
				t.Errorf("broken %v, kept %v, %d bytes in use", broken, kept, s.Used())
			}
		})
	}
}

// dup is the mapping's file as another process would have it.
func dup(t interface{ Fatal(...any) }, m *Mapping) *os.File {
	fd, err := unix.FcntlInt(m.File().Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "again")
}

func TestAFileOfAnotherSizeIsRefused(t *testing.T) {
	m, err := Map(stripe.MaxChunk)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := Of(dup(t, m), 2*stripe.MaxChunk); err == nil {
		t.Error("it was mapped")
	}
}
