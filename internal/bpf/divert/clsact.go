package divert

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Our filter's place among those of an interface: before that of a router of Scaffold.
const (
	filterPriority = 0x5cae
	filterHandle   = 1
	filterName     = "scaffold_divert"
)

// attachFilter is attach for kernels without tcx. The filter itself outlives the process, so there is nothing to pin;
// replacing it is one step.
func (d *Diverter) attachFilter(h hook, program *ebpf.Program) error {
	qdisc := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: h.ifindex, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}}
	if err := netlink.QdiscAdd(qdisc); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("clsact on interface %d: %w", h.ifindex, err)
	}
	f := filter(h)
	f.Fd, f.Name, f.DirectAction = program.FD(), filterName, true
	if err := netlink.FilterReplace(f); err != nil {
		return fmt.Errorf("filter on interface %d: %w", h.ifindex, err)
	}
	d.hooks[h] = filterHolder{h, d}
	return nil
}

// sweepFilters removes the filters of an agent that was killed from ports that are none any more.
func (d *Diverter) sweepFilters() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list the interfaces: %w", err)
	}
	var errs []error
	for _, l := range links {
		for _, egress := range []bool{false, true} {
			h := hook{l.Attrs().Index, egress}
			if _, ours := d.hooks[h].(filterHolder); !ours && hasFilter(l, h) {
				errs = append(errs, netlink.FilterDel(filter(h)))
			}
		}
	}
	return errors.Join(errs...)
}

// hasFilter looks for our filter by its place; an interface without clsact has none.
func hasFilter(l netlink.Link, h hook) bool {
	all, err := netlink.FilterList(l, filter(h).Parent)
	if err != nil {
		return false
	}
	for _, f := range all {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Priority == filterPriority && b.Handle == filterHandle && strings.HasPrefix(b.Name, filterName) {
			return true
		}
	}
	return false
}

func filter(h hook) *netlink.BpfFilter {
	parent := uint32(netlink.HANDLE_MIN_INGRESS)
	if h.egress {
		parent = netlink.HANDLE_MIN_EGRESS
	}
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: h.ifindex, Parent: parent,
		Handle: filterHandle, Protocol: unix.ETH_P_ALL, Priority: filterPriority}}
}

type filterHolder struct {
	at hook
	d  *Diverter
}

func (f filterHolder) leave() error { return nil }

// remove removes the filter; the empty clsact stays, as others may have come to use it.
func (f filterHolder) remove() error {
	return f.d.net.inside(func() error {
		err := netlink.FilterDel(filter(f.at))
		if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
			return nil // the interface went, and its filters with it
		}
		return err
	})
}
