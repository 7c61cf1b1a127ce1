package forward

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/checksum"
)

// An upper is what a packet carries above IP.
type upper struct {
	protocol byte
	at       int  // where it begins
	named    int  // where the field is that names the protocol
	fragment bool // there is more of it elsewhere
	first    bool // it begins here
}

// Extension headers of IPv6 (RFC 8200) that all have the same shape.
const (
	hopByHop     = 0
	routing      = 43
	fragment     = 44
	destinations = 60
)

// upper6 walks over extension headers. The packet is whole up to its IP header.
func upper6(b []byte) upper {
	u := upper{protocol: b[6], at: 40, named: 6, first: true}
	for range 16 {
		switch u.protocol {
		case hopByHop, routing, destinations:
			if len(b) < u.at+8 {
				return u
			}
			u.protocol, u.named, u.at = b[u.at], u.at, u.at+8+int(b[u.at+1])*8
		case fragment:
			if len(b) < u.at+8 {
				return u
			}
			place := binary.BigEndian.Uint16(b[u.at+2:])
			u.fragment, u.first = place&^6 != 0, place>>3 == 0
			u.protocol, u.named, u.at = b[u.at], u.at, u.at+8
			if !u.first {
				return u
			}
		default:
			return u
		}
	}
	return u
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
		return netip.AddrFrom16([16]byte(b[24:40]))
	}
	return netip.AddrFrom4([4]byte(b[16:20]))
}

func source(b []byte, p *emu.Packet) netip.Addr {
	if p.IPv6() {
		return netip.AddrFrom16([16]byte(b[8:24]))
	}
	return netip.AddrFrom4([4]byte(b[12:16]))
}

// finish6 puts an IPv6 header in front of n bytes in the scratch memory, and the checksum where it belongs in them.
func (f *Forwarder) finish6(from, to netip.Addr, protocol byte, n int, hops uint8, sumAt int) []byte {
	b := f.scratch[:40+n]
	clear(b[:40])
	b[0], b[6], b[7] = 0x60, protocol, hops
	binary.BigEndian.PutUint16(b[4:], uint16(n))
	putAddr(b[8:], from)
	putAddr(b[24:], to)
	body := b[40:]
	body[sumAt], body[sumAt+1] = 0, 0
	binary.BigEndian.PutUint16(body[sumAt:], ^checksum.Fold(checksum.Add(checksum.Pseudo(from, to, protocol, n), body)))
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
