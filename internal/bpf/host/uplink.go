package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/sid"
)

// An Uplink is what packets need to know about the link on which they leave.
type Uplink struct {
	Locator sid.Locator // 0: none yet, nothing of ours leaves
	MTU     uint16      // the MSS of SYN and SYN-ACK is clamped to it; 0: not clamped
	Router  netip.Addr  // link-local address of the router there; invalid: as the routing table says
}

// SetUplink gives the uplink its locator. Flows do not store it, so that a move is this one write.
func (e *Edge) SetUplink(ifindex int, u Uplink) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := edgeUplink{Ifindex: uint32(ifindex), Locator: half(uint64(u.Locator)), Mtu: u.MTU}
	if err := e.place(func(p *edgePlace) error { return p.set(v) }); err != nil {
		return fmt.Errorf("host edge: set uplink %d: %w", ifindex, err)
	}
	return nil
}

// AcceptLocator says whether what arrives for the locator is ours. An old locator stays accepted for a
// grace time: make-before-break loses nothing.
func (e *Edge) AcceptLocator(l sid.Locator, accept bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.place(func(p *edgePlace) error { return p.accept(half(uint64(l)), accept) }); err != nil {
		return fmt.Errorf("host edge: accept %v = %v: %w", l, accept, err)
	}
	return nil
}

// place changes where the host is. The caller holds e.mu; the programs only read.
func (e *Edge) place(change func(*edgePlace) error) error {
	var p edgePlace
	if err := e.maps.Places.Lookup(uint32(0), &p); err != nil {
		return err
	}
	if err := change(&p); err != nil {
		return err
	}
	return e.maps.Places.Update(uint32(0), &p, ebpf.UpdateAny)
}

// set replaces the uplink's entry, or takes a free one.
func (p *edgePlace) set(u edgeUplink) error {
	for _, ifindex := range []uint32{u.Ifindex, 0} {
		for i := range p.Uplinks {
			if p.Uplinks[i].Ifindex == ifindex {
				p.Uplinks[i] = u
				return nil
			}
		}
	}
	return fmt.Errorf("a host has at most %d uplinks", len(p.Uplinks))
}

func (p *edgePlace) forget(ifindex int) {
	for i := range p.Uplinks {
		if p.Uplinks[i].Ifindex == uint32(ifindex) {
			p.Uplinks[i] = edgeUplink{}
		}
	}
}

func (p *edgePlace) accept(l [8]byte, accept bool) error {
	var free *[8]byte
	for i := range p.Locators {
		at := &p.Locators[i]
		switch {
		case *at == l && accept:
			return nil
		case *at == l:
			*at = [8]byte{}
			return nil
		case *at == [8]byte{} && free == nil:
			free = at
		}
	}
	if !accept {
		return nil
	}
	if free == nil {
		return fmt.Errorf("a host has at most %d locators, old ones included", len(p.Locators))
	}
	*free = l
	return nil
}

// anyLocator is the locator of one uplink that has one, for showing; 0 when there is none.
func (e *Edge) anyLocator() sid.Locator {
	var p edgePlace
	if err := e.maps.Places.Lookup(uint32(0), &p); err != nil {
		return 0
	}
	for _, u := range p.Uplinks {
		if l := binary.BigEndian.Uint64(u.Locator[:]); l != 0 {
			return sid.Locator(l)
		}
	}
	return 0
}

// half is one half of an address as it lies in a packet.
func half(v uint64) [8]byte { return [8]byte(binary.BigEndian.AppendUint64(nil, v)) }

// portBytes is a port as it lies in a packet.
func portBytes(p uint16) [2]byte { return [2]byte(binary.BigEndian.AppendUint16(nil, p)) }
