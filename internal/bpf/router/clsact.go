package router

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Our filter's place among those of an interface.
const (
	filterPriority = 0x5caf
	filterHandle   = 1
	filterName     = "scaffold_resolve"
)

// attachFilter is Attach for kernels without tcx. The filter itself outlives the process, so there is
// nothing to pin; replacing it is one step.
func (r *Resolver) attachFilter(ifindex int) error {
	qdisc := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: ifindex, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}}
	if err := netlink.QdiscAdd(qdisc); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("clsact on interface %d: %w", ifindex, err)
	}
	f := filter(ifindex)
	f.Fd, f.Name, f.DirectAction = r.objs.Resolve.FD(), filterName, true
	if err := netlink.FilterReplace(f); err != nil {
		return fmt.Errorf("filter on interface %d: %w", ifindex, err)
	}
	r.filters[ifindex] = true
	return nil
}

func filter(ifindex int) *netlink.BpfFilter {
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: netlink.HANDLE_MIN_INGRESS,
		Handle: filterHandle, Protocol: unix.ETH_P_ALL, Priority: filterPriority}}
}

// removeFilter removes the filter; the empty clsact stays, as others may have come to use it.
func removeFilter(ifindex int) error {
	err := netlink.FilterDel(filter(ifindex))
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
		return nil // the interface went, and its filters with it
	}
	return err
}
