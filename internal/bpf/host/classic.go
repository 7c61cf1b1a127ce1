package host

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Our filters' place among others on the same interface.
const (
	classicPriority = 23727
	classicHandle   = 1
)

var classicParents = [2]uint32{netlink.HANDLE_MIN_EGRESS, netlink.HANDLE_MIN_INGRESS}

// attachClassic is for kernels before 6.6, which have no tcx links. Filters need no pin: they stay until
// somebody removes them. Replacing one is atomic.
func (a *attachment) attachClassic(p programs) error {
	qdisc := &netlink.Clsact{QdiscAttrs: a.qdisc()}
	if err := netlink.QdiscAdd(qdisc); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("add clsact: %w", err)
	}
	for i, prog := range [2]*ebpf.Program{p.EdgeEgress, p.EdgeIngress} {
		f := a.filter(i)
		f.Fd, f.Name, f.DirectAction = prog.FD(), "scaffold-"+directions[i], true
		if err := netlink.FilterReplace(f); err != nil {
			return fmt.Errorf("%s filter: %w", directions[i], err)
		}
	}
	return nil
}

func (a *attachment) detachClassic() error {
	var first error
	for i := range classicParents {
		err := netlink.FilterDel(a.filter(i))
		gone := errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV)
		if err != nil && !gone && first == nil {
			first = fmt.Errorf("remove %s filter: %w", directions[i], err)
		}
	}
	return first
}

func (a *attachment) qdisc() netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: a.ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
}

func (a *attachment) filter(i int) *netlink.BpfFilter {
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{
		LinkIndex: a.ifindex,
		Parent:    classicParents[i],
		Handle:    classicHandle,
		Priority:  classicPriority,
		Protocol:  unix.ETH_P_ALL,
	}}
}
