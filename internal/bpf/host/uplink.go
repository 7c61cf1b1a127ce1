package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
)

// An Uplink is what packets need to know about the link on which they leave.
type Uplink struct {
	Locator sid.Locator // 0: none yet, nothing of ours leaves
	MTU     uint16      // the MSS of SYN and SYN-ACK is clamped to it; 0: not clamped
	Router  netip.Addr  // link-local address of the router there; invalid where the link needs none: a tunnel
}

// SetUplink gives the uplink its locator. The one that it had before is retired: flows go on under it, and
// leave by whichever uplink the routing table chooses, until Steer moves them. Without a locator the uplink is
// out of use.
func (e *Edge) SetUplink(ifindex int, u Uplink) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := edgeSlot{Ifindex: uint32(ifindex), Locator: half(uint64(u.Locator)), Mtu: u.MTU}
	if u.Router.Is6() {
		v.Router = u.Router.As16()
	}
	if err := e.place(func(p *edgePlace) error { return p.set(v, ktime.Now()) }); err != nil {
		return fmt.Errorf("host edge: set uplink %d: %w", ifindex, err)
	}
	return nil
}

// Quiet says whether what connections send is kept back that are yet to move from a locator which no uplink has any
// more. Their kernel believes it sent, and tries again ever less often; without it each try goes out, or fails for want
// of room, which no kernel takes for a reason to wait. A locator that an uplink has is left alone.
func (e *Edge) Quiet(l sid.Locator, yes bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.place(func(p *edgePlace) error { p.quiet(half(uint64(l)), yes); return nil }); err != nil {
		return fmt.Errorf("host edge: quiet %v = %v: %w", l, yes, err)
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

// set gives the uplink a slot: the one of the same locator, so that flows that were left behind there come
// back to life, or a free one, or the one that was retired first.
func (p *edgePlace) set(s edgeSlot, now uint64) error {
	p.retire(s.Ifindex, s.Locator, now)
	if s.Locator == [8]byte{} {
		return nil
	}
	var best *edgeSlot
	for i := range p.Slots {
		have := &p.Slots[i]
		switch {
		case have.Locator == s.Locator:
			*have = s
			return nil
		case have.Ifindex == 0 && (best == nil || have.Retired < best.Retired):
			best = have // a free one was never retired
		}
	}
	if best == nil {
		return fmt.Errorf("a host has at most %d uplinks", len(p.Slots))
	}
	*best = s
	return nil
}

// retire takes the uplink out of its slot, unless it is the locator's. Flows name the slot, so it stays.
func (p *edgePlace) retire(ifindex uint32, except [8]byte, now uint64) {
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Ifindex == ifindex && s.Locator != except {
			s.Ifindex, s.Retired = 0, now
		}
	}
}

func (p *edgePlace) quiet(l [8]byte, yes bool) {
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Ifindex == 0 && s.Locator == l && yes {
			s.Quiet = 1
		} else if s.Locator == l {
			s.Quiet = 0
		}
	}
}

// slots is where the host is and was.
func (e *Edge) slots() (slots [8]edgeSlot, err error) {
	var p edgePlace
	err = e.maps.Places.Lookup(uint32(0), &p)
	return p.Slots, err
}

func (s *edgeSlot) locator() sid.Locator { return sid.Locator(binary.BigEndian.Uint64(s.Locator[:])) }

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

// half is one half of an address as it lies in a packet.
func half(v uint64) [8]byte { return [8]byte(binary.BigEndian.AppendUint64(nil, v)) }

// portBytes is a port as it lies in a packet.
func portBytes(p uint16) [2]byte { return [2]byte(binary.BigEndian.AppendUint16(nil, p)) }
