// Package traffic has programs that make packets and take them, for networks without real programs: a [Source] at one
// end, a [Sink] at the other.
package traffic

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/packet/checksum"
)

// A Source sends UDP datagrams out of its port 0, in turn to each of To. It loses what it receives.
type Source struct {
	From  netip.Addr
	To    []netip.Addr
	Size  int           // bytes from the Ethernet header on, without checksum: at least 62 of IPv6, 42 of IPv4
	Gap   time.Duration // between bursts
	Burst int           // packets at a time; 0 is 1
	Count uint64        // in all; 0 is no limit
	Hop   uint8         // hop limit; 0 is 64
	Sent  uint64

	patterns []emu.Pattern // a packet for each of To
	run      [64]emu.Packet
}

// Process drops what comes.
func (s *Source) Process(_ *emu.Router, batch []emu.Packet) {
	for i := range batch {
		batch[i].Port = emu.Drop
	}
}

// Wake sends a burst.
func (s *Source) Wake(r *emu.Router, now time.Duration) time.Duration {
	if s.patterns == nil {
		s.prepare()
	}
	for left := max(1, s.Burst); left > 0; {
		n := s.send(r, left)
		if n == 0 {
			return emu.Never
		}
		left -= n
	}
	return now + max(s.Gap, 1)
}

// send sends up to n packets, none when all are sent. Those for which there is no memory count as sent.
func (s *Source) send(r *emu.Router, n int) int {
	some := s.patterns[s.Sent%uint64(len(s.patterns)):]
	some = some[:min(n, len(some), len(s.run))]
	if s.Count > 0 {
		some = some[:min(uint64(len(some)), max(s.Count, s.Sent)-s.Sent)]
	}
	r.SendAll(s.run[:r.Copy(s.run[:], some)], 0)
	s.Sent += uint64(len(some))
	return len(some)
}

func (s *Source) prepare() {
	if s.Hop == 0 {
		s.Hop = 64
	}
	for i, to := range s.To {
		s.patterns = append(s.patterns, emu.NewPattern(Datagram(s.From, to, s.Hop, uint16(1024+i%50000), s.Size-14)))
	}
}

// Datagram is a UDP datagram to port 9 (discard) of size bytes from the IP header on, with correct checksums.
func Datagram(from, to netip.Addr, hop uint8, port uint16, size int) []byte {
	head, addrs := 40, 8
	b := make([]byte, size)
	if to.Is4() {
		head, addrs = 20, 12
		b[0], b[8], b[9] = 0x45, hop, 17
		binary.BigEndian.PutUint16(b[2:], uint16(size))
	} else {
		b[0], b[6], b[7] = 0x60, 17, hop
		binary.BigEndian.PutUint16(b[4:], uint16(size-head))
	}
	copy(b[addrs:], from.AsSlice())
	if to.Is4() {
		copy(b[16:], to.AsSlice())
		binary.BigEndian.PutUint16(b[10:], ^checksum.Sum(b[:head]))
	} else {
		copy(b[24:], to.AsSlice())
	}
	u := b[head:]
	binary.BigEndian.PutUint16(u, port)
	binary.BigEndian.PutUint16(u[2:], 9)
	binary.BigEndian.PutUint16(u[4:], uint16(len(u)))
	binary.BigEndian.PutUint16(u[6:], checksum.NonZero(^checksum.Fold(checksum.Add(checksum.Pseudo(from, to, 17, len(u)), u))))
	return b
}
