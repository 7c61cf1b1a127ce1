package wg

import (
	"encoding/binary"

	"scaffold.dev/scaffold/internal/packet/header"
)

// Where things are in a frame.
const (
	etherLength = header.EthernetLen
	etherType   = 12
	etherIPv6   = header.EtherIPv6

	ipv6Length  = header.IPv6Len
	ipv6Payload = etherLength + 4 // length of what follows the IPv6 header
	ipv6Next    = etherLength + 6
	ipv6Source  = etherLength + 8
	afterIPv6   = etherLength + ipv6Length

	protoTCP    = header.TCP
	tcpSeq      = 4
	tcpOffset   = 12
	tcpFlags    = 13
	tcpChecksum = 16
	tcpLength   = header.TCPLen

	flagFIN = header.FIN
	flagPSH = header.PSH
	flagACK = header.ACK
	flagCWR = 0x80
)

// vnetLength is the length of what stands before each frame at a TAP device: struct virtio_net_hdr, linux/virtio_net.h.
const vnetLength = 10

// A vnet is that header: what the kernel left undone, or may leave undone.
type vnet struct {
	flags, gso      uint8
	header, size    uint16 // of all headers; of a segment's payload
	start, checksum uint16 // where summing begins; from there, where the sum stands
}

const (
	vnetNeedsSum = 1 // flags: only the pseudo header is summed yet
	vnetSumGood  = 2
	vnetWhole    = 0 // gso: one packet
	vnetTCP6     = 4 // TCP over IPv6, to be cut
)

func readVnet(b []byte) vnet {
	n := binary.NativeEndian
	return vnet{b[0], b[1], n.Uint16(b[2:]), n.Uint16(b[4:]), n.Uint16(b[6:]), n.Uint16(b[8:])}
}

func (v vnet) write(b []byte) {
	b[0], b[1] = v.flags, v.gso
	n := binary.NativeEndian
	n.PutUint16(b[2:], v.header)
	n.PutUint16(b[4:], v.size)
	n.PutUint16(b[6:], v.start)
	n.PutUint16(b[8:], v.checksum)
}
