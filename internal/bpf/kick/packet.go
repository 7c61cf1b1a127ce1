package kick

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	ip6Len    = 40
	icmp6Len  = 8
	tcpLen    = 20
	packetLen = ip6Len + icmp6Len + ip6Len + tcpLen // the largest packet made here

	flagRST = 0x04
	flagACK = 0x10
)

// appendNoRoute appends an ICMPv6 "no route to destination" (RFC 4443 §3.1) that quotes the header of the
// segment with the socket's first unacknowledged byte. The socket's own address receives it; that it
// also sends it keeps filters content which know only our addresses on the loopback.
func appendNoRoute(b []byte, s *Socket) []byte {
	b = appendIPv6(b, s.Local.Addr(), s.Local.Addr(), unix.IPPROTO_ICMPV6, icmp6Len+ip6Len+tcpLen)
	b = append(b, 1, 0, 0, 0, 0, 0, 0, 0) // destination unreachable, no route
	b = appendIPv6(b, s.Local.Addr(), s.Peer.Addr(), unix.IPPROTO_TCP, tcpLen)
	b = appendTCP(b, s.Tuple, s.SndUna, s.RcvNxt, flagACK, 0)
	return sealed(b, ip6Len+2)
}

// appendAck appends a pure acknowledgement as the peer would repeat it: nothing new in it.
func appendAck(b []byte, s *Socket) []byte {
	b = appendIPv6(b, s.Peer.Addr(), s.Local.Addr(), unix.IPPROTO_TCP, tcpLen)
	b = appendTCP(b, s.reverse(), s.RcvNxt, s.SndUna, flagACK, uint16(min(s.SndWnd>>s.SndShift, 0xffff)))
	return sealed(b, ip6Len+16)
}

// appendReset appends a reset as the peer would send it: with exactly the next sequence number that is
// expected, so that it is no challenge (RFC 5961 §3.2).
func appendReset(b []byte, s *Socket) []byte {
	b = appendIPv6(b, s.Peer.Addr(), s.Local.Addr(), unix.IPPROTO_TCP, tcpLen)
	b = appendTCP(b, s.reverse(), s.RcvNxt, s.SndUna, flagRST|flagACK, 0)
	return sealed(b, ip6Len+16)
}

func (t Tuple) reverse() Tuple { return Tuple{Local: t.Peer, Peer: t.Local} }

func appendIPv6(b []byte, from, to netip.Addr, proto uint8, payload int) []byte {
	src, dst := from.As16(), to.As16()
	b = binary.BigEndian.AppendUint32(b, 6<<28)
	b = binary.BigEndian.AppendUint16(b, uint16(payload))
	b = append(b, proto, 255) // as from the link, for programs that set IPV6_MINHOPCOUNT
	b = append(b, src[:]...)
	return append(b, dst[:]...)
}

// appendTCP appends a header without options and with an empty checksum.
func appendTCP(b []byte, t Tuple, seq, ack uint32, flags uint8, window uint16) []byte {
	b = binary.BigEndian.AppendUint16(b, t.Local.Port())
	b = binary.BigEndian.AppendUint16(b, t.Peer.Port())
	b = binary.BigEndian.AppendUint32(b, seq)
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, tcpLen/4<<4, flags)
	b = binary.BigEndian.AppendUint16(b, window)
	return append(b, 0, 0, 0, 0)
}

// sealed writes the checksum of the outermost packet at the offset at (RFC 8200 §8.1).
func sealed(b []byte, at int) []byte {
	sum := uint32(len(b)-ip6Len) + uint32(b[6])
	for p := b[8:]; len(p) >= 2; p = p[2:] { // every packet made here has an even length
		sum += uint32(binary.BigEndian.Uint16(p))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[at:], ^uint16(sum))
	return b
}
