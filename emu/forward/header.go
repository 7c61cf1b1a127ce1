package forward

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
)

// An upper is what a packet carries above IP.
type upper struct {
	protocol byte
	at       int  // where it begins
	named    int  // where the field is that names the protocol
	fragment bool // there is more of it elsewhere
	first    bool // it begins here
}

// mostExtensions is how many a router walks over.
const mostExtensions = 16

// upper6 walks over extension headers, as far as they go. The packet is whole up to its IP header.
func upper6(b []byte) upper {
	u, _ := header.Above(b, mostExtensions)
	return upper{protocol: u.Proto, at: u.At, named: u.Named, fragment: u.Piece != header.Whole, first: u.Piece != header.Later}
}

func upper4(b []byte) upper {
	place := binary.BigEndian.Uint16(b[6:])
	return upper{protocol: b[9], at: int(b[0]&15) * 4, named: 9, fragment: place&0x3fff != 0, first: place&0x1fff == 0}
}

func upperOf(b []byte, p *emu.Packet) upper {
	if p.IPv6() {
		return upper6(b)
	}
	return upper4(b)
}

func transport(b []byte, p *emu.Packet) byte { return upperOf(b, p).protocol }

func destination(b []byte, p *emu.Packet) netip.Addr {
	if p.IPv6() {
		return header.IPv6(b).Dst()
	}
	return netip.AddrFrom4([4]byte(b[16:20]))
}

func source(b []byte, p *emu.Packet) netip.Addr {
	if p.IPv6() {
		return header.IPv6(b).Src()
	}
	return netip.AddrFrom4([4]byte(b[12:16]))
}

// finish6 puts an IPv6 header in front of n bytes in the scratch memory, and the checksum into them.
func (f *Forwarder) finish6(from, to netip.Addr, protocol byte, n int, hops uint8) []byte {
	b := f.scratch[:40+n]
	header.AppendIPv6(b[:0], from, to, protocol, hops, n)
	header.Seal(b)
	return b
}

// finish4 puts an IPv4 header in front of n bytes in the scratch memory, of internetwork control (RFC 1812, 4.3.2.5).
func (f *Forwarder) finish4(from, to netip.Addr, protocol byte, n int) []byte {
	b := f.scratch[:20+n]
	clear(b[:20])
	b[0], b[1], b[8], b[9] = 0x45, 0xc0, ownHops, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	f.identity++
	binary.BigEndian.PutUint16(b[4:], f.identity)
	putAddr(b[12:], from)
	putAddr(b[16:], to)
	binary.BigEndian.PutUint16(b[10:], ^checksum.Sum(b[:20]))
	return b
}

func putAddr(b []byte, a netip.Addr) {
	if a.Is4() {
		four := a.As4()
		copy(b, four[:])
		return
	}
	six := a.As16()
	copy(b, six[:])
}
