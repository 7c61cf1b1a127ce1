package ends

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/segment"
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
	s, err := segment.Parse(frame)
	if err != nil {
		t.Fatal(err)
	}
	b := append(append([]byte{}, s.Src.AsSlice()...), s.Dst.AsSlice()...)
	length := len(s.Frame) - s.L4
	b = append(b, 0, 6, byte(length>>8), byte(length))
	return checksum.Sum(append(b, s.Frame[s.L4:]...)) == 0xffff
}

func TestARefusalAcknowledgesTheSYN(t *testing.T) {
	for name, text := range syns {
		f := frameOf(t, text)
		r := refusal(f)
		of, err := segment.Parse(f)
		s, err2 := segment.Parse(r)
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
		if s.Src.Is4() && checksum.Sum(r[ethernetLen:ethernetLen+ip4Len]) != 0xffff {
			t.Errorf("%s: IP's checksum is wrong: %x", name, r)
		}
	}
}
