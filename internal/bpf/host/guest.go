package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/sid"
)

// MaxGuests is how many guests a host has at most: MAX_GUESTS of abi.h, less the number of the host itself.
const MaxGuests = 1<<12 - 1

// A Guest is a network namespace of this machine without a daemon: this edge is its edge.
type Guest struct {
	Number   uint16     // 1 to MaxGuests; its flows are known by it
	Link     int        // the interface here that leads to it alone; its other end, in the guest, is a veth's
	Identity netip.Addr // as its programs see themselves; never on the wire
	Wildcard bool       // its listeners on the wildcard address serve a name, too
}

// A guestEnd is what the edge holds of a guest.
type guestEnd struct {
	Guest
	link    link.Link // nil where a clsact filter is used
	pin     string
	sockets injectSockets
}

// AddGuest takes what comes from the guest's link to the network, and what comes for the guest's flows there. One
// of that number that is pinned is taken over. enter runs a function in the guest's namespace.
func (e *Edge) AddGuest(g Guest, enter func(func() error) error) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g.Number == 0 || g.Number > MaxGuests {
		return fmt.Errorf("host edge: guest %d: want 1 to %d", g.Number, MaxGuests)
	}
	if e.guests[g.Number] != nil {
		return fmt.Errorf("host edge: guest %d is there already", g.Number)
	}
	end := &guestEnd{Guest: g, sockets: noSockets}
	defer func() {
		if err != nil {
			end.sockets.close()
			end.close(false) // the first error is told
			err = fmt.Errorf("host edge: guest %d: %w", g.Number, err)
		}
	}()
	if err := enter(func() (err error) { end.sockets, err = openSockets(); return err }); err != nil {
		return err
	}
	row := edgeGuest{Identity: g.Identity.As16(), Number: uint32(g.Number)}
	if err := e.maps.Guests.Put(uint32(g.Link), &row); err != nil {
		return err
	}
	if err := e.maps.GuestLinks.Put(uint32(g.Number), uint32(g.Link)); err != nil {
		return err
	}
	if err := e.putSpace(g); err != nil {
		return err
	}
	if err := e.attachGuest(end); err != nil {
		return fmt.Errorf("attach to interface %d: %w", g.Link, err)
	}
	e.guests[g.Number] = end
	return nil
}

// Which listeners of a guest serve, enum guest_listens.
const (
	guestNamed    = 1
	guestWildcard = 2
)

// putSpace tells the programs where the guest's sockets are. Its link is a veth, whose other end's namespace the kernel
// numbers; where it does not, nobody looks inside.
func (e *Edge) putSpace(g Guest) error {
	l, err := netlink.LinkByIndex(g.Link)
	if err != nil {
		return fmt.Errorf("look at interface %d: %w", g.Link, err)
	}
	var space edgeGuestSpace
	if id := l.Attrs().NetNsID; id >= 0 && l.Type() == "veth" {
		space = edgeGuestSpace{Netns: uint32(id), Listens: guestNamed}
		if g.Wildcard {
			space.Listens = guestWildcard
		}
	}
	return e.maps.GuestSpaces.Put(uint32(g.Number), &space)
}

// RemoveGuest lets nothing of the guest pass any more. What it has of flows is the caller's to end, before.
func (e *Edge) RemoveGuest(number uint16) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.guests[number]
	if g == nil {
		return nil
	}
	delete(e.guests, number)
	g.sockets.close()
	return errors.Join(e.forgetGuest(number, uint32(g.Link)), g.close(false))
}

func (e *Edge) forgetGuest(number uint16, link uint32) error {
	err := errors.Join(e.maps.GuestLinks.Put(uint32(number), uint32(0)),
		e.maps.GuestSpaces.Put(uint32(number), &edgeGuestSpace{}))
	if gone := e.maps.Guests.Delete(link); !errors.Is(gone, ebpf.ErrKeyNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// SweepGuests forgets those that an edge before this one had and that were not added again.
func (e *Edge) SweepGuests() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	stale := map[uint32]uint16{}
	var at uint32
	var row edgeGuest
	it := e.maps.Guests.Iterate()
	for it.Next(&at, &row) {
		if g := e.guests[uint16(row.Number)]; g == nil || g.Link != int(at) {
			stale[at] = uint16(row.Number)
		}
	}
	err := it.Err()
	for at, number := range stale {
		if e.guests[number] != nil {
			err = errors.Join(err, e.maps.Guests.Delete(at))
			continue
		}
		err = errors.Join(err, e.forgetGuest(number, at))
		if e.cfg.Pin != "" {
			os.Remove(guestPin(e.cfg.Pin, number))
		}
	}
	return err
}

// PreferUplink says where new flows of guests leave; 0: nowhere for now.
func (e *Edge) PreferUplink(ifindex int) error {
	if err := e.maps.GuestLinks.Put(uint32(0), uint32(ifindex)); err != nil {
		return fmt.Errorf("host edge: say where guests' flows leave: %w", err)
	}
	return nil
}

func guestPin(dir string, number uint16) string {
	return filepath.Join(dir, fmt.Sprintf("guest-%d", number))
}

// attachGuest puts the program on the guest's link, or lets the pinned one run ours. The caller holds e.mu.
func (e *Edge) attachGuest(g *guestEnd) error {
	prog, err := e.guestProgram()
	if err != nil {
		return err
	}
	if e.cfg.Classic {
		return g.classic(prog)
	}
	if e.cfg.Pin != "" {
		g.pin = guestPin(e.cfg.Pin, g.Number)
		if g.adopt() {
			return g.link.Update(prog)
		}
	}
	g.link, err = link.AttachTCX(link.TCXOptions{Interface: g.Link, Program: prog, Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, ebpf.ErrNotSupported) {
		g.link, g.pin = nil, ""
		return g.classic(prog)
	}
	if err != nil || g.pin == "" {
		return err
	}
	return g.link.Pin(g.pin)
}

// adopt opens the pinned link if it is that of the interface; any other is removed.
func (g *guestEnd) adopt() bool {
	l, err := link.LoadPinnedLink(g.pin, nil)
	if err == nil {
		info, err := l.Info()
		if err == nil && info.TCX() != nil && info.TCX().Ifindex == uint32(g.Link) {
			g.link = l
			return true
		}
		l.Close()
	}
	os.Remove(g.pin)
	return false
}

// classic is for kernels without tcx links: the filter goes with the interface.
func (g *guestEnd) classic(prog *ebpf.Program) error {
	a := attachment{ifindex: g.Link}
	if err := netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: a.qdisc()}); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("add clsact: %w", err)
	}
	f := a.filter(1)
	f.Fd, f.Name, f.DirectAction = prog.FD(), "scaffold-guest", true
	return netlink.FilterReplace(f)
}

func (g *guestEnd) close(keep bool) error {
	if g.link == nil {
		return nil
	}
	if g.pin != "" && !keep {
		os.Remove(g.pin)
	}
	return g.link.Close()
}

// SetOwners says which guests take first packets of a triple; 0 is the host itself, and none means it alone.
// Without protocol and port: packets that have no ports. There is no moment in which an owner stands for another.
func (e *Edge) SetOwners(t sid.Triple, owners []uint16) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := edgeOwnerKey{Suffix: half(uint64(t.Service.Suffix)), Port: portBytes(t.Port), Proto: uint8(t.Proto), Nth: ownersCount}
	var had uint32
	if err := e.maps.Owners.Lookup(&k, &had); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("host edge: who serves %v: %w", t, err)
	}
	count := k
	if len(owners) < int(had) { // fewer are looked at before the others go
		if err := e.countOwners(&count, len(owners)); err != nil {
			return fmt.Errorf("host edge: who serves %v: %w", t, err)
		}
	}
	for i, owner := range owners {
		k.Nth = uint32(i)
		if err := e.maps.Owners.Put(&k, uint32(owner)); err != nil {
			return fmt.Errorf("host edge: who serves %v: %w", t, err)
		}
	}
	for i := len(owners); i < int(had); i++ {
		k.Nth = uint32(i)
		e.maps.Owners.Delete(&k) //nolint:errcheck // it is not looked at
	}
	if len(owners) > int(had) {
		if err := e.countOwners(&count, len(owners)); err != nil {
			return fmt.Errorf("host edge: who serves %v: %w", t, err)
		}
	}
	return nil
}

// ownersCount is OWNERS of abi.h.
const ownersCount = 1<<32 - 1

func (e *Edge) countOwners(k *edgeOwnerKey, n int) error {
	if n > 0 {
		return e.maps.Owners.Put(k, uint32(n))
	}
	if err := e.maps.Owners.Delete(k); !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// SweepOwners forgets who serves the triples that are not to be kept. Of their services only the suffix is known.
func (e *Edge) SweepOwners(keep func(sid.Triple) bool) error {
	var k edgeOwnerKey
	var n uint32
	var stale []sid.Triple
	it := e.maps.Owners.Iterate()
	for it.Next(&k, &n) {
		t := sid.Triple{
			Service: sid.ServiceID{Suffix: sid.Suffix(binary.BigEndian.Uint64(k.Suffix[:]))},
			Proto:   sid.Proto(k.Proto), Port: binary.BigEndian.Uint16(k.Port[:]),
		}
		if k.Nth == ownersCount && !keep(t) {
			stale = append(stale, t)
		}
	}
	err := it.Err()
	for _, t := range stale {
		err = errors.Join(err, e.SetOwners(t, nil))
	}
	return err
}
