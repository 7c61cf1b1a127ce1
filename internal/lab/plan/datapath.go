package plan

import (
	"encoding/binary"
	"net/netip"
)

// datapaths is the first datapath id but one: that of the N-th node is N more. The router's address on the
// switch's ports follows from it.
const datapaths = 0x00025caf000000

// beSwitch gives a node what follows from its number among all.
func (n *Node) beSwitch(number int) {
	n.Datapath = datapaths + uint64(number)
	n.LinkLocal = switchAddr(n.Datapath)
}

// switchAddr is the address by which a switch is known on its links: that of a device whose hardware address
// is the low half of the datapath id, as one that was given locally.
func switchAddr(datapath uint64) netip.Addr {
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], datapath)
	mac := id[2:]
	mac[0] = mac[0]&^1 | 2
	b := linkLocal.Addr().As16()
	copy(b[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.AddrFrom16(b)
}
