package segment

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// Frames with a SYN, as a client's kernel sends them: its last two bytes of TCP's checksum are complete.
var syns = map[string]string{
	"IPv4":              "0200000000bb 0200000000aa 0800 45000028 00004000 4006 0000 c0000207 c6336409 9c41 0050 00000009 00000000 5002 ffff 0000 0000",
	"IPv6":              "0200000000bb 0200000000aa 86dd 60000000 0014 06 40 20010db8000100000000000000000007 20010db8000200000000000000000009 9c41 0050 00000009 00000000 5002 ffff 0000 0000",
	"IPv6 with options": "0200000000bb 0200000000aa 86dd 60000000 001c 3c 40 20010db8000100000000000000000007 20010db8000200000000000000000009 0600010400000000 9c41 0050 00000009 00000000 5002 ffff 0000 0000",
	"IPv4 with data":    "0200000000bb 0200000000aa 0800 4500002b 00004000 4006 0000 c0000207 c6336409 9c41 0050 00000009 00000000 5002 ffff 0000 0000 616263",
}

func frameOf(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// whole computes a checksum as RFC 9293 says, in its own way: over one buffer with the pseudo header.
func whole(t testing.TB, frame []byte) bool {
	t.Helper()
	s, err := Parse(frame)
	if err != nil {
		t.Fatal(err)
	}
	b := append(append([]byte{}, s.Src.AsSlice()...), s.Dst.AsSlice()...)
	length := len(s.Frame) - s.L4
	b = append(b, 0, 6, byte(length>>8), byte(length))
	return checksum.Sum(append(b, s.Frame[s.L4:]...)) == 0xffff
}

func TestChecksumsAreCompleted(t *testing.T) {
	for name, text := range syns {
		f := frameOf(t, text)
		s, err := Parse(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		half := checksum.Fold(checksum.Pseudo(s.Src, s.Dst, header.TCP, len(f)-s.L4))
		f[s.L4+checksumAt], f[s.L4+checksumAt+1] = byte(half>>8), byte(half)
		padded := append(bytes.Clone(f), 0, 0, 0, 0, 0, 0)
		done, err := Completed(padded)
		if err != nil || len(done) != len(f) || !whole(t, done) {
			t.Fatalf("%s: %v: of %d bytes %d are left: %x", name, err, len(padded), len(done), done)
		}
		if again, err := Completed(done); err != nil || !bytes.Equal(again, done) {
			t.Errorf("%s: a whole checksum is changed: %v", name, err)
		}
		done[s.L4+4]++
		if _, err := Completed(done); err == nil {
			t.Errorf("%s: a damaged segment is completed", name)
		}
	}
}

func TestARefusalAcknowledgesTheSYN(t *testing.T) {
	for name, text := range syns {
		f := frameOf(t, text)
		r := Refusal(f)
		of, err := Parse(f)
		s, err2 := Parse(r)
		if err != nil || err2 != nil {
			t.Fatal(name, err, err2)
		}
		tcp := r[s.L4:]
		ack := byte(10)
		if name == "IPv4 with data" {
			ack = 13
		}
		if !bytes.Equal(r[:6], f[6:12]) || !bytes.Equal(r[6:12], f[:6]) || s.Src != of.Dst || s.Dst != of.Src || !whole(t, r) ||
			!bytes.Equal(tcp[:2], f[of.L4+2:of.L4+4]) || !bytes.Equal(tcp[2:4], f[of.L4:of.L4+2]) || !bytes.Equal(tcp[4:14], []byte{0, 0, 0, 0, 0, 0, 0, ack, 0x50, 0x14}) {
			t.Errorf("%s: %x", name, r)
		}
		if s.Src.Is4() && checksum.Sum(r[header.EthernetLen:header.EthernetLen+ip4Len]) != 0xffff {
			t.Errorf("%s: IP's checksum is wrong: %x", name, r)
		}
	}
}

// A segment has its two ends; less than a whole one, a later fragment and another protocol are none.
func TestWhatIsNoSegment(t *testing.T) {
	for name, text := range syns {
		f := frameOf(t, text)
		s, err := Parse(f)
		if err != nil {
			t.Fatal(name, err)
		}
		from, to := s.Ends()
		if got := fmt.Sprint(from, " ", to); got != "192.0.2.7:40001 198.51.100.9:80" && got != "[2001:db8:1::7]:40001 [2001:db8:2::9]:80" {
			t.Errorf("%s: %s", name, got)
		}
		for n := range len(f) {
			if _, err := Parse(f[:n]); err == nil {
				t.Errorf("%s: %d bytes of it are taken for a segment", name, n)
			}
		}
	}
	for name, at := range map[string][2]int{"IPv4": {21, 1}, "IPv6": {20, 17}} { // a fragment's offset; UDP
		f := frameOf(t, syns[name])
		f[at[0]] = byte(at[1])
		if _, err := Parse(f); err == nil {
			t.Errorf("%s: %x is taken for a segment", name, f)
		}
	}
}

func TestOptionsAreFound(t *testing.T) {
	for options, want := range map[string]bool{"": false, "01011312" + strings.Repeat("00", 16): true, "020405b4": false, "0013": false, "0501": false, "0204": false} {
		b, err := hex.DecodeString(options)
		if err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, header.TCPLen)
		frame[12] = byte((header.TCPLen+len(b)+3)/4) << 4
		frame = append(frame, append(b, make([]byte, (4-len(b)%4)%4)...)...)
		if got := (Segment{Frame: frame}).Has(19); got != want {
			t.Errorf("options %s: %v", options, got)
		}
	}
}

// Whatever comes is an error at most, and no panic.
func TestAnythingMayBeParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := append(rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "addresses"), rapid.SampledFrom([][]byte{{8, 0}, {0x86, 0xdd}, {1, 2}}).Draw(t, "type")...)
		f = append(f, rapid.SliceOfN(rapid.Byte(), 0, 120).Draw(t, "packet")...)
		if s, err := Parse(f); err == nil && (s.L4+header.TCPLen > len(s.Frame) || s.Data() > len(s.Frame)) {
			t.Fatalf("%+v", s)
		}
		if s, err := Parse(f); err == nil {
			s.Has(19)
		}
		Completed(f)
	})
}
