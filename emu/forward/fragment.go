package forward

import (
	"encoding/binary"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/packet/checksum"
)

// large is for a packet that the next link does not take. As RFC 8200 and RFC 1191 have it, its sender is told; an IPv4
// packet that allows it is taken apart, as RFC 1812 demands of a router.
func (f *Forwarder) large(p *emu.Packet, a *adjacency, mtu uint16) {
	b := f.router.Bytes(p)
	if p.IPv6() || binary.BigEndian.Uint16(b[6:])&dontFragment != 0 {
		f.refuse(p, TooBig, uint32(mtu))
		return
	}
	for p.Count() > 1 {
		one := f.router.Cut(p)
		f.fragment(&one, a, int(mtu))
		f.router.Send(one, one.Port)
	}
	f.fragment(p, a, int(mtu))
}

const (
	dontFragment  = 0x4000
	moreFragments = 0x2000
)

// fragment takes an IPv4 packet apart (RFC 791, 3.2) and sends the parts to an adjacency.
func (f *Forwarder) fragment(p *emu.Packet, a *adjacency, mtu int) {
	if !f.router.Sum(p) {
		f.drop(p, Starved)
		return
	}
	b, ok := f.router.Edit(p)
	if !ok {
		f.drop(p, Starved)
		return
	}
	b = whole(b, p)
	n := int(b[0]&15) * 4
	head := f.scratch[:n]
	copy(head, b)
	place := binary.BigEndian.Uint16(head[6:])
	step := (mtu - n) &^ 7
	f.counters.Fragmented++
	for at := n; at < len(b); at += step {
		end := min(at+step, len(b))
		now := place + uint16((at-n)/8)
		if end < len(b) {
			now |= moreFragments
		}
		binary.BigEndian.PutUint16(head[2:], uint16(n+end-at))
		binary.BigEndian.PutUint16(head[6:], now)
		head[10], head[11] = 0, 0
		binary.BigEndian.PutUint16(head[10:], ^checksum.Sum(head))
		copy(b[at-n:], head) // over what is sent already
		f.part(b[at-n:end], p.Port, a)
		if at == n {
			leaveOut(head[20:])
		}
	}
	p.Port = emu.Drop
}

// part sends a fragment.
func (f *Forwarder) part(b []byte, in uint16, a *adjacency) {
	one, ok := f.router.New(b)
	if !ok {
		f.counters.Drops[Starved]++
		return
	}
	one.Port = in
	f.onward(&one, a)
	f.router.Send(one, one.Port)
}

// leaveOut makes options that belong into the first fragment alone no operations.
func leaveOut(options []byte) {
	const end, none, copied = 0, 1, 0x80
	for i := 0; i < len(options); {
		n := 1
		if kind := options[i]; kind == end {
			return
		} else if kind != none {
			if i+1 >= len(options) || options[i+1] < 2 || i+int(options[i+1]) > len(options) {
				return
			}
			if n = int(options[i+1]); kind&copied == 0 {
				for j := range n {
					options[i+j] = none
				}
			}
		}
		i += n
	}
}

// whole is a packet without what Ethernet put behind it.
func whole(b []byte, p *emu.Packet) []byte {
	n := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if p.IPv4() {
		n = int(binary.BigEndian.Uint16(b[2:]))
		if n < int(b[0]&15)*4 {
			return b
		}
	}
	return b[:min(n, len(b))]
}
