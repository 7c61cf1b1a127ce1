package underlay

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// A Path is how packets leave for an address.
type Path struct {
	Source netip.Addr
	Dev    string
	MTU    int // that the kernel knows of: the interface's, the route's, or what ICMP said
}

// Reach looks the way to an address up, as the kernel would go now.
func Reach(to netip.Addr) (Path, error) {
	routes, err := netlink.RouteGet(to.AsSlice())
	if err != nil || len(routes) == 0 {
		return Path{}, fmt.Errorf("no route to %v: %w", to, err)
	}
	r := routes[0]
	link, err := netlink.LinkByIndex(r.LinkIndex)
	if err != nil {
		return Path{}, fmt.Errorf("the way to %v: %w", to, err)
	}
	p := Path{Dev: link.Attrs().Name, MTU: link.Attrs().MTU}
	p.Source, _ = netip.AddrFromSlice(r.Src)
	p.Source = p.Source.Unmap()
	if r.MTU > 0 {
		p.MTU = min(p.MTU, r.MTU)
	}
	if !p.Source.IsValid() {
		return Path{}, fmt.Errorf("the way to %v by %s has no source address", to, p.Dev)
	}
	return p, nil
}
