package emu

import (
	"encoding/binary"

	"scaffold.dev/scaffold/internal/packet/checksum"
)

// Cut takes the first packet off a train, as a packet of its own; p stands for the rest, of which there must be some.
func (r *Router) Cut(p *Packet) Packet {
	r.shard.arena.refs[p.slot]++
	one := *p
	one.count = 1
	p.first++
	p.count--
	return one
}

// Sum completes a checksum that is partial, so that the packet may be taken apart or quoted. It returns false without
// memory for that.
func (r *Router) Sum(p *Packet) bool {
	c := r.Checksum(p)
	if !c.Partial {
		return true
	}
	ip, ok := r.Edit(p)
	if !ok || c.Start+c.Offset+2 > len(ip) {
		return false
	}
	b := r.shard.arena.slot(p.slot)
	binary.BigEndian.PutUint16(ip[c.Start+c.Offset:], checksum.NonZero(^checksum.Sum(ip[c.Start:])))
	clear(b[:vnetLen])
	return true
}
