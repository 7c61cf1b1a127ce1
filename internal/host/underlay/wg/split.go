package wg

import (
	"encoding/binary"

	"scaffold.dev/scaffold/internal/packet/checksum"
)

// A splitter cuts what the kernel sent as one frame into those that the tunnel carries, as a network card would.
type splitter struct {
	vnet   vnet
	frame  []byte
	header int // of all headers; 0: the frame goes as it is
	done   int // bytes of the payload
	over   bool
}

// split begins with a frame. One that makes no sense is not ok: the kernel sends none.
func split(v vnet, frame []byte) (s splitter, ok bool) {
	s = splitter{vnet: v, frame: frame}
	sums := v.flags&vnetNeedsSum != 0
	if len(frame) < etherLength || sums && int(v.start)+int(v.checksum)+2 > len(frame) {
		return s, false
	}
	if v.gso == vnetWhole {
		return s, true
	}
	tcp := int(v.start)
	if v.gso != vnetTCP6 || !sums || v.size == 0 || v.checksum != tcpChecksum || tcp < afterIPv6 || len(frame) < tcp+tcpLength {
		return s, false
	}
	s.header = tcp + int(frame[tcp+tcpOffset]>>4)*4
	return s, s.header >= tcp+tcpLength && s.header <= len(frame)
}

// next writes the next frame to b, which has room for the largest, and says how long it is; 0 is the end.
func (s *splitter) next(b []byte) int {
	switch {
	case s.over:
		return 0
	case s.header == 0 && len(s.frame) > len(b):
		s.over = true // as below
		return 0
	case s.header == 0:
		s.over = true
		n := copy(b, s.frame)
		if s.vnet.flags&vnetNeedsSum != 0 {
			finish(b[:n], int(s.vnet.start), int(s.vnet.checksum))
		}
		return n
	}
	payload := s.frame[s.header:]
	part := payload[s.done:min(s.done+int(s.vnet.size), len(payload))]
	if s.header+len(part) > len(b) {
		s.over = true // larger than any device says it takes
		return 0
	}
	n := copy(b, s.frame[:s.header])
	n += copy(b[n:], part)
	s.mark(b[:n], len(payload))
	s.done += len(part)
	s.over = s.done == len(payload)
	return n
}

// mark makes the copied headers those of one segment.
func (s *splitter) mark(b []byte, all int) {
	tcp, part := int(s.vnet.start), len(b)-s.header
	binary.BigEndian.PutUint16(b[ipv6Payload:], uint16(len(b)-afterIPv6))
	seq := b[tcp+tcpSeq:]
	binary.BigEndian.PutUint32(seq, binary.BigEndian.Uint32(seq)+uint32(s.done))
	if s.done > 0 {
		b[tcp+tcpFlags] &^= flagCWR
	}
	if s.done+part < all {
		b[tcp+tcpFlags] &^= flagFIN | flagPSH
	}
	// The pseudo header has the length: that of all goes, that of the segment comes.
	check := b[tcp+tcpChecksum:]
	whole, own := uint64(s.header-tcp+all), uint64(s.header-tcp+part)
	sum := uint64(binary.BigEndian.Uint16(check)) + uint64(^checksum.Fold(whole)) + own
	binary.BigEndian.PutUint16(check, checksum.Fold(sum))
	finish(b, tcp, tcpChecksum)
}

// finish sums what follows start, where the pseudo header's sum stands already.
func finish(b []byte, start, at int) {
	binary.BigEndian.PutUint16(b[start+at:], checksum.NonZero(^checksum.Sum(b[start:])))
}
