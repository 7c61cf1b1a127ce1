package header

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/packet/checksum"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func addrs(t *rapid.T) netip.Addr {
	return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")))
}

func ports(t *rapid.T) netip.AddrPort {
	return netip.AddrPortFrom(addrs(t), rapid.Uint16().Draw(t, "port"))
}

func bodies(t *rapid.T, most int) []byte {
	return rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, "body")
}

// good reports whether the checksum of the transport at that place is right.
func good(ip IPv6, at int, proto uint8) bool {
	return checksum.Fold(checksum.Add(checksum.Pseudo(ip.Src(), ip.Dst(), proto, len(ip)-at), ip[at:])) == checksum.Good
}

func TestADatagramIsReadAsItWasBuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, dst, body, hops := ports(t), ports(t), bodies(t, 100), rapid.Byte().Draw(t, "hops")
		before := bodies(t, 20)
		all := AppendDatagram(bytes.Clone(before), src, dst, hops, body)
		ip := IPv6(all[len(before):])
		if !bytes.HasPrefix(all, before) || ip.Says() != len(ip) || ip.Hops() != hops || ip.Next() != UDP || !good(ip, IPv6Len, UDP) {
			t.Fatalf("built %x", all)
		}
		if binary.BigEndian.Uint16(ip[IPv6Len+6:]) == 0 {
			t.Fatal("no checksum, which UDP over IPv6 does not allow")
		}
		from, to, got, ok := Datagram(append(bytes.Clone(ip), "padding"...))
		if !ok || from != src || to != dst || !bytes.Equal(got, body) {
			t.Fatalf("read %v, %v, %x, %v", from, to, got, ok)
		}
		for n := range ip {
			if _, _, _, ok := Datagram(ip[:n]); ok {
				t.Fatalf("a datagram in the first %d bytes", n)
			}
		}
		if u, ok := Above(ip, Most); !ok || u != (Upper{Proto: UDP, At: IPv6Len, Named: 6}) {
			t.Fatalf("above: %v, %v", u, ok)
		}
	})
}

func TestASegmentIsWhatTCPReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Segment{Src: rapid.Uint16().Draw(t, "from"), Dst: rapid.Uint16().Draw(t, "to"), Seq: rapid.Uint32().Draw(t, "seq"), Ack: rapid.Uint32().Draw(t, "ack"),
			Flags: rapid.Byte().Draw(t, "flags"), Window: rapid.Uint16().Draw(t, "window"), Options: make([]byte, 4*rapid.IntRange(0, 10).Draw(t, "options"))}
		ip := IPv6(s.Append(AppendIPv6(nil, addrs(t), addrs(t), TCP, 64, s.Len())))
		Seal(ip)
		b := ip[IPv6Len:]
		if len(b) != s.Len() || int(b[12]>>4)*4 != s.Len() || b[13] != s.Flags || binary.BigEndian.Uint16(b) != s.Src || binary.BigEndian.Uint16(b[2:]) != s.Dst ||
			binary.BigEndian.Uint32(b[4:]) != s.Seq || binary.BigEndian.Uint32(b[8:]) != s.Ack || !readsAs(Transport(b), s) || binary.BigEndian.Uint16(b[14:]) != s.Window || !good(ip, IPv6Len, TCP) {
			t.Fatalf("%+v is %x", s, b)
		}
	})
}

func TestAFrameIsReadAsItWasBuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		to, from := rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "to"), rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "from")
		before := bodies(t, 20)
		packet := AppendDatagram(nil, ports(t), ports(t), 64, bodies(t, 20))
		frame := append(AppendEthernet(bytes.Clone(before), to, from), packet...)[len(before):]
		ip, ok := InFrame(frame)
		if !ok || !bytes.Equal(ip, packet) || !bytes.Equal(frame[:6], to) || !bytes.Equal(frame[6:12], from) {
			t.Fatalf("from %x to %x: %x", from, to, frame)
		}
	})
	if frame := AppendEthernet(nil, nil, nil); !bytes.Equal(frame[:12], make([]byte, 12)) {
		t.Errorf("without addresses: %x", frame)
	}
}

func TestAnErrorQuotesAPacketOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cause := AppendDatagram(nil, ports(t), ports(t), 64, bodies(t, 20))
		fault := IPv6(append(AppendIPv6(nil, addrs(t), addrs(t), ICMPv6, 64, ICMPv6Len+len(cause)), 1, 3, 0, 0, 0, 0, 0, 7))
		quote, ok := append(fault, cause...).Quoted(IPv6Len)
		if !ok || !bytes.Equal(quote, cause) {
			t.Fatalf("%x quotes %x, %v", fault, quote, ok)
		}
		upper := Transport(fault[IPv6Len:])
		if typ, code := upper.Kind(); typ != 1 || code != 3 || upper.Argument() != 7 {
			t.Fatalf("%x is type %d, code %d, argument %d", upper, typ, code, upper.Argument())
		}
		if quote, ok := append(fault, cause[:IPv6Len-1]...).Quoted(IPv6Len); ok {
			t.Fatalf("less than a header is quoted as %x", quote)
		}
	})
}

// readsAs reports whether the view of a header says what it was built from.
func readsAs(b Transport, s Segment) bool {
	src, dst := b.Ports()
	return src == s.Src && dst == s.Dst && b.Seq() == s.Seq && b.Ack() == s.Ack && b.Flags() == s.Flags && b.Head() == s.Len()
}

// An extension is one that a host puts in.
type extension struct {
	kind byte
	head []byte // but for its first byte, which names what follows
}

func extensions(t *rapid.T) extension {
	kind := rapid.SampledFrom([]byte{hopByHop, routing, destination, Fragment}).Draw(t, "kind")
	if kind == Fragment {
		return extension{kind, []byte{0, 0, 0, 1, 2, 3, 4}} // in one piece
	}
	n := rapid.IntRange(0, 3).Draw(t, "length")
	return extension{kind, append([]byte{byte(n)}, make([]byte, 6+8*n)...)}
}

func with(t *rapid.T, all []extension, proto uint8, body []byte) IPv6 {
	b := AppendIPv6(nil, addrs(t), addrs(t), 0, 64, 0)
	named := 6
	for _, x := range all {
		b[named], named = x.kind, len(b)
		b = append(append(b, 0), x.head...)
	}
	b[named] = proto
	return append(b, body...)
}

func TestTheTransportIsFoundBehindExtensions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(extensions), 0, Most-1).Draw(t, "extensions")
		body := bodies(t, 30)
		ip := with(t, all, TCP, body)
		u, ok := Above(ip, Most)
		if !ok || u.Proto != TCP || u.Piece != Whole || !bytes.Equal(ip[u.At:], body) || ip[u.Named] != TCP {
			t.Fatalf("%x: %+v, %v", ip, u, ok)
		}
		for n := IPv6Len; n < u.At && len(all) > 0; n++ { // breaks off within the last, or before
			if u, ok := Above(ip[:n], Most); ok && u.At <= n {
				t.Fatalf("%x: %+v", ip[:n], u)
			}
		}
		more := rapid.SliceOfN(rapid.Custom(extensions), Most, Most+3).Draw(t, "too many")
		if u, ok := Above(with(t, more, TCP, body), Most); ok {
			t.Fatalf("past %d extensions: %+v", len(more), u)
		}
	})
}

func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place, id := rapid.Uint16().Draw(t, "place"), rapid.Uint32().Draw(t, "id")
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16([]byte{0}, place), id)
		u, ok := Above(with(t, []extension{{Fragment, head}, {destination, make([]byte, 7)}}, UDP, make([]byte, 8)), Most)
		want := Upper{Proto: UDP, At: IPv6Len + 16, Named: IPv6Len + 8, ID: id}
		switch {
		case place>>3 != 0:
			want = Upper{Proto: destination, At: IPv6Len + 8, Named: IPv6Len, ID: id, Piece: Later}
		case place&1 != 0:
			want.Piece = First
		}
		if !ok || u != want {
			t.Fatalf("place %04x: %+v, %v, want %+v", place, u, ok, want)
		}
	})
}

// Whatever comes, the walk stays within what it was given or says that it did not, and Seal makes a right checksum or leaves
// the packet alone.
func FuzzAbove(f *testing.F) {
	f.Add(make([]byte, IPv6Len), 6)
	f.Add(AppendDatagram(nil, netip.MustParseAddrPort("[fd00::1]:7"), netip.MustParseAddrPort("[fd00::2]:7"), 64, []byte("x")), 6)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		Datagram(b)
		if ip, ok := InFrame(b); ok && len(ip) < IPv6Len {
			t.Errorf("a packet of %d bytes", len(ip))
		}
		if len(b) < IPv6Len {
			return
		}
		u, ok := Above(b, most&15)
		if u.At < IPv6Len || u.Named >= u.At || u.Named >= len(b) || b[u.Named] != u.Proto || ok && u.Piece == Later && u.At > len(b) {
			t.Errorf("%x: %+v, %v", b, u, ok)
		}
		was := bytes.Clone(b)
		Seal(b)
		if _, sealed := SumAt(b[6]); !bytes.Equal(b, was) && (!sealed || !good(b, IPv6Len, b[6])) {
			t.Errorf("sealed %x as %x", was, b)
		}
	})
}
