package routerd

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/sid"
)

// ownRule is the priority of the rule for the router's own packets, before those of a host beside it: what that host's
// programs send goes to its uplink, and the router's PROBEs and HELLOs must not.
const ownRule = 23720

// besideHost has the router's own packets routed by its own routes while a host of this machine is behind it.
func (d *daemon) besideHost() error {
	if d.portNamed(underlay.OwnPort) == nil || d.locator == 0 || !d.space.AS.IsValid() {
		return routeOwn(0)
	}
	return routeOwn(d.locator)
}

// routeOwn makes the rule for that locator's address the only one; for 0 there is none.
func routeOwn(own sid.Locator) error {
	all, err := netlink.RuleList(netlink.FAMILY_V6)
	if err != nil {
		return fmt.Errorf("list the rules: %w", err)
	}
	all = slices.DeleteFunc(all, func(r netlink.Rule) bool { return r.Priority != ownRule || r.Src == nil })
	var want *netlink.Rule
	if own != 0 {
		want = netlink.NewRule()
		want.Family, want.Priority, want.Table, want.IifName, want.Src = netlink.FAMILY_V6, ownRule, unix.RT_TABLE_MAIN, "lo", ipNet(netip.PrefixFrom(own.Host(), 128))
		if !slices.ContainsFunc(all, func(r netlink.Rule) bool { return r.Src.String() == want.Src.String() }) {
			if err := netlink.RuleAdd(want); err != nil {
				return fmt.Errorf("route the router's own packets beside its host: %w", err)
			}
		}
	}
	var errs []error
	for i := range all {
		if want == nil || all[i].Src.String() != want.Src.String() {
			all[i].Family = netlink.FAMILY_V6
			errs = append(errs, netlink.RuleDel(&all[i]))
		}
	}
	return errors.Join(errs...)
}
