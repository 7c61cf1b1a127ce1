package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/boost/frame"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

var modes = []frame.Protection{frame.Sealed, frame.Authenticated, frame.None}

func secretOf(b byte) (s Secret) {
	for i := range s {
		s[i] = b
	}
	return s
}

func pair(m frame.Protection) (*Sealer, *Opener) {
	return NewSealer(m, secretOf(7), 1, FromDialer), NewOpener(m, secretOf(7), 1, FromDialer)
}

// What is sealed opens, in its order, whatever its length, and the payload is left as it was: it may be sent again elsewhere.
func TestFramesOpenInTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(modes).Draw(t, "mode")
		s, o := pair(m)
		for _, payload := range rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 1, 20).Draw(t, "payloads") {
			header := rapid.SliceOfN(rapid.Byte(), 24, 24).Draw(t, "header")
			kept := bytes.Clone(payload)
			before := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "other frames")
			wire := s.Seal(slices.Concat(before, header), payload)
			if len(wire) != len(before)+len(header)+len(payload)+m.Overhead() || !bytes.Equal(wire[:len(before)], before) {
				t.Fatalf("%v: %d bytes on the wire for %d, behind %d", m, len(wire), len(payload), len(before))
			}
			if !bytes.Equal(payload, kept) {
				t.Fatalf("%v: the payload was changed", m)
			}
			got, err := o.Open(wire[len(before):])
			if err != nil || !bytes.Equal(got, payload) {
				t.Fatalf("%v: %x (%v), want %x", m, got, err, payload)
			}
		}
	})
}

// A bit that changes on the way, in header, payload or trailer, is found in every mode.
func TestAChangedBitIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(modes).Draw(t, "mode")
		header := rapid.SliceOfN(rapid.Byte(), 24, 24).Draw(t, "header")
		payload := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
		s, o := pair(m)
		frame := s.Seal(bytes.Clone(header), payload)
		frame[rapid.IntRange(0, len(frame)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := o.Open(frame); !errors.Is(err, ErrForged) {
			t.Fatalf("%v: opened with %v", m, err)
		}
	})
}

// Whoever is on the way and has no key cannot leave a frame out, repeat it, exchange two, put it on another connection, or send
// it back.
func TestFramesStayInTheirPlace(t *testing.T) {
	header, payload := make([]byte, 24), []byte("bytes of a stream")
	for _, m := range []frame.Protection{frame.Sealed, frame.Authenticated} {
		for name, o := range map[string]*Opener{
			"another connection":   NewOpener(m, secretOf(7), 2, FromDialer),
			"the other direction":  NewOpener(m, secretOf(7), 1, ToDialer),
			"another trunk":        NewOpener(m, secretOf(8), 1, FromDialer),
			"another protection":   NewOpener(frame.Sealed+frame.Authenticated-m, secretOf(7), 1, FromDialer),
			"a frame was left out": NewOpener(m, secretOf(7), 1, FromDialer),
		} {
			s, _ := pair(m)
			wire := s.Seal(bytes.Clone(header), payload)
			if name == "a frame was left out" {
				wire = s.Seal(bytes.Clone(header), payload)
			}
			if _, err := o.Open(wire); !errors.Is(err, ErrForged) {
				t.Errorf("%v, %s: opened with %v", m, name, err)
			}
		}
		s, o := pair(m)
		wire := s.Seal(bytes.Clone(header), payload)
		if _, err := o.Open(bytes.Clone(wire)); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Open(wire); !errors.Is(err, ErrForged) {
			t.Errorf("%v: a frame opened twice", m)
		}
	}
}

// Both ends change to the next key at the same frame, and what follows opens.
func TestKeysChangeAtBothEndsAtOnce(t *testing.T) {
	header := make([]byte, 24)
	for _, m := range []frame.Protection{frame.Sealed, frame.Authenticated} {
		s, o := pair(m)
		first := s.key.secret
		for i := range 6 {
			if i == 3 { // so much was sent
				s.key.blocks, o.key.blocks = rekeyAfter+1, rekeyAfter+1
			}
			if _, err := o.Open(s.Seal(bytes.Clone(header), []byte{byte(i)})); err != nil {
				t.Fatalf("%v, frame %d: %v", m, i, err)
			}
		}
		if s.key.secret == first || s.key.frames != 3 {
			t.Errorf("%v: the key did not change: %d frames under it", m, s.key.frames)
		}
	}
}

// A HELLO that somebody made up, or of another connection, is not taken.
func TestAHelloNeedsTheSecret(t *testing.T) {
	safety.Test(t, safety.Door)
	hello := []byte("what a HELLO says")
	mac := secretOf(7).MAC(1, FromDialer, hello)
	if !secretOf(7).Verify(1, FromDialer, hello, mac[:]) {
		t.Error("a HELLO of the other end is refused")
	}
	for name, ok := range map[string]bool{
		"another secret":     secretOf(8).Verify(1, FromDialer, hello, mac[:]),
		"another connection": secretOf(7).Verify(2, FromDialer, hello, mac[:]),
		"another HELLO":      secretOf(7).Verify(1, FromDialer, hello[1:], mac[:]),
		"a short MAC":        secretOf(7).Verify(1, FromDialer, hello, mac[:8]),
		"the other way":      secretOf(7).Verify(1, ToDialer, hello, mac[:]),
		"none":               secretOf(7).Verify(1, FromDialer, hello, nil),
	} {
		if ok {
			t.Errorf("%s is taken", name)
		}
	}
}

// Protecting and opening allocate nothing once their buffers are there.
func TestNothingIsAllocatedForAFrame(t *testing.T) {
	payload, wire := make([]byte, 64<<10), make([]byte, frame.HeaderLen, 65<<10)
	for _, m := range modes {
		s, o := pair(m)
		if n := testing.AllocsPerRun(20, func() {
			if _, err := o.Open(s.Seal(wire, payload)); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations for a frame", m, n)
		}
	}
}

// Whatever comes, nothing that was not sealed opens, and nothing panics.
func FuzzOpen(f *testing.F) {
	f.Add(uint8(1), make([]byte, 24), make([]byte, 40))
	f.Add(uint8(3), []byte{}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, mode uint8, header, wire []byte) {
		m := modes[int(mode)%len(modes)]
		_, o := pair(m)
		kept := slices.Concat(header, wire)
		_, err := o.Open(slices.Clone(kept))
		if err == nil && m != frame.None {
			t.Errorf("%v: %x opened", m, kept)
		}
		if end := len(kept) - m.Overhead(); err == nil && binary.BigEndian.Uint32(kept[end:]) != crc32.Checksum(kept[:end], castagnoli) {
			t.Errorf("%x opened, which is not its checksum", kept)
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	for _, m := range modes {
		for _, size := range []int{64 << 10, 1 << 20} {
			payload, wire := make([]byte, size), make([]byte, frame.HeaderLen, frame.HeaderLen+size+frame.MaxOverhead)
			b.Run(m.String()+"/seal/"+sizes[size], func(b *testing.B) {
				s, _ := pair(m)
				b.SetBytes(int64(size))
				for b.Loop() {
					s.Seal(wire, payload)
				}
			})
			b.Run(m.String()+"/both/"+sizes[size], func(b *testing.B) {
				s, o := pair(m)
				b.SetBytes(int64(size))
				for b.Loop() {
					if _, err := o.Open(s.Seal(wire, payload)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

var sizes = map[int]string{64 << 10: "64KiB", 1 << 20: "1MiB"}
