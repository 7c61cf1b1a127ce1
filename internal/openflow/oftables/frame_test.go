package oftables

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// A frame is what of an IPv6 packet in Ethernet matters to tables.
type frame struct {
	from, to     ofp.MAC
	src, dst     netip.Addr
	label        uint32
	hopLimit     uint8
	proto        sid.Proto
	sport, dport uint16 // ICMPv6: type in dport
	fragment     uint16 // 0: none; else offset in units of 8 bytes << 3 | more
	payload      string
}

const fragmentHeader = 44

// bytes is the frame with right checksums.
func (f frame) bytes() []byte {
	b := append(append([]byte{}, f.to[:]...), f.from[:]...)
	b = binary.BigEndian.AppendUint16(b, etherIPv6)
	l4 := f.transport()
	next, ext := byte(f.proto), []byte(nil)
	if f.fragment != 0 {
		ext = []byte{next, 0}
		ext = binary.BigEndian.AppendUint16(ext, f.fragment)
		ext = binary.BigEndian.AppendUint32(ext, 0x1234)
		next = fragmentHeader
	}
	b = binary.BigEndian.AppendUint32(b, 6<<28|f.label)
	b = binary.BigEndian.AppendUint16(b, uint16(len(ext)+len(l4)))
	b = append(b, next, f.hopLimit)
	src, dst := f.src.As16(), f.dst.As16()
	b = append(append(b, src[:]...), dst[:]...)
	return append(append(b, ext...), l4...)
}

func (f frame) transport() []byte {
	if f.fragment>>3 != 0 {
		return []byte(f.payload)
	}
	var b []byte
	at := 0
	switch f.proto {
	case sid.TCP:
		b, at = make([]byte, 20), 16
		binary.BigEndian.PutUint16(b, f.sport)
		binary.BigEndian.PutUint16(b[2:], f.dport)
		b[12], b[13] = 5<<4, 2 // SYN
	case sid.UDP:
		b, at = make([]byte, 8), 6
		binary.BigEndian.PutUint16(b, f.sport)
		binary.BigEndian.PutUint16(b[2:], f.dport)
		binary.BigEndian.PutUint16(b[4:], uint16(8+len(f.payload)))
	case sid.ICMPv6:
		b, at = make([]byte, 8), 2
		b[0] = byte(f.dport)
		binary.BigEndian.PutUint16(b[4:], f.sport)
	default:
		return []byte(f.payload)
	}
	b = append(b, f.payload...)
	check := ^sum(f.src, f.dst, f.proto, b)
	if check == 0 { // which says that there is none
		check = 0xffff
	}
	binary.BigEndian.PutUint16(b[at:], check)
	return b
}

// sum is the checksum of a transport's bytes with its pseudo header; of right ones it is 0xffff.
func sum(src, dst netip.Addr, p sid.Proto, b []byte) uint16 {
	s, d := src.As16(), dst.As16()
	all := append(append([]byte{}, s[:]...), d[:]...)
	all = binary.BigEndian.AppendUint32(all, uint32(len(b)))
	all = append(all, 0, 0, 0, byte(p))
	all = append(all, b...)
	if len(all)%2 == 1 {
		all = append(all, 0)
	}
	var n uint32
	for i := 0; i < len(all); i += 2 {
		n += uint32(binary.BigEndian.Uint16(all[i:]))
	}
	for n > 0xffff {
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}

// parse reads what bytes wrote; right reports whether the checksum is, where there is one.
func parse(b []byte) (f frame, right, ok bool) {
	if len(b) < 54 || binary.BigEndian.Uint16(b[12:]) != etherIPv6 {
		return f, false, false
	}
	copy(f.to[:], b)
	copy(f.from[:], b[6:])
	f.label = binary.BigEndian.Uint32(b[14:]) & 0xfffff
	f.hopLimit = b[21]
	f.src, _ = netip.AddrFromSlice(b[22:38])
	f.dst, _ = netip.AddrFromSlice(b[38:54])
	next, l4 := b[20], b[54:54+binary.BigEndian.Uint16(b[18:])]
	if next == fragmentHeader {
		next, f.fragment, l4 = l4[0], binary.BigEndian.Uint16(l4[2:]), l4[8:]
	}
	f.proto = sid.Proto(next)
	if f.fragment != 0 {
		return f, true, true
	}
	right = sum(f.src, f.dst, f.proto, l4) == 0xffff
	switch f.proto {
	case sid.TCP, sid.UDP:
		f.sport, f.dport = binary.BigEndian.Uint16(l4), binary.BigEndian.Uint16(l4[2:])
	case sid.ICMPv6:
		f.dport, f.sport = uint16(l4[0]), binary.BigEndian.Uint16(l4[4:])
	}
	return f, right, true
}
