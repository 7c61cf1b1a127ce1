package router

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

const linkPin = "link-"

// Attach runs the program on what arrives at the interface. Doing it twice is no error.
func (r *Resolver) Attach(ifindex int) error {
	if r.links[ifindex] != nil {
		return nil
	}
	if r.cfg.NoTCX {
		return r.attachFilter(ifindex)
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: r.objs.Resolve, Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return r.attachFilter(ifindex)
	}
	if err != nil {
		return fmt.Errorf("attach to interface %d: %w", ifindex, err)
	}
	if r.cfg.Pin != "" {
		if err := l.Pin(r.pin(linkPin + strconv.Itoa(ifindex))); err != nil {
			l.Close()
			return fmt.Errorf("pin the link of interface %d: %w", ifindex, err)
		}
	}
	r.links[ifindex] = l
	return nil
}

// Detach undoes Attach; it is no error if the interface is gone.
func (r *Resolver) Detach(ifindex int) error {
	if r.filters[ifindex] {
		delete(r.filters, ifindex)
		return removeFilter(ifindex)
	}
	l := r.links[ifindex]
	if l == nil {
		return nil
	}
	delete(r.links, ifindex)
	return removeLink(l, r.cfg.Pin != "")
}

func removeLink(l link.Link, pinned bool) error {
	var err error
	if pinned {
		err = l.Unpin()
	}
	return errors.Join(err, l.Close())
}

// Attached lists the interfaces that the program runs on.
func (r *Resolver) Attached() (indexes []int) {
	for i := range r.links {
		indexes = append(indexes, i)
	}
	for i := range r.filters {
		indexes = append(indexes, i)
	}
	return indexes
}

func (r *Resolver) detachAll() error {
	var errs []error
	for _, i := range r.Attached() {
		errs = append(errs, r.Detach(i))
	}
	return errors.Join(errs...)
}

// adopt takes over pinned links and reads the pinned tables.
func (r *Resolver) adopt() error {
	if r.cfg.Pin != "" {
		if err := r.adoptLinks(); err != nil {
			return err
		}
	}
	return r.readMaps()
}

func (r *Resolver) adoptLinks() error {
	pins, err := filepath.Glob(r.pin(linkPin + "*"))
	if err != nil {
		return err
	}
	for _, pin := range pins {
		ifindex, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(pin), linkPin))
		if err != nil {
			continue // not ours
		}
		if err := r.adoptLink(pin, ifindex); err != nil {
			return fmt.Errorf("%s: %w", pin, err)
		}
	}
	return nil
}

// adoptLink replaces the program behind a pinned link in one step; links whose interface is gone, or
// whose number now belongs to another, are removed.
func (r *Resolver) adoptLink(pin string, ifindex int) error {
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return os.Remove(pin)
	}
	info, err := l.Info()
	if err != nil || info.TCX() == nil || int(info.TCX().Ifindex) != ifindex {
		return removeLink(l, true)
	}
	if err := l.Update(r.objs.Resolve); err != nil {
		return errors.Join(err, l.Close())
	}
	r.links[ifindex] = l
	return nil
}
