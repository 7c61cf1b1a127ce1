package divert

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// A hook is a place where a program of ours runs.
type hook struct {
	ifindex int
	egress  bool
}

// pin is the name of a hook's pinned link.
func (h hook) pin() string {
	if h.egress {
		return fmt.Sprintf("%s%d-egress", linkPin, h.ifindex)
	}
	return fmt.Sprintf("%s%d-ingress", linkPin, h.ifindex)
}

const linkPin = "link-"

// A holder keeps a program at a hook.
type holder interface {
	remove() error // takes it away
	leave() error  // lets go of it, and it goes on
}

// hooksOf is where the programs belong.
func (d *Diverter) hooksOf() (map[hook]*ebpf.Program, error) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, fmt.Errorf("lo, by which held SYNs come back: %w", err)
	}
	if lo.Flags&net.FlagUp == 0 {
		return nil, errors.New("lo is down, by which held SYNs come back: ip link set lo up")
	}
	all := map[hook]*ebpf.Program{{lo.Index, false}: d.objs.Reinject}
	for _, index := range d.cfg.Ports {
		i, err := net.InterfaceByIndex(index)
		if err != nil {
			return nil, fmt.Errorf("port %d: %w", index, err)
		}
		if len(i.HardwareAddr) != 6 || index == lo.Index {
			return nil, fmt.Errorf("port %s: expected an interface of Ethernet", i.Name)
		}
		all[hook{index, false}], all[hook{index, true}] = d.objs.Divert, d.objs.Finish
	}
	return all, nil
}

// attachAll puts the programs in place of those that a killed agent left, and takes away those at ports that are none any
// more.
func (d *Diverter) attachAll() error {
	hooks, err := d.hooksOf()
	if err != nil {
		return err
	}
	left := d.adoptLinks()
	for h, program := range hooks {
		if err := d.attach(h, program, left[h.pin()]); err != nil {
			return err
		}
		delete(left, h.pin())
	}
	errs := []error{d.sweepFilters()}
	for _, l := range left {
		errs = append(errs, pinnedLink{l}.remove())
	}
	return errors.Join(errs...)
}

// adoptLinks are the pinned links, by the names of their pins.
func (d *Diverter) adoptLinks() map[string]link.Link {
	links := map[string]link.Link{}
	pins, _ := filepath.Glob(filepath.Join(d.cfg.Pin, linkPin+"*")) // the pattern is well-formed
	for _, pin := range pins {
		if l, err := link.LoadPinnedLink(pin, nil); err == nil {
			links[filepath.Base(pin)] = l
		}
	}
	return links
}

func (d *Diverter) attach(h hook, program *ebpf.Program, left link.Link) error {
	if left != nil {
		info, err := left.Info()
		if err == nil && info.TCX() != nil && int(info.TCX().Ifindex) == h.ifindex {
			if err = left.Update(program); err == nil {
				d.hooks[h] = pinnedLink{left}
				return nil
			}
		}
		if err := (pinnedLink{left}).remove(); err != nil { // its interface is gone, and the number another's
			return err
		}
	}
	if d.cfg.NoTCX {
		return d.attachFilter(h, program)
	}
	at := ebpf.AttachTCXIngress
	if h.egress {
		at = ebpf.AttachTCXEgress
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: h.ifindex, Program: program, Attach: at})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return d.attachFilter(h, program)
	}
	if err != nil {
		return fmt.Errorf("attach to interface %d: %w", h.ifindex, err)
	}
	if err := l.Pin(filepath.Join(d.cfg.Pin, h.pin())); err != nil {
		return errors.Join(fmt.Errorf("pin the link of interface %d: %w", h.ifindex, err), l.Close())
	}
	d.hooks[h] = pinnedLink{l}
	return nil
}

type pinnedLink struct{ l link.Link }

func (p pinnedLink) remove() error {
	return errors.Join(p.l.Unpin(), p.l.Close())
}

func (p pinnedLink) leave() error { return p.l.Close() }

func (d *Diverter) detachAll() error {
	var errs []error
	for h, held := range d.hooks {
		errs = append(errs, held.remove())
		delete(d.hooks, h)
	}
	return errors.Join(errs...)
}

// removePins removes what is pinned in a directory, but not the directory, which is locked.
func removePins(dir string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}
