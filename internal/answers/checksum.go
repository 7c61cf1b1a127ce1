package answers

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/sid"
)

// sum16 adds 16-bit words; a last byte counts as the upper half of one.
func sum16(b []byte) (s uint64) {
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

// fold makes the one's complement sum of 16 bits.
func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// pseudoSum is that of the pseudo header.
func pseudoSum(src, dst netip.Addr, length uint32, proto sid.Proto) uint64 {
	return sum16(src.AsSlice()) + sum16(dst.AsSlice()) + uint64(length>>16) + uint64(length&0xffff) + uint64(proto)
}

// checksumAt is where the transport checksum lies in ip; false where there is none.
func (p *packet) checksumAt() (int, bool) {
	switch {
	case p.fragment == laterFragment:
		return 0, false
	case p.proto == sid.TCP:
		return p.l4 + 16, true
	case p.proto == sid.UDP:
		return p.l4 + 6, true
	case p.proto == sid.ICMPv6:
		return p.l4 + 2, true
	}
	return 0, false
}

// unfinished says whether the checksum is still the half that an offloading sender leaves: the pseudo header's sum.
func (p *packet) unfinished(at int) bool {
	if p.fragment != whole || !p.complete() {
		return false
	}
	half := pseudoSum(p.src, p.dst, uint32(len(p.ip)-p.l4), p.proto)
	return binary.BigEndian.Uint16(p.ip[at:]) == fold(half) && fold(half+sum16(p.ip[p.l4:])) != 0xffff
}

// complete says whether all of the packet is there.
func (p *packet) complete() bool {
	return len(p.ip) == ipv6Len+int(binary.BigEndian.Uint16(p.ip[4:]))
}

// sentTo is the frame with another destination. The transport must be parsed. Who offloads to its interface
// leaves half a checksum, a switch that carries offloads punts it so, and what comes back from us counts as whole.
func (p *packet) sentTo(dst netip.Addr) []byte {
	frame := bytes.Clone(p.frame)
	ip := frame[ethernetLen:]
	copy(ip[24:40], dst.AsSlice())
	at, ok := p.checksumAt()
	if !ok {
		return frame
	}
	was := binary.BigEndian.Uint16(ip[at:])
	switch {
	case p.unfinished(at):
		SetChecksum(ip, p.l4, at, p.src, dst, p.proto)
	case p.proto == sid.UDP && was == 0: // IPv6 does not allow that, and whoever gets it says so
	default:
		store(ip, at, p.proto, uint64(^was)+sum16(dst.AsSlice())+8*0xffff-sum16(p.dst.AsSlice()))
	}
	return frame
}

// Rewrite gives the packet, in another place or a whole train of its kind, the destination that was decided. The sum
// of a partial checksum is that of the pseudo header alone, not its complement.
func (a Answer) Rewrite(ip []byte, partial bool) {
	old := sum16(ip[24:40])
	dst := a.To.As16()
	copy(ip[24:40], dst[:])
	at, ok := a.packet.checksumAt()
	if !ok {
		return
	}
	was := binary.BigEndian.Uint16(ip[at:])
	switch {
	case partial:
		binary.BigEndian.PutUint16(ip[at:], fold(uint64(was)+sum16(dst[:])+8*0xffff-old))
	case a.packet.proto == sid.UDP && was == 0:
	default:
		store(ip, at, a.packet.proto, uint64(^was)+sum16(dst[:])+8*0xffff-old)
	}
}

// SetChecksum makes the whole checksum of what begins at l4.
func SetChecksum(ip []byte, l4, at int, src, dst netip.Addr, proto sid.Proto) {
	binary.BigEndian.PutUint16(ip[at:], 0)
	store(ip, at, proto, pseudoSum(src, dst, uint32(len(ip)-l4), proto)+sum16(ip[l4:]))
}

// store writes the checksum that a sum makes.
func store(ip []byte, at int, proto sid.Proto, s uint64) {
	sum := ^fold(s)
	if sum == 0 && proto == sid.UDP {
		sum = 0xffff // 0 would say that there is none
	}
	binary.BigEndian.PutUint16(ip[at:], sum)
}
