package host

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/sid"
)

// An Uplink is what packets need to know about the link on which they leave.
type Uplink struct {
	Locator sid.Locator // 0: none yet, nothing of ours leaves
	MTU     uint16      // the MSS of SYN and SYN-ACK is clamped to it; 0: not clamped
}

// SetUplink gives the uplink its locator. Flows do not store it, so that a move is this one write.
func (e *Edge) SetUplink(ifindex int, u Uplink) error {
	v := edgeUplink{Locator: half(uint64(u.Locator)), Mtu: u.MTU}
	if err := e.maps.Uplinks.Put(uint32(ifindex), &v); err != nil {
		return fmt.Errorf("host edge: set uplink %d: %w", ifindex, err)
	}
	return nil
}

// AcceptLocator says whether what arrives for the locator is ours. An old locator stays accepted for a
// grace time: make-before-break loses nothing.
func (e *Edge) AcceptLocator(l sid.Locator, accept bool) error {
	key := network(uint64(l))
	var err error
	if accept {
		err = e.maps.Locators.Put(key, uint32(1))
	} else if err = e.maps.Locators.Delete(key); errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("host edge: accept %v = %v: %w", l, accept, err)
	}
	return nil
}

// half is one half of an address as it lies in a packet.
func half(v uint64) [8]byte { return [8]byte(binary.BigEndian.AppendUint64(nil, v)) }

// portBytes is a port as it lies in a packet.
func portBytes(p uint16) [2]byte { return [2]byte(binary.BigEndian.AppendUint16(nil, p)) }
