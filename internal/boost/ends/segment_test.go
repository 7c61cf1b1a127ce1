package ends

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
	s, err := parse(frame)
	if err != nil {
		t.Fatal(err)
	}
	b := append(append([]byte{}, s.src.AsSlice()...), s.dst.AsSlice()...)
	length := len(s.frame) - s.l4
	b = append(b, 0, 6, byte(length>>8), byte(length))
	return fold(sum(append(b, s.frame[s.l4:]...))) == 0xffff
}

func TestChecksumsAreCompleted(t *testing.T) {
	for name, text := range syns {
		f := frameOf(t, text)
		s, err := parse(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		half := fold(pseudo(s.src, s.dst, len(f)-s.l4))
		f[s.l4+checksumAt], f[s.l4+checksumAt+1] = byte(half>>8), byte(half)
		padded := append(bytes.Clone(f), 0, 0, 0, 0, 0, 0)
		done, err := completed(padded)
		if err != nil || len(done) != len(f) || !whole(t, done) {
			t.Fatalf("%s: %v: of %d bytes %d are left: %x", name, err, len(padded), len(done), done)
		}
		if again, err := completed(done); err != nil || !bytes.Equal(again, done) {
			t.Errorf("%s: a whole checksum is changed: %v", name, err)
		}
		done[s.l4+4]++
		if _, err := completed(done); err == nil {
			t.Errorf("%s: a damaged segment is completed", name)
		}
	}
}

func TestARefusalAcknowledgesTheSYN(t *testing.T) {
	for name, text := range syns {
		f := frameOf(t, text)
		r := refusal(f)
		of, err := parse(f)
		s, err2 := parse(r)
		if err != nil || err2 != nil {
			t.Fatal(name, err, err2)
		}
		tcp := r[s.l4:]
		ack := byte(10)
		if name == "IPv4 with data" {
			ack = 13
		}
		if !bytes.Equal(r[:6], f[6:12]) || !bytes.Equal(r[6:12], f[:6]) || s.src != of.dst || s.dst != of.src || !whole(t, r) ||
			!bytes.Equal(tcp[:2], f[of.l4+2:of.l4+4]) || !bytes.Equal(tcp[2:4], f[of.l4:of.l4+2]) || !bytes.Equal(tcp[4:14], []byte{0, 0, 0, 0, 0, 0, 0, ack, 0x50, 0x14}) {
			t.Errorf("%s: %x", name, r)
		}
		if s.src.Is4() && fold(sum(r[ethernetLen:ethernetLen+ip4Len])) != 0xffff {
			t.Errorf("%s: IP's checksum is wrong: %x", name, r)
		}
	}
}

// What the program in the kernel would not have told is an error, and no panic.
func TestAnythingMayBeParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := append(rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "addresses"), rapid.SampledFrom([][]byte{{8, 0}, {0x86, 0xdd}, {1, 2}}).Draw(t, "type")...)
		f = append(f, rapid.SliceOfN(rapid.Byte(), 0, 120).Draw(t, "packet")...)
		if s, err := parse(f); err == nil && (s.l4+tcpLen > len(s.frame) || s.headerEnd(s.frame) > len(s.frame)) {
			t.Fatalf("%+v", s)
		}
		completed(f)
	})
}
