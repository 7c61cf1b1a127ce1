package sid

import "encoding/binary"

// MaxRetry is how often a packet for a name is returned at most, and the largest count that it can carry.
const MaxRetry = 15

// A Label is the flow label of a packet for a name, docs/protocol.md §3.1: how often an instance has returned it, and
// which did so last.
type Label uint32

// NewLabel is the label of a packet that the host at refuser returns as the retry-th.
func NewLabel(refuser Locator, retry uint8) Label {
	return Label(uint16(refuser))<<4 | Label(min(retry, MaxRetry))
}

// LabelOf reads the flow label of an IPv6 packet, of at least its fixed header.
func LabelOf(packet []byte) Label { return Label(binary.BigEndian.Uint32(packet) & 0xfffff) }

// Put writes it into an IPv6 packet, of at least its fixed header. No checksum covers it.
func (l Label) Put(packet []byte) {
	binary.BigEndian.PutUint32(packet, binary.BigEndian.Uint32(packet)&^0xfffff|uint32(l)&0xfffff)
}

// Retry is how often the packet was returned.
func (l Label) Retry() uint8 { return uint8(l & MaxRetry) }

// Refuser is the number in its AS of the host that returned the packet last, 0: of none.
func (l Label) Refuser() uint16 { return uint16(l >> 4) }
