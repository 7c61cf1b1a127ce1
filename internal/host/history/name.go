package history

import (
	"net/netip"
	"strconv"

	"scaffold.dev/scaffold/sid"
)

// ParseName reads what people call a flow: a socketID, a stable identifier (or any address that ends in a
// socketID), or an address and a port.
func ParseName(s string) (id sid.SocketID, ip netip.Addr, at netip.AddrPort) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		if n := sid.SocketID(sid.Low(ap.Addr())); n.Valid() {
			return n, ap.Addr(), ap
		}
		return 0, netip.Addr{}, ap
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Is6() {
		if n := sid.SocketID(sid.Low(a)); n.Valid() {
			return n, a, netip.AddrPort{}
		}
		return 0, a, netip.AddrPort{}
	}
	if n, err := strconv.ParseUint(s, 16, 64); err == nil && sid.SocketID(n).Valid() {
		return sid.SocketID(n), netip.Addr{}, netip.AddrPort{}
	}
	return 0, netip.Addr{}, netip.AddrPort{}
}
