package emu

import (
	"encoding/binary"

	"scaffold.dev/scaffold/internal/packet/checksum"
	headers "scaffold.dev/scaffold/internal/packet/header"
)

// The header that the kernel puts in front of each frame (struct virtio_net_hdr, in the byte order of
// the machine), and where things are in it.
const (
	vnetLen      = 10
	vnetFlags    = 0
	vnetKind     = 1
	vnetHeadLen  = 2
	vnetSize     = 4
	vnetSumStart = 6
	vnetSumAt    = 8

	needsSum   = 1    // the checksum is left to the hardware
	kindNone   = 0    // one packet
	kindTCP4   = 1    // a train of TCP segments
	kindTCP6   = 4    //
	kindUDP    = 5    // a train of UDP datagrams
	kindECN    = 0x80 // beside one of the above: the first segment has CWR
	etherLen   = headers.EthernetLen
	ipv4       = 0x0800
	ipv6       = headers.EtherIPv6
	vlan       = 0x8100
	udpLen     = headers.UDPLen
	tcpLen     = headers.TCPLen
	tcpFlagsAt = 13
	tcpFIN     = headers.FIN
	tcpPSH     = headers.PSH
	tcpCWR     = 0x80
	maxHead    = 256
)

var native = binary.NativeEndian

// describe says what a frame with its vnet header is. What cannot be cut safely is one packet.
func describe(b []byte) Frame {
	whole := Frame{Bytes: uint32(len(b) - vnetLen), Head: uint32(len(b) - vnetLen), Count: 1}
	size, start := uint32(native.Uint16(b[vnetSize:])), uint32(native.Uint16(b[vnetSumStart:]))
	packet := b[vnetLen:]
	if size == 0 || b[vnetFlags]&needsSum == 0 || start < afterIP(packet) {
		return whole
	}
	var head, least uint32
	switch b[vnetKind] &^ kindECN {
	case kindTCP4, kindTCP6:
		if start+tcpLen > whole.Bytes {
			return whole
		}
		head, least = start+uint32(packet[start+12]>>4)*4, start+tcpLen
	case kindUDP:
		head, least = start+udpLen, start+udpLen
	default:
		return whole
	}
	if head >= whole.Bytes || head > maxHead-vnetLen || head < least {
		return whole
	}
	whole.Head, whole.Size = head, size
	whole.Count = (whole.Bytes - head + size - 1) / size
	return whole
}

// afterIP is where a transport header may begin at the earliest, beyond every frame if there is none.
func afterIP(packet []byte) uint32 {
	at := network(packet)
	switch {
	case at == 0:
		return 1 << 31
	case packet[at]>>4 == 6:
		return uint32(at) + 40
	}
	return uint32(at) + uint32(max(5, packet[at]&15))*4
}

// network is where the IP header of a packet begins, 0 if it has none that we know.
func network(packet []byte) int {
	for at := etherLen; at+20 <= len(packet); at += 4 {
		switch binary.BigEndian.Uint16(packet[at-2:]) {
		case ipv4, ipv6:
			return at
		case vlan:
			continue
		}
		break
	}
	return 0
}

// cut writes the header of a part of a train into head and returns it with the payload: together
// they are a shorter train, or one packet, that the kernel takes as if it had been sent so.
func cut(head []byte, b []byte, f Frame, p Packet) (header, payload []byte) {
	first, count := uint32(p.first), uint32(p.count)
	from := vnetLen + f.Head + first*f.Size
	to := min(from+count*f.Size, vnetLen+f.Bytes)
	payload = b[from:to]
	header = head[:vnetLen+f.Head]
	copy(header, b)
	native.PutUint16(header[vnetHeadLen:], uint16(f.Head))
	if count == 1 {
		header[vnetKind] = kindNone
		native.PutUint16(header[vnetSize:], 0)
	}
	packet, start := header[vnetLen:], native.Uint16(b[vnetSumStart:])
	length := f.Head + uint32(len(payload))
	cutIP(packet, length, first)
	transport := packet[start:]
	at := native.Uint16(b[vnetSumAt:])
	if int(at)+2 <= len(transport) {
		// What is there is the sum of the pseudo header, with the length of the whole.
		sum := binary.BigEndian.Uint16(transport[at:])
		sum = checksum.Plus(sum, ^uint16(f.Bytes-uint32(start)))
		binary.BigEndian.PutUint16(transport[at:], checksum.Plus(sum, uint16(length-uint32(start))))
	}
	if b[vnetKind]&^kindECN == kindUDP {
		binary.BigEndian.PutUint16(transport[4:], uint16(length-uint32(start)))
		return header, payload
	}
	cutTCP(header, transport, f, p)
	return header, payload
}

// cutTCP gives a segment its sequence number and the flags that belong to it.
func cutTCP(header, transport []byte, f Frame, p Packet) {
	first, count := uint32(p.first), uint32(p.count)
	binary.BigEndian.PutUint32(transport[4:], binary.BigEndian.Uint32(transport[4:])+first*f.Size)
	if first+count < f.Count {
		transport[tcpFlagsAt] &^= tcpFIN | tcpPSH
	}
	if first > 0 {
		transport[tcpFlagsAt] &^= tcpCWR
		header[vnetKind] &^= kindECN
	}
}

// cutIP sets the lengths of a packet, and in IPv4 identification and checksum.
func cutIP(packet []byte, length, first uint32) {
	at := network(packet)
	ip := packet[at:]
	if ip[0]>>4 == 6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(length-uint32(at)-40))
		return
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(length-uint32(at)))
	binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(first))
	binary.BigEndian.PutUint16(ip[10:], 0)
	binary.BigEndian.PutUint16(ip[10:], ^checksum.Sum(ip[:min(int(ip[0]&15)*4, len(ip))]))
}
