package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"scaffold.dev/scaffold/internal/bpf/ktime"
)

// An attachment is the pair of programs on one interface, egress first: a SYN must not leave unwritten
// while its answer could already be read.
type attachment struct {
	ifindex int
	links   [2]link.Link // nil where clsact filters are used
	pins    [2]string    // "" when unpinned
}

var directions = [2]string{"egress", "ingress"}

var attachTypes = [2]ebpf.AttachType{ebpf.AttachTCXEgress, ebpf.AttachTCXIngress}

// Attach puts the edge on an uplink. Before SetUplink gave it a locator, nothing of ours leaves there.
func (e *Edge) Attach(ifindex int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	l2, err := headerLen(ifindex)
	if err != nil {
		return err
	}
	progs, err := e.programsFor(l2)
	if err != nil {
		return err
	}
	if a := e.uplinks[ifindex]; a != nil {
		return a.update(progs)
	}
	a := &attachment{ifindex: ifindex}
	if err := a.attach(progs, e.cfg); err != nil {
		a.close(false)
		return fmt.Errorf("host edge: attach to interface %d: %w", ifindex, err)
	}
	e.uplinks[ifindex] = a
	return nil
}

// Detach takes the edge off an uplink. What was bound over it can go on over another one.
func (e *Edge) Detach(ifindex int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.uplinks[ifindex]
	if a == nil {
		return fmt.Errorf("host edge: detach from interface %d: not attached there", ifindex)
	}
	delete(e.uplinks, ifindex)
	if err := e.place(func(p *edgePlace) error { p.retire(uint32(ifindex), [8]byte{}, ktime.Now()); return nil }); err != nil {
		return fmt.Errorf("host edge: forget uplink %d: %w", ifindex, err)
	}
	return a.close(false)
}

// headerLen is the length of the link's own header: an interface of tunnels and TUNs has none.
func headerLen(ifindex int) (uint32, error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return 0, fmt.Errorf("host edge: look at interface %d: %w", ifindex, err)
	}
	if len(l.Attrs().HardwareAddr) == 6 {
		return ethernetLen, nil
	}
	switch l.Attrs().EncapType {
	case "ether", "loopback":
		return ethernetLen, nil
	}
	return 0, nil
}

func (a *attachment) attach(p programs, cfg Config) error {
	if cfg.Classic {
		return a.attachClassic(p)
	}
	for i, prog := range [2]*ebpf.Program{p.EdgeEgress, p.EdgeIngress} {
		l, err := link.AttachTCX(link.TCXOptions{Interface: a.ifindex, Program: prog, Attach: attachTypes[i]})
		if errors.Is(err, ebpf.ErrNotSupported) {
			return a.attachClassic(p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", directions[i], err)
		}
		a.links[i] = l
		if cfg.Pin == "" {
			continue
		}
		pin := filepath.Join(cfg.Pin, linkName(a.ifindex, directions[i]))
		if err := l.Pin(pin); err != nil {
			return fmt.Errorf("pin %s: %w", pin, err)
		}
		a.pins[i] = pin
	}
	return nil
}

// update makes the links run other programs without a gap.
func (a *attachment) update(p programs) error {
	if a.links[0] == nil {
		return a.attachClassic(p)
	}
	for i, prog := range [2]*ebpf.Program{p.EdgeEgress, p.EdgeIngress} {
		if err := a.links[i].Update(prog); err != nil {
			return fmt.Errorf("host edge: update %s of interface %d: %w", directions[i], a.ifindex, err)
		}
	}
	return nil
}

func (a *attachment) close(keep bool) error {
	if a.links[0] == nil && !keep {
		return a.detachClassic()
	}
	var first error
	for i, l := range a.links {
		if l == nil {
			continue
		}
		if a.pins[i] != "" && !keep {
			os.Remove(a.pins[i])
		}
		if err := l.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func linkName(ifindex int, direction string) string {
	return fmt.Sprintf("link-%d-%s", ifindex, direction)
}

// adoptLinks takes over the pinned links and lets them run our programs. A link whose interface has gone
// is removed.
func (e *Edge) adoptLinks() error {
	if e.cfg.Pin == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(e.cfg.Pin, "link-*-egress"))
	if err != nil {
		return fmt.Errorf("host edge: list pinned links: %w", err)
	}
	for _, egress := range names {
		number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(egress), "link-"), "-egress")
		ifindex, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		if err := e.adopt(ifindex); err != nil {
			return err
		}
	}
	return nil
}

func (e *Edge) adopt(ifindex int) error {
	a := &attachment{ifindex: ifindex}
	alive := true
	for i, direction := range directions {
		a.pins[i] = filepath.Join(e.cfg.Pin, linkName(ifindex, direction))
		l, err := link.LoadPinnedLink(a.pins[i], nil)
		if err != nil {
			alive = false
			continue
		}
		a.links[i] = l
		info, err := l.Info()
		alive = alive && err == nil && info.TCX() != nil && info.TCX().Ifindex == uint32(ifindex)
	}
	if !alive {
		for _, pin := range a.pins {
			os.Remove(pin)
		}
		return a.close(true)
	}
	l2, err := headerLen(ifindex)
	if err != nil {
		return err
	}
	progs, err := e.programsFor(l2)
	if err != nil {
		return err
	}
	e.uplinks[ifindex] = a
	return a.update(progs)
}
