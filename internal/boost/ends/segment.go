package ends

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/header"
)

// Lengths and places of headers.
const (
	ethernetLen = header.EthernetLen
	ip4Len      = 20
	ip6Len      = header.IPv6Len
	tcpLen      = header.TCPLen
	checksumAt  = 16 // in TCP's header
)

const (
	etherIP4 = 0x0800
	etherIP6 = header.EtherIPv6
	protoTCP = header.TCP
)

// Extension headers of IPv6 that the program in the kernel goes past.
const (
	extHop      = 0
	extFragment = header.Fragment
	extOptions  = 60
)

var errDamaged = errors.New("a damaged segment")

// A segment is where things are in a frame.
type segment struct {
	frame    []byte // without padding behind the packet
	src, dst netip.Addr
	l4       int
}

// parse reads a frame that the program in the kernel has read before.
func parse(frame []byte) (segment, error) {
	if len(frame) < ethernetLen+ip4Len+tcpLen {
		return segment{}, errDamaged
	}
	ip := frame[ethernetLen:]
	var s segment
	var end int
	switch binary.BigEndian.Uint16(frame[12:]) {
	case etherIP4:
		s.src, s.dst = netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
		s.l4 = ethernetLen + int(ip[0]&15)*4
		end = ethernetLen + int(binary.BigEndian.Uint16(ip[2:]))
	case etherIP6:
		if len(ip) < ip6Len+tcpLen {
			return segment{}, errDamaged
		}
		s.src, s.dst = netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
		s.l4 = behindExtensions(frame)
		end = ethernetLen + ip6Len + int(binary.BigEndian.Uint16(ip[4:]))
	default:
		return segment{}, errDamaged
	}
	if end > len(frame) || s.l4+tcpLen > end || s.headerEnd(frame) > end {
		return segment{}, errDamaged
	}
	s.frame = frame[:end]
	return s, nil
}

func (s segment) headerEnd(frame []byte) int { return s.l4 + int(frame[s.l4+12]>>4)*4 }

// behindExtensions is where TCP's header begins.
func behindExtensions(frame []byte) int {
	next, at := frame[ethernetLen+6], ethernetLen+ip6Len
	for (next == extHop || next == extFragment || next == extOptions) && at+8 <= len(frame) {
		length := 8
		if next != extFragment {
			length = (int(frame[at+1]) + 1) * 8
		}
		next, at = frame[at], at+length
	}
	return at
}

// completed is the frame with the checksum of TCP that it has, or, where the sender left that to a device on the way, as
// it does between namespaces of one machine, with the one that the device would have written. Any other is damaged.
func completed(frame []byte) ([]byte, error) {
	s, err := parse(frame)
	if err != nil {
		return nil, err
	}
	b := append([]byte(nil), s.frame...)
	field := b[s.l4+checksumAt : s.l4+checksumAt+2]
	had := binary.BigEndian.Uint16(field)
	binary.BigEndian.PutUint16(field, 0)
	right := ^fold(pseudo(s.src, s.dst, len(b)-s.l4) + sum(b[s.l4:]))
	if had != right && had != fold(pseudo(s.src, s.dst, len(b)-s.l4)) {
		return nil, errDamaged
	}
	binary.BigEndian.PutUint16(field, right)
	return b, nil
}

// refusal is the frame with which a server refuses a SYN (RFC 9293 §3.10.7.1): it acknowledges the SYN and its data.
func refusal(frame []byte) []byte {
	s, err := parse(frame)
	if err != nil {
		panic("ends: a held SYN does not parse: " + err.Error()) // completed has looked
	}
	b := make([]byte, 0, ethernetLen+ip6Len+tcpLen)
	b = append(append(b, frame[6:12]...), frame[0:6]...)
	b = append(b, frame[12:14]...)
	b = appendIP(b, s.dst, s.src)
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
	binary.BigEndian.PutUint16(b[at+10:], ^fold(sum(b[at:])))
	return b
}

func appendReset(b []byte, of segment) []byte {
	at, tcp := len(b), of.frame[of.l4:]
	ack := binary.BigEndian.Uint32(tcp[4:]) + 1 + uint32(len(of.frame)-of.headerEnd(of.frame))
	b = append(append(b, tcp[2:4]...), tcp[0:2]...)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, ack)
	b = append(b, tcpLen/4<<4, 0x14, 0, 0, 0, 0, 0, 0) // RST and ACK
	binary.BigEndian.PutUint16(b[at+checksumAt:], ^fold(pseudo(of.dst, of.src, tcpLen)+sum(b[at:])))
	return b
}

// pseudo is the sum of TCP's pseudo header.
func pseudo(src, dst netip.Addr, length int) uint64 {
	return sum(src.AsSlice()) + sum(dst.AsSlice()) + uint64(length) + protoTCP
}

func sum(b []byte) (n uint64) {
	for ; len(b) >= 2; b = b[2:] {
		n += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		n += uint64(b[0]) << 8
	}
	return n
}

func fold(n uint64) uint16 {
	for n > 0xffff {
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}
