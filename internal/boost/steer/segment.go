package steer

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/header"
)

const (
	ip4Len = 20
	tcpLen = 20
)

// endsOf are the ends of a TCP segment, as a switch punts it.
func endsOf(frame []byte) (from, to netip.AddrPort, ok bool) {
	if len(frame) < header.EthernetLen {
		return from, to, false
	}
	var src, dst netip.Addr
	var tcp []byte
	switch ip := frame[header.EthernetLen:]; binary.BigEndian.Uint16(frame[12:]) {
	case header.EtherIPv6:
		b, is := header.InFrame(frame)
		if !is || b.Next() != protoTCP {
			return from, to, false
		}
		src, dst, tcp = b.Src(), b.Dst(), ip[header.IPv6Len:]
	case etherIPv4:
		head := 0
		if len(ip) >= ip4Len {
			head = int(ip[0]&15) * 4
		}
		if head < ip4Len || len(ip) < head || ip[0]>>4 != 4 || ip[9] != protoTCP || binary.BigEndian.Uint16(ip[6:])&0x1fff != 0 {
			return from, to, false
		}
		src, dst, tcp = netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20])), ip[head:]
	default:
		return from, to, false
	}
	if len(tcp) < tcpLen {
		return from, to, false
	}
	return netip.AddrPortFrom(src, binary.BigEndian.Uint16(tcp)), netip.AddrPortFrom(dst, binary.BigEndian.Uint16(tcp[2:])), true
}
