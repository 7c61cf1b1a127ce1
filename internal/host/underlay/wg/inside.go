package wg

import (
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/packet/checksum"
)

// What stands before a frame within WireGuard (docs/protocol.md §5.9): IPv4, UDP and VXLAN headers, as the kernel's
// VXLAN device makes them.
const (
	ipv4Length  = 20
	udpLength   = 8
	vxlanLength = 8
	insideHead  = ipv4Length + udpLength + vxlanLength

	ipv4Plain  = 0x45 // version 4, no options
	protoUDP   = 17
	insideTTL  = 64
	vxlanValid = 0x08 // the network identifier counts
)

// wrap writes the headers for a frame that b ends with.
func wrap(b []byte, in underlay.Port) {
	for i := range b[:insideHead] {
		b[i] = 0
	}
	b[0], b[8], b[9] = ipv4Plain, insideTTL, protoUDP
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	from, to := in.Local.As4(), in.Remote.As4()
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	binary.BigEndian.PutUint16(b[10:], ^checksum.Sum(b[:ipv4Length]))
	udp := b[ipv4Length:]
	binary.BigEndian.PutUint16(udp[0:], in.UDP) // no hash of a flow: nobody between the two ends sees it
	binary.BigEndian.PutUint16(udp[2:], in.UDP)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp))) // without a checksum: what is inside has one, and so has WireGuard
	vxlan := udp[udpLength:]
	vxlan[0] = vxlanValid
	binary.BigEndian.PutUint32(vxlan[4:], in.Number<<8)
}

// unwrap finds the frame of a packet, and who sent it, as WireGuard has proved. Not ok: not of a tunnel.
func unwrap(b []byte) (from netip.Addr, frame []byte, ok bool) {
	if len(b) < insideHead+etherLength || b[0] != ipv4Plain || b[9] != protoUDP || b[6]&0x3f != 0 || b[7] != 0 {
		return netip.Addr{}, nil, false // other options, another protocol, or a fragment
	}
	if n := int(binary.BigEndian.Uint16(b[2:])); n != len(b) || binary.BigEndian.Uint16(b[ipv4Length+2:]) != underlay.InsideUDP {
		return netip.Addr{}, nil, false
	}
	from = netip.AddrFrom4([4]byte(b[12:16]))
	number := binary.BigEndian.Uint32(b[12:16]) & 0xffffff
	vxlan := b[ipv4Length+udpLength:]
	if vxlan[0]&vxlanValid == 0 || binary.BigEndian.Uint32(vxlan[4:])>>8 != number {
		return netip.Addr{}, nil, false
	}
	return from, b[insideHead:], true
}
