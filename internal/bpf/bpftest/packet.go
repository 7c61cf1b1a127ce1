package bpftest

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/header"
)

// IPv6 next-header numbers that Packet knows.
const (
	TCP      = 6
	UDP      = 17
	Fragment = 44
	ICMPv6   = 58
)

// TCP flags.
const (
	FIN = 0x01
	SYN = 0x02
	RST = 0x04
	PSH = 0x08
	ACK = 0x10
)

// A Packet is an IPv6 packet to be built. Zero fields get the usual values.
type Packet struct {
	Src, Dst     netip.Addr
	TrafficClass uint8
	FlowLabel    uint32
	HopLimit     uint8 // 0: 64

	Proto        uint8
	SPort, DPort uint16 // TCP and UDP
	Seq, Ack     uint32 // TCP
	Flags        uint8  // TCP
	Options      []byte // TCP; a multiple of four
	Type, Code   uint8  // ICMPv6
	Word         uint32 // ICMPv6: the four bytes after the checksum; for an echo, identifier<<16 | sequence
	Payload      []byte

	Extensions []byte // whole extension headers before the transport header, without the first's number
	FirstExt   uint8  // number of the first extension header

	BadChecksum bool // leave a checksum that is wrong by one
}

// Bytes is the packet, checksum included.
func (p Packet) Bytes() []byte {
	l4 := p.transport()
	next := p.Proto
	if len(p.Extensions) > 0 {
		next = p.FirstExt
	}
	b := make([]byte, 40, 40+len(p.Extensions)+len(l4))
	binary.BigEndian.PutUint32(b, 6<<28|uint32(p.TrafficClass)<<20|p.FlowLabel&0xfffff)
	binary.BigEndian.PutUint16(b[4:], uint16(len(p.Extensions)+len(l4)))
	b[6], b[7] = next, p.HopLimit
	if p.HopLimit == 0 {
		b[7] = 64
	}
	src, dst := p.Src.As16(), p.Dst.As16()
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
	return append(append(b, p.Extensions...), l4...)
}

func (p Packet) transport() []byte {
	var b []byte
	var at int
	switch p.Proto {
	case TCP:
		b, at = make([]byte, 20, 20+len(p.Options)+len(p.Payload)), 16
		binary.BigEndian.PutUint16(b, p.SPort)
		binary.BigEndian.PutUint16(b[2:], p.DPort)
		binary.BigEndian.PutUint32(b[4:], p.Seq)
		binary.BigEndian.PutUint32(b[8:], p.Ack)
		b[12], b[13] = byte((20+len(p.Options))/4)<<4, p.Flags
		binary.BigEndian.PutUint16(b[14:], 65535)
		b = append(b, p.Options...)
	case UDP:
		b, at = make([]byte, 8, 8+len(p.Payload)), 6
		binary.BigEndian.PutUint16(b, p.SPort)
		binary.BigEndian.PutUint16(b[2:], p.DPort)
		binary.BigEndian.PutUint16(b[4:], uint16(8+len(p.Payload)))
	case ICMPv6:
		b, at = make([]byte, 8, 8+len(p.Payload)), 2
		b[0], b[1] = p.Type, p.Code
		binary.BigEndian.PutUint32(b[4:], p.Word)
	default:
		return p.Payload
	}
	b = append(b, p.Payload...)
	sum := Checksum(p.Src, p.Dst, p.Proto, b)
	if sum == 0 && p.Proto == UDP {
		sum = 0xffff
	}
	if p.BadChecksum {
		sum++
	}
	binary.BigEndian.PutUint16(b[at:], sum)
	return b
}

// Checksum is the transport checksum of b, whose checksum field must hold zero; over a segment with a
// right checksum in place it gives zero.
func Checksum(src, dst netip.Addr, proto uint8, b []byte) uint16 {
	s, d := src.As16(), dst.As16()
	sum := sum16(s[:]) + sum16(d[:]) + uint64(len(b)) + uint64(proto) + sum16(b)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func sum16(b []byte) (sum uint64) {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

// ChecksumOK reports whether the packet's transport checksum is right. Packets without one, such as
// fragments, pass.
func ChecksumOK(b []byte) bool {
	if len(b) < 40 {
		return false
	}
	src, dst := Addrs(b)
	switch proto := b[6]; proto {
	case TCP, UDP, ICMPv6:
		return Checksum(src, dst, proto, b[40:]) == 0
	}
	return true
}

// Addrs returns source and destination of an IPv6 packet.
func Addrs(b []byte) (src, dst netip.Addr) {
	return header.IPv6(b).Src(), header.IPv6(b).Dst()
}
