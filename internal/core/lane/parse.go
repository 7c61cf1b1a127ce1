package lane

import (
	"errors"
	"fmt"
	"net/netip"
)

// ParsePrefix reads hosts as people write them: a prefix, or an address as one.
func ParsePrefix(text string) (netip.Prefix, error) {
	var p netip.Prefix
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		p = netip.PrefixFrom(a, a.BitLen())
	} else if p, err = netip.ParsePrefix(text); err != nil {
		return p, fmt.Errorf("%.80q: expected an address or a prefix, as in 192.0.2.0/24", text)
	}
	switch {
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%v: an IPv4-mapped prefix (RFC 4291, 2.5.5.2): write it as IPv4, as in 192.0.2.0/24", p)
	case p != p.Masked():
		return p, fmt.Errorf("%v: bits behind the length are to be 0: is %v meant?", p, p.Masked())
	}
	return p, nil
}

// ParseEnd reads the address and port of a host or an agent.
func ParseEnd(text string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(text)
	if err == nil && a.Addr().Zone() != "" { // which could be of any length
		err = errZone
	}
	return a, err
}

var errZone = errors.New("an address with a zone is no host's at a site")
