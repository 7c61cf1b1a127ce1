package host

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// Send sends a message between host stacks: UDP from port 23727 to port 23727, from an address of ours, out
// of the interface of its locator or, when that is retired, of any. Where to is a service, retry goes into the
// flow label and a service router finds the instance.
func (e *Edge) Send(from, to netip.Addr, retry uint8, payload []byte) error {
	packet := message(from, to, retry, payload)
	ifindex, err := e.uplinkOf(sid.LocatorOf(from))
	if err != nil {
		return fmt.Errorf("host edge: send from %v: %w", from, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sockets.messages < 0 {
		if e.sockets.messages, err = rawSocket(0, ""); err != nil {
			return err
		}
	}
	err = e.sendBy(ifindex, packet, to)
	if ifindex != 0 && err != nil {
		err = e.sendBy(0, packet, to) // no route there: the programs send it by its uplink all the same
	}
	if err != nil {
		return fmt.Errorf("host edge: send %d bytes from %v to %v: %w", len(payload), from, to, err)
	}
	return nil
}

// sendBy sends a whole packet out of the interface, or of the one that the routing table says.
func (e *Edge) sendBy(ifindex int, packet []byte, to netip.Addr) error {
	var oob []byte
	if ifindex != 0 {
		oob = unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: uint32(ifindex)})
	}
	return unix.Sendmsg(e.sockets.messages, packet, oob, &unix.SockaddrInet6{Addr: to.As16()}, unix.MSG_DONTWAIT)
}

// uplinkOf is the interface that has the locator now, 0 where none has.
func (e *Edge) uplinkOf(l sid.Locator) (int, error) {
	slots, err := e.slots()
	if err != nil {
		return 0, err
	}
	for i := range slots {
		if slots[i].locator() == l {
			return int(slots[i].Ifindex), nil
		}
	}
	return 0, nil
}

// message is the whole IPv6 packet.
func message(from, to netip.Addr, retry uint8, payload []byte) []byte {
	b := header.AppendDatagram(nil, netip.AddrPortFrom(from, sid.Port), netip.AddrPortFrom(to, sid.Port), ownHops, payload)
	b[3] |= retry & 3 // of the flow label, which no checksum covers
	return b
}
