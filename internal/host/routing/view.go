package routing

import (
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A view is what is in the kernel at one moment. Each list is read once, when it is first asked for: flows
// wait while the host's set-up is compared with it.
type view struct {
	addrList  listing[netlink.Addr]
	routeList listing[netlink.Route]
	ruleList  listing[netlink.Rule]
}

type listing[T any] struct {
	read bool
	all  []T
	err  error
}

func (l *listing[T]) get(read func() ([]T, error)) ([]T, error) {
	if !l.read {
		l.read = true
		l.all, l.err = read()
	}
	return l.all, l.err
}

// addresses are those of all links.
func (v *view) addresses() ([]netlink.Addr, error) {
	return v.addrList.get(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_V6) })
}

// routes are those of all tables.
func (v *view) routes() ([]netlink.Route, error) {
	return v.routeList.get(func() ([]netlink.Route, error) {
		all := &netlink.Route{Table: unix.RT_TABLE_UNSPEC}
		return netlink.RouteListFiltered(netlink.FAMILY_V6, all, netlink.RT_FILTER_TABLE)
	})
}

func (v *view) hasRule(is func(netlink.Rule) bool) (bool, error) {
	all, err := v.ruleList.get(func() ([]netlink.Rule, error) { return netlink.RuleList(netlink.FAMILY_V6) })
	return slices.ContainsFunc(all, is), err
}
