package routerd

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

// protocol marks our routes in the kernel: only those are ever removed.
const protocol netlink.RouteProtocol = 0x5c

// unreachableMetric lets every other route go before an unreachable one.
const unreachableMetric = 1<<31 - 1

// A routeKey is a prefix; unreachable ones are beside the routes for the same prefix.
type routeKey struct {
	prefix      netip.Prefix
	unreachable bool // answers "unreachable", so that our prefixes never follow a default route
}

type route struct {
	via  netip.Addr // invalid: on link
	port string
	mac  string // of a host: its neighbour entry is static; "" lets the kernel ask
}

// routes is the forwarding table as it should be. What a port without carrier or interface keeps from
// the kernel is put there when the port comes back.
type routes struct {
	want map[routeKey]route
	has  map[routeKey]route // as far as we know: read at the start, changed by us
}

// openRoutes reads what an earlier process has left.
func openRoutes() (*routes, error) {
	r := &routes{want: map[routeKey]route{}, has: map[routeKey]route{}}
	list, err := listRoutes()
	if err != nil {
		return nil, err
	}
	for _, k := range list {
		key, value, ok := r.read(k)
		if ok {
			r.has[key] = value
		}
	}
	return r, nil
}

func listRoutes() ([]netlink.Route, error) {
	list, err := netlink.RouteListFiltered(unix.AF_INET6, &netlink.Route{Protocol: protocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("list the routes: %w", err)
	}
	return list, nil
}

// read turns the kernel's form into ours. A static neighbour belongs to the route via it.
func (r *routes) read(k netlink.Route) (routeKey, route, bool) {
	if k.Dst == nil {
		return routeKey{}, route{}, false
	}
	addr, _ := netip.AddrFromSlice(k.Dst.IP.To16())
	ones, _ := k.Dst.Mask.Size()
	key := routeKey{prefix: netip.PrefixFrom(addr, ones), unreachable: k.Type == unix.RTN_UNREACHABLE}
	if key.unreachable {
		return key, route{}, true
	}
	dev, err := netlink.LinkByIndex(k.LinkIndex)
	if err != nil {
		return key, route{}, false
	}
	value := route{port: dev.Attrs().Name}
	if via, ok := netip.AddrFromSlice(k.Gw); ok {
		value.via = via
		value.mac = staticMAC(k.LinkIndex, via)
	}
	return key, value, true
}

func staticMAC(ifindex int, a netip.Addr) string {
	list, _ := netlink.NeighList(ifindex, unix.AF_INET6)
	for _, n := range list {
		if n.State == netlink.NUD_PERMANENT && n.IP.Equal(net.IP(a.AsSlice())) {
			return string(n.HardwareAddr)
		}
	}
	return ""
}

// ordered are the prefixes that lead somewhere.
func (r *routes) ordered() iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for key := range r.want {
			if !key.unreachable && !yield(key.prefix) {
				return
			}
		}
	}
}

// set makes the route what the table says; there already, it costs nothing.
func (r *routes) set(key routeKey, value route) error {
	r.want[key] = value
	if has, ok := r.has[key]; ok && has == value {
		return nil
	}
	return r.install(key, value)
}

func (r *routes) install(key routeKey, value route) error {
	k := &netlink.Route{Dst: ipNet(key.prefix), Protocol: protocol}
	if key.unreachable {
		k.Type, k.Priority = unix.RTN_UNREACHABLE, unreachableMetric
	} else {
		dev, err := netlink.LinkByName(value.port)
		if err != nil || dev.Attrs().RawFlags&unix.IFF_UP == 0 {
			delete(r.has, key)
			return nil // restore puts it there
		}
		k.LinkIndex = dev.Attrs().Index
		if err := setNeighbour(dev, value); err != nil {
			return err
		}
		if value.via.IsValid() {
			k.Gw = net.IP(value.via.AsSlice())
		}
	}
	if err := netlink.RouteReplace(k); err != nil {
		if down(err) {
			return nil
		}
		return fmt.Errorf("route %v via %v on %s: %w", key.prefix, value.via, value.port, err)
	}
	r.has[key] = value
	return nil
}

// down reports errors that only mean that the port is not there now.
func down(err error) bool {
	return errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENODEV)
}

// setNeighbour spares the first packet to a host the question for its address.
func setNeighbour(dev netlink.Link, value route) error {
	if value.mac == "" || !value.via.IsValid() {
		return nil
	}
	n := &netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_INET6, State: netlink.NUD_PERMANENT,
		IP: net.IP(value.via.AsSlice()), HardwareAddr: net.HardwareAddr(value.mac)}
	if err := netlink.NeighSet(n); err != nil && !down(err) {
		return fmt.Errorf("neighbour %v on %s: %w", value.via, value.port, err)
	}
	return nil
}

// remove takes the route away, and the neighbour entry that came with it.
func (r *routes) remove(key routeKey) error {
	delete(r.want, key)
	has, ok := r.has[key]
	if !ok {
		return nil
	}
	delete(r.has, key)
	k := &netlink.Route{Dst: ipNet(key.prefix), Protocol: protocol}
	if key.unreachable {
		k.Type, k.Priority = unix.RTN_UNREACHABLE, unreachableMetric
	}
	dev, devErr := netlink.LinkByName(has.port)
	if !key.unreachable && devErr != nil {
		return nil // the interface took its routes along
	}
	if devErr == nil {
		k.LinkIndex = dev.Attrs().Index
		defer r.removeNeighbour(dev, has)
	}
	if err := netlink.RouteDel(k); err != nil && !errors.Is(err, unix.ESRCH) && !down(err) {
		return fmt.Errorf("remove the route %v: %w", key.prefix, err)
	}
	return nil
}

// removeNeighbour keeps an entry that another route still goes via.
func (r *routes) removeNeighbour(dev netlink.Link, gone route) {
	if gone.mac == "" {
		return
	}
	for _, other := range r.has {
		if other.via == gone.via && other.port == gone.port {
			return
		}
	}
	netlink.NeighDel(&netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_INET6, IP: net.IP(gone.via.AsSlice()), //nolint:errcheck // gone with the port, perhaps
		HardwareAddr: net.HardwareAddr(gone.mac), State: netlink.NUD_PERMANENT})
}

// restore puts the routes of a port that came up into the kernel again.
func (r *routes) restore(port string) error {
	var errs []error
	for key, value := range r.want {
		if value.port == port && !key.unreachable {
			errs = append(errs, r.install(key, value))
		}
	}
	return errors.Join(errs...)
}

// sweep removes what the table does not want: leftovers of an earlier process.
func (r *routes) sweep() error {
	var errs []error
	for key := range r.has {
		if _, ok := r.want[key]; !ok {
			errs = append(errs, r.remove(key))
		}
	}
	return errors.Join(errs...)
}

// clear removes all our routes.
func (r *routes) clear() error {
	clear(r.want)
	return r.sweep()
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), 128)}
}

// setOwn makes <locator>::1 the router's one address in its AS, on the loopback.
func setOwn(space sid.Space, own sid.Locator) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	list, err := netlink.AddrList(lo, unix.AF_INET6)
	if err != nil {
		return err
	}
	var want net.IP
	if own != 0 {
		want = net.IP(own.Host().AsSlice())
	}
	found := false
	for _, a := range list {
		switch {
		case a.IP.Equal(want):
			found = true
		case ipNet(space.AS).Contains(a.IP):
			if err := netlink.AddrDel(lo, &a); err != nil {
				return fmt.Errorf("remove the address %v: %w", a.IP, err)
			}
		}
	}
	if found || want == nil {
		return nil
	}
	a := &netlink.Addr{IPNet: &net.IPNet{IP: want, Mask: net.CIDRMask(128, 128)}, Flags: unix.IFA_F_NODAD}
	if err := netlink.AddrAdd(lo, a); err != nil {
		return fmt.Errorf("add the address %v: %w", want, err)
	}
	return nil
}
