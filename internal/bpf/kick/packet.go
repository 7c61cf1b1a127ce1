package kick

import "scaffold.dev/scaffold/internal/packet/header"

const (
	ip6Len    = header.IPv6Len
	tcpLen    = header.TCPLen
	packetLen = ip6Len + header.ICMPv6Len + ip6Len + tcpLen // the largest packet made here

	nearHops = 255 // as from the link, for programs that set IPV6_MINHOPCOUNT
)

// appendNoRoute appends an ICMPv6 "no route to destination" (RFC 4443 §3.1) that quotes the header of the
// segment with the socket's first unacknowledged byte. The socket's own address receives it; that it
// also sends it keeps filters content which know only our addresses on the loopback.
func appendNoRoute(b []byte, s *Socket) []byte {
	b = header.AppendIPv6(b, s.Local.Addr(), s.Local.Addr(), header.ICMPv6, nearHops, header.ICMPv6Len+ip6Len+tcpLen)
	b = append(b, 1, 0, 0, 0, 0, 0, 0, 0) // destination unreachable, no route
	return sealed(appendTCP(b, s.Tuple, header.Segment{Seq: s.SndUna, Ack: s.RcvNxt, Flags: header.ACK}))
}

// appendAck appends a pure acknowledgement as the peer would repeat it: nothing new in it.
func appendAck(b []byte, s *Socket) []byte {
	window := uint16(min(s.SndWnd>>s.SndShift, 0xffff))
	return sealed(appendTCP(b, s.reverse(), header.Segment{Seq: s.RcvNxt, Ack: s.SndUna, Flags: header.ACK, Window: window}))
}

// appendReset appends a reset as the peer would send it: with exactly the next sequence number that is
// expected, so that it is no challenge (RFC 5961 §3.2).
func appendReset(b []byte, s *Socket) []byte {
	return sealed(appendTCP(b, s.reverse(), header.Segment{Seq: s.RcvNxt, Ack: s.SndUna, Flags: header.RST | header.ACK}))
}

func (t Tuple) reverse() Tuple { return Tuple{Local: t.Peer, Peer: t.Local} }

// appendTCP appends a packet from the tuple's local end, with an empty checksum.
func appendTCP(b []byte, t Tuple, s header.Segment) []byte {
	s.Src, s.Dst = t.Local.Port(), t.Peer.Port()
	return s.Append(header.AppendIPv6(b, t.Local.Addr(), t.Peer.Addr(), header.TCP, nearHops, s.Len()))
}

// sealed writes the checksum of the outermost packet.
func sealed(b []byte) []byte {
	header.Seal(b)
	return b
}
