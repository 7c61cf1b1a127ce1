package emu

import (
	"encoding/binary"

	"scaffold.dev/scaffold/internal/packet/checksum"
)

// A frame as it lies in a slot: the kernel's header, the Ethernet header, the IP header.
const (
	atEther = vnetLen
	atIP    = vnetLen + etherLen
)

// parse finds out what a packet is, from its frame. A frame of IP that is not whole or contradicts itself is near:
// no router passes it on.
func (a *arena) parse(p *Packet) {
	p.parse(a.slot(p.slot)[atEther : atEther+a.frames[p.slot].Bytes])
}

// parse takes a packet's frame.
func (p *Packet) parse(b []byte) {
	if p.flags |= flagParsed | flagNear; len(b) < etherLen+20 {
		return
	}
	switch binary.BigEndian.Uint16(b[12:]) {
	case ipv6:
		p.parse6(b[etherLen:])
	case ipv4:
		p.parse4(b[etherLen:])
	}
}

// parseAll does so for packets that have not been parsed.
func (a *arena) parseAll(run []Packet) {
	for i := range run {
		if run[i].flags&flagParsed == 0 {
			a.parse(&run[i])
		}
	}
}

func (p *Packet) parse6(b []byte) {
	if len(b) < 40 || b[0]>>4 != 6 || int(binary.BigEndian.Uint16(b[4:]))+40 > len(b) {
		return
	}
	p.flags |= flagIPv6
	p.Hop = b[7]
	if b[24] != 0xff && (b[24] != 0xfe || b[25]&0xc0 != 0x80) {
		p.flags &^= flagNear
	}
}

func (p *Packet) parse4(b []byte) {
	head := int(b[0]&15) * 4
	if b[0]>>4 != 4 || head < 20 || head > len(b) || int(binary.BigEndian.Uint16(b[2:])) > len(b) || checksum.Sum(b[:head]) != checksum.Good {
		return
	}
	p.flags |= flagIPv4
	p.Hop = b[8]
	if b[16] < 224 && (b[16] != 169 || b[17] != 254) {
		p.flags &^= flagNear
	}
}

// write brings a packet's header in its slot up to date with its descriptor.
func (a *arena) write(p *Packet) {
	if p.flags&(flagIPv6|flagIPv4) == 0 {
		return
	}
	ip := a.slot(p.slot)[atIP:]
	if p.flags&flagIPv6 != 0 {
		ip[7] = p.Hop
		return
	}
	old := binary.BigEndian.Uint16(ip[8:])
	ip[8] = p.Hop
	checksum.Update(ip[10:], old, binary.BigEndian.Uint16(ip[8:]))
}
