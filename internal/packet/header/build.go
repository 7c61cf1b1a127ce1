package header

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/packet/checksum"
)

// AppendEthernet appends the header of a frame that carries IPv6. An address that is not given is zeros.
func AppendEthernet(b, to, from []byte) []byte {
	at := len(b)
	b = append(b, make([]byte, EthernetLen)...)
	copy(b[at:at+6], to)
	copy(b[at+6:at+12], from)
	binary.BigEndian.PutUint16(b[at+12:], EtherIPv6)
	return b
}

// AppendIPv6 appends the header of a packet whose payload has so many bytes.
func AppendIPv6(b []byte, src, dst netip.Addr, proto, hops uint8, payload int) []byte {
	from, to := src.As16(), dst.As16()
	b = append(b, 6<<4, 0, 0, 0, byte(payload>>8), byte(payload), proto, hops)
	return append(append(b, from[:]...), to[:]...)
}

// AppendUDP appends the header of a datagram of so many bytes, without a checksum.
func AppendUDP(b []byte, src, dst uint16, body int) []byte {
	b = binary.BigEndian.AppendUint16(b, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	b = binary.BigEndian.AppendUint16(b, uint16(UDPLen+body))
	return append(b, 0, 0)
}

// Flags of TCP.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	PSH = 0x08
	ACK = 0x10
)

// A Segment is TCP's header.
type Segment struct {
	Src, Dst uint16
	Seq, Ack uint32
	Flags    uint8
	Window   uint16
	Options  []byte // a multiple of 4 bytes
}

// Len is how long the header is.
func (s Segment) Len() int { return TCPLen + len(s.Options) }

// Append appends the header, without a checksum.
func (s Segment) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, s.Src)
	b = binary.BigEndian.AppendUint16(b, s.Dst)
	b = binary.BigEndian.AppendUint32(b, s.Seq)
	b = binary.BigEndian.AppendUint32(b, s.Ack)
	b = append(b, byte(s.Len()/4<<4), s.Flags)
	b = binary.BigEndian.AppendUint16(b, s.Window)
	return append(append(b, 0, 0, 0, 0), s.Options...)
}

// Seal writes the checksum of the transport that follows the header at once; a packet that breaks off before its field, or
// carries another protocol, stays as it is.
func Seal(b IPv6) {
	if at, ok := SumAt(b.Next()); ok && len(b) >= IPv6Len+at+2 {
		checksum.Put6(b, IPv6Len, IPv6Len+at, b.Next())
	}
}

// AppendDatagram appends a whole packet of UDP.
func AppendDatagram(b []byte, src, dst netip.AddrPort, hops uint8, body []byte) []byte {
	at := len(b)
	b = slices.Grow(b, IPv6Len+UDPLen+len(body))
	b = AppendIPv6(b, src.Addr(), dst.Addr(), UDP, hops, UDPLen+len(body))
	b = append(AppendUDP(b, src.Port(), dst.Port(), len(body)), body...)
	Seal(b[at:])
	return b
}

// Datagram finds the body of a packet of UDP without extension headers. Its checksum is not looked at: between interfaces
// of one machine, and at a switch that leaves checksums to its ports, it may not have been made yet.
func Datagram(b []byte) (src, dst netip.AddrPort, body []byte, ok bool) {
	if len(b) < IPv6Len+UDPLen || b[0]>>4 != 6 || IPv6(b).Next() != UDP {
		return src, dst, nil, false
	}
	ip, udp := IPv6(b), b[IPv6Len:]
	n := int(binary.BigEndian.Uint16(udp[4:]))
	if n < UDPLen || n > len(udp) {
		return src, dst, nil, false
	}
	src = netip.AddrPortFrom(ip.Src(), binary.BigEndian.Uint16(udp))
	dst = netip.AddrPortFrom(ip.Dst(), binary.BigEndian.Uint16(udp[2:]))
	return src, dst, udp[UDPLen:n], true
}
