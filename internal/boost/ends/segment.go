package ends

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/internal/packet/segment"
)

// Lengths and places of headers.
const (
	ethernetLen = header.EthernetLen
	ip4Len      = 20
	ip6Len      = header.IPv6Len
	tcpLen      = header.TCPLen
	checksumAt  = 16 // in TCP's header
	protoTCP    = header.TCP
)

// refusal is the frame with which a server refuses a SYN (RFC 9293 §3.10.7.1): it acknowledges the SYN and its data.
func refusal(frame []byte) []byte {
	s, err := segment.Parse(frame)
	if err != nil {
		panic("ends: a held SYN does not parse: " + err.Error()) // segment.Completed has looked
	}
	b := make([]byte, 0, ethernetLen+ip6Len+tcpLen)
	b = append(append(b, frame[6:12]...), frame[0:6]...)
	b = append(b, frame[12:14]...)
	b = appendIP(b, s.Dst, s.Src)
	return appendReset(b, s)
}

// hops is what Linux begins with.
const hops = 64

func appendIP(b []byte, src, dst netip.Addr) []byte {
	if src.Is6() {
		b = append(b, 0x60, 0, 0, 0, 0, tcpLen, protoTCP, hops)
		return append(append(b, src.AsSlice()...), dst.AsSlice()...)
	}
	at := len(b)
	b = append(b, 0x45, 0, 0, ip4Len+tcpLen, 0, 0, 0x40, 0, hops, protoTCP, 0, 0) // not to be fragmented: then no id is needed
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(b[at+10:], ^checksum.Sum(b[at:]))
	return b
}

func appendReset(b []byte, of segment.Segment) []byte {
	at, tcp := len(b), of.Frame[of.L4:]
	ack := binary.BigEndian.Uint32(tcp[4:]) + 1 + uint32(len(of.Frame)-of.Data())
	b = append(append(b, tcp[2:4]...), tcp[0:2]...)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, tcpLen/4<<4, 0x14, 0, 0, 0, 0, 0, 0) // RST and ACK
	binary.BigEndian.PutUint16(b[at+checksumAt:], ^sealed(of.Dst, of.Src, b[at:]))
	return b
}

// sealed is the sum of a segment with its pseudo header.
func sealed(src, dst netip.Addr, tcp []byte) uint16 {
	return checksum.Fold(checksum.Add(checksum.Pseudo(src, dst, protoTCP, len(tcp)), tcp))
}
