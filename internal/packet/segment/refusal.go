package segment

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
)

// Refusal is the frame with which a server refuses a SYN (RFC 9293 §3.10.7.1): it acknowledges the SYN and its data. The frame is one that
// Completed has looked at.
func Refusal(frame []byte) []byte {
	s, err := Parse(frame)
	if err != nil {
		panic("segment: a refusal of what is none: " + err.Error())
	}
	b := make([]byte, 0, header.EthernetLen+header.IPv6Len+header.TCPLen)
	b = append(append(b, frame[6:12]...), frame[0:6]...)
	b = append(b, frame[12:14]...)
	b = AppendIP(b, s.Dst, s.Src, header.TCPLen)
	return appendReset(b, s)
}

// hops is what Linux begins with.
const hops = 64

// AppendIP appends the header of a packet with a segment of so many bytes, of the addresses' family.
func AppendIP(b []byte, src, dst netip.Addr, length int) []byte {
	if src.Is6() {
		return header.AppendIPv6(b, src, dst, header.TCP, hops, length)
	}
	at := len(b)
	b = binary.BigEndian.AppendUint16(append(b, 0x45, 0), uint16(ip4Len+length))
	b = append(b, 0, 0, 0x40, 0, hops, header.TCP, 0, 0) // not to be fragmented: then no id is needed
	b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(b[at+10:], ^checksum.Sum(b[at:]))
	return b
}

func appendReset(b []byte, of Segment) []byte {
	at, tcp := len(b), of.Frame[of.L4:]
	ack := binary.BigEndian.Uint32(tcp[4:]) + 1 + uint32(len(of.Frame)-of.Data())
	b = append(append(b, tcp[2:4]...), tcp[0:2]...)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, header.TCPLen/4<<4, 0x14, 0, 0, 0, 0, 0, 0) // RST and ACK
	binary.BigEndian.PutUint16(b[at+checksumAt:], ^checksum.Transport(of.Dst, of.Src, header.TCP, b[at:]))
	return b
}
