package forward

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/emu"
)

// ARP (RFC 826) for IPv4 over Ethernet.
const (
	arpLen     = 28
	arpRequest = 1
	arpReply   = 2
)

// arpHead is how all its packets begin: Ethernet, IPv4, and the lengths of their addresses.
var arpHead = [6]byte{0, 1, 8, 0, 6, 4}

func (f *Forwarder) isARP(p *emu.Packet) bool {
	frame := f.router.Frame(p)
	return len(frame) >= 14+arpLen && binary.BigEndian.Uint16(frame[12:]) == etherARP && [6]byte(frame[14:20]) == arpHead
}

// arp learns from a packet, and answers if it asks for an address of the router.
func (f *Forwarder) arp(p *emu.Packet) {
	b := f.router.Frame(p)[14 : 14+arpLen]
	in, operation := p.Port, binary.BigEndian.Uint16(b[6:])
	mac, from, target := [6]byte(b[8:14]), netip.AddrFrom4([4]byte(b[14:18])), netip.AddrFrom4([4]byte(b[24:28]))
	ours := f.own[target]
	if k := (neighbourKey{from, in}); !from.IsUnspecified() && (ours || f.neighbours.all[k] != nil) {
		f.learn(k, mac, operation == arpReply && ours)
	}
	if f.handed(p) {
		return
	}
	if operation == arpRequest && ours {
		f.counters.Answers++
		f.sendARP(in, arpReply, mac, target, mac, from)
	}
	f.drop(p, Answered)
}

var everybody = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// solicit4 asks for the Ethernet address of a neighbour.
func (f *Forwarder) solicit4(n *neighbour) {
	to := everybody
	if n.known {
		to = n.mac
	}
	f.sendARP(n.key.port, arpRequest, to, f.speaker4(n.key), [6]byte{}, n.key.address)
}

// speaker4 is the router's address beside a neighbour.
func (f *Forwarder) speaker4(k neighbourKey) netip.Addr {
	for _, a := range f.ports[k.port].addresses {
		if a.Contains(k.address) {
			return a.Addr()
		}
	}
	if a := f.speaker(k.port, false); a != dummy4 {
		return a
	}
	return netip.IPv4Unspecified()
}

func (f *Forwarder) sendARP(port, operation uint16, to [6]byte, from netip.Addr, theirs [6]byte, target netip.Addr) {
	b, own := f.scratch[:arpLen], f.ports[port].mac
	copy(b, arpHead[:])
	binary.BigEndian.PutUint16(b[6:], operation)
	copy(b[8:], own[:])
	putAddr(b[14:], from)
	copy(b[18:], theirs[:])
	putAddr(b[24:], target)
	f.frame(port, to, etherARP, b)
}
