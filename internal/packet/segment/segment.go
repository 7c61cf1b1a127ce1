// Package segment finds a TCP segment in a frame, of IPv4 or IPv6, past the extension headers that the programs in the kernel go
// past, and completes its checksum: for frames that were taken out of their way and are to go on.
package segment

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
)

const (
	ip4Len     = 20
	etherIP4   = 0x0800
	checksumAt = 16 // in TCP's header
)

// Extension headers of IPv6 that the programs in the kernel go past.
const (
	extHop     = 0
	extOptions = 60
)

// ErrDamaged says that a frame has no whole TCP segment.
var ErrDamaged = errors.New("a damaged segment")

// A Segment is where things are in a frame.
type Segment struct {
	Frame    []byte // without padding behind the packet
	Src, Dst netip.Addr
	L4       int // where TCP's header begins
}

// Parse reads any frame. A later fragment is no segment.
func Parse(frame []byte) (Segment, error) {
	if len(frame) < header.EthernetLen+ip4Len+header.TCPLen {
		return Segment{}, ErrDamaged
	}
	ip := frame[header.EthernetLen:]
	var s Segment
	var end int
	switch binary.BigEndian.Uint16(frame[12:]) {
	case etherIP4:
		if ip[0]>>4 != 4 || ip[0]&15 < ip4Len/4 || ip[9] != header.TCP || binary.BigEndian.Uint16(ip[6:])&0x1fff != 0 {
			return Segment{}, ErrDamaged
		}
		s.Src, s.Dst = netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20]))
		s.L4 = header.EthernetLen + int(ip[0]&15)*4
		end = header.EthernetLen + int(binary.BigEndian.Uint16(ip[2:]))
	case header.EtherIPv6:
		if len(ip) < header.IPv6Len+header.TCPLen || ip[0]>>4 != 6 {
			return Segment{}, ErrDamaged
		}
		s.Src, s.Dst = netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40]))
		var is bool
		if s.L4, is = behindExtensions(frame); !is {
			return Segment{}, ErrDamaged
		}
		end = header.EthernetLen + header.IPv6Len + int(binary.BigEndian.Uint16(ip[4:]))
	default:
		return Segment{}, ErrDamaged
	}
	if end > len(frame) || s.L4+header.TCPLen > end || headerEnd(frame, s.L4) > end {
		return Segment{}, ErrDamaged
	}
	s.Frame = frame[:end]
	return s, nil
}

func headerEnd(frame []byte, l4 int) int { return l4 + int(frame[l4+12]>>4)*4 }

// Data is where the bytes behind TCP's header begin.
func (s Segment) Data() int { return headerEnd(s.Frame, s.L4) }

// Has reports whether TCP's header has an option of that kind.
func (s Segment) Has(kind byte) bool {
	for b := s.Frame[s.L4+header.TCPLen : max(s.Data(), s.L4+header.TCPLen)]; len(b) > 0; {
		switch {
		case b[0] == kind:
			return true
		case b[0] == 0: // the end of the list
			return false
		case b[0] == 1: // no operation: it has no length
			b = b[1:]
		case len(b) < 2 || b[1] < 2 || int(b[1]) > len(b):
			return false
		default:
			b = b[b[1]:]
		}
	}
	return false
}

// Ends are where it comes from and goes to.
func (s Segment) Ends() (src, dst netip.AddrPort) {
	tcp := s.Frame[s.L4:]
	return netip.AddrPortFrom(s.Src, binary.BigEndian.Uint16(tcp)), netip.AddrPortFrom(s.Dst, binary.BigEndian.Uint16(tcp[2:]))
}

// behindExtensions is where TCP's header begins, if one is there.
func behindExtensions(frame []byte) (at int, is bool) {
	next, at := frame[header.EthernetLen+6], header.EthernetLen+header.IPv6Len
	for (next == extHop || next == header.Fragment || next == extOptions) && at+8 <= len(frame) {
		length := 8
		if next != header.Fragment {
			length = (int(frame[at+1]) + 1) * 8
		} else if binary.BigEndian.Uint16(frame[at+2:])&0xfff8 != 0 {
			return at, false
		}
		next, at = frame[at], at+length
	}
	return at, next == header.TCP
}

// Completed is the frame with the checksum of TCP that it has, or, where the sender left that to a device on the way, as
// it does between namespaces of one machine, with the one that the device would have written. Any other is damaged.
func Completed(frame []byte) ([]byte, error) {
	s, err := Parse(frame)
	if err != nil {
		return nil, err
	}
	b := append([]byte(nil), s.Frame...)
	field := b[s.L4+checksumAt : s.L4+checksumAt+2]
	had := binary.BigEndian.Uint16(field)
	binary.BigEndian.PutUint16(field, 0)
	before := checksum.Pseudo(s.Src, s.Dst, header.TCP, len(b)-s.L4)
	right := ^checksum.Fold(checksum.Add(before, b[s.L4:]))
	if had != right && had != checksum.Fold(before) {
		return nil, ErrDamaged
	}
	binary.BigEndian.PutUint16(field, right)
	return b, nil
}
