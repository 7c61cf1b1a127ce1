package answers

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// pseudoSum is that of the pseudo header.
func (p *packet) pseudoSum() uint64 {
	return checksum.Pseudo(p.src, p.dst, uint8(p.proto), len(p.ip)-p.l4)
}

// checksumAt is where the transport checksum lies in ip; false where there is none.
func (p *packet) checksumAt() (int, bool) {
	at, ok := header.SumAt(uint8(p.proto))
	return p.l4 + at, ok && p.fragment != laterFragment
}

// unfinished says whether the checksum is still the half that an offloading sender leaves: the pseudo header's sum.
func (p *packet) unfinished(at int) bool {
	if p.fragment != whole || !p.complete() {
		return false
	}
	half := p.pseudoSum()
	return binary.BigEndian.Uint16(p.ip[at:]) == checksum.Fold(half) && checksum.Fold(checksum.Add(half, p.ip[p.l4:])) != checksum.Good
}

// complete says whether all of the packet is there.
func (p *packet) complete() bool {
	return len(p.ip) == p.ip.Says()
}

// sentTo is the frame with another destination and label. The transport must be parsed. Who offloads to its interface
// leaves half a checksum, a switch that carries offloads punts it so, and what comes back from us counts as whole.
func (p *packet) sentTo(dst netip.Addr, label sid.Label) []byte {
	frame := bytes.Clone(p.frame)
	ip := frame[ethernetLen:]
	old := checksum.Sum(ip[24:40])
	copy(ip[24:40], dst.AsSlice())
	label.Put(ip)
	at, ok := p.checksumAt()
	if !ok {
		return frame
	}
	switch {
	case p.unfinished(at):
		checksum.Put6(ip, p.l4, at, uint8(p.proto))
	case p.proto == sid.UDP && binary.BigEndian.Uint16(ip[at:]) == 0: // IPv6 does not allow that, and whoever gets it says so
	default:
		redirect(ip[at:], p.proto, old, checksum.Sum(ip[24:40]))
	}
	return frame
}

// Rewrite gives the packet, in another place or a whole train of its kind, the destination and label that were decided. The sum
// of a partial checksum is that of the pseudo header alone, not its complement.
func (a Answer) Rewrite(ip []byte, partial bool) {
	old := checksum.Sum(ip[24:40])
	dst := a.To.As16()
	copy(ip[24:40], dst[:])
	a.label.Put(ip)
	at, ok := a.packet.checksumAt()
	if !ok {
		return
	}
	was, now := binary.BigEndian.Uint16(ip[at:]), checksum.Sum(dst[:])
	switch {
	case partial:
		binary.BigEndian.PutUint16(ip[at:], checksum.Plus(checksum.Plus(was, ^old), now))
	case a.packet.proto == sid.UDP && was == 0:
	default:
		redirect(ip[at:], a.packet.proto, old, now)
	}
}

// redirect changes the checksum in b for a destination in the place of another, given the sums of both.
func redirect(b []byte, proto sid.Proto, was, is uint16) {
	checksum.Update(b, was, is)
	if proto == sid.UDP {
		binary.BigEndian.PutUint16(b, checksum.NonZero(binary.BigEndian.Uint16(b)))
	}
}
