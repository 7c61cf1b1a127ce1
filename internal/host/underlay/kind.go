package underlay

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A Kind is how a tunnel's frames are carried.
type Kind string

// The kinds of tunnels.
const (
	VXLAN     Kind = "vxlan"
	WireGuard Kind = "wireguard"
)

// Kinds are all that there are.
var Kinds = []Kind{VXLAN, WireGuard}

// MinMTU is what IPv6 wants of every link, RFC 8200 §5. Where an underlay leaves less, outer packets are cut.
const MinMTU = 1280

// maxMTU bounds what a tunnel carries to what the edge can tell.
const maxMTU = 9000

// DefaultPort is the UDP port of a kind of tunnel at routers.
func (k Kind) DefaultPort() uint16 {
	if k == WireGuard {
		return 23730
	}
	return 23729
}

func (k Kind) known() bool { return slices.Contains(Kinds, k) }

// The headers around a frame, in bytes: VXLAN's with UDP's, and WireGuard's with UDP's and the tag; the VXLAN
// inside WireGuard goes over IPv4.
const (
	ipv4Header, ipv6Header = 20, 40
	vxlanHeaders           = 8 + 8
	ethernetHeader         = 14
	wireguardHeaders       = 8 + 16 + 16
	insideWireGuard        = ipv4Header + vxlanHeaders + ethernetHeader
)

// Overhead is what the kind puts around a packet that goes to the address, in bytes.
func (k Kind) Overhead(to netip.Addr) int {
	outer := ipv6Header
	if to.Unmap().Is4() {
		outer = ipv4Header
	}
	if k == WireGuard {
		return outer + wireguardHeaders + insideWireGuard
	}
	return outer + vxlanHeaders + ethernetHeader
}

// Fit is the MTU that a path of so many bytes to the address leaves to a tunnel.
func (k Kind) Fit(path int, to netip.Addr) int {
	return max(MinMTU, min(maxMTU, path-k.Overhead(to)))
}

// An Offer is where a router takes tunnels of a kind.
type Offer struct {
	Kind Kind
	At   netip.AddrPort // as hosts reach it
}

func (o Offer) String() string { return string(o.Kind) + ":" + o.At.String() }

// ParseOffers reads [KIND:]ADDRESS[:PORT], with brackets around an IPv6 address that a port follows. Without a
// kind it is both, each at its own port.
func ParseOffers(s string) ([]Offer, error) {
	const want = "want [KIND:]ADDRESS[:PORT], such as 192.0.2.1, wireguard:192.0.2.1 or vxlan:[2001:db8::1]:4789"
	kinds, rest := Kinds, s
	if k, after, ok := strings.Cut(s, ":"); ok && Kind(k).known() {
		kinds, rest = []Kind{Kind(k)}, after
	}
	at, err := netip.ParseAddrPort(rest)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(strings.Trim(rest, "[]")); err != nil {
			return nil, fmt.Errorf("tunnel %.80q: %s", s, want)
		}
		at = netip.AddrPortFrom(a, 0)
	} else if at.Port() == 0 {
		return nil, fmt.Errorf("tunnel %.80q: port 0: want 1 to 65535", s)
	}
	a := at.Addr().Unmap()
	switch {
	case a.Zone() != "" || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() || a.IsLoopback():
		return nil, fmt.Errorf("tunnel %.80q: hosts elsewhere cannot reach this address: name one of the underlay", s)
	case at.Port() != 0 && len(kinds) > 1:
		return nil, fmt.Errorf("tunnel %.80q: of which kind is port %d? write vxlan:%s or wireguard:%s", s, at.Port(), rest, rest)
	}
	var offers []Offer
	for _, k := range kinds {
		offers = append(offers, Offer{k, netip.AddrPortFrom(a, cmp.Or(at.Port(), k.DefaultPort()))})
	}
	return offers, nil
}

// CheckOffers says what keeps offers from standing beside each other: Linux has one port for all VXLAN of a
// router, and one WireGuard has one port.
func CheckOffers(offers []Offer) error {
	ports := map[Kind]uint16{}
	for _, o := range offers {
		if p, ok := ports[o.Kind]; ok && p != o.At.Port() {
			return fmt.Errorf("tunnels of kind %s at ports %d and %d: want one port for all addresses", o.Kind, p, o.At.Port())
		}
		ports[o.Kind] = o.At.Port()
	}
	if p, ok := ports[VXLAN]; ok && p == ports[WireGuard] {
		return fmt.Errorf("tunnels of both kinds at port %s: want one port for each", strconv.Itoa(int(p)))
	}
	return nil
}

// uplinkWord is how a host asks for a tunnel in the place of an interface.
const uplinkWord = "tunnel"

// ParseUplink reads "tunnel" or "tunnel:KIND". Anything else is the name of an interface: not ok.
func ParseUplink(s string) (kinds []Kind, ok bool, err error) {
	if s == uplinkWord {
		return Kinds, true, nil
	}
	k, found := strings.CutPrefix(s, uplinkWord+":")
	if !found {
		return nil, false, nil
	}
	if !Kind(k).known() {
		return nil, true, fmt.Errorf("uplink %.40q: want tunnel, tunnel:vxlan or tunnel:wireguard", s)
	}
	return []Kind{Kind(k)}, true, nil
}
