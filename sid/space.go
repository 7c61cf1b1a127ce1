package sid

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// A Space is the address plan of one network, the same on all its hosts and routers.
type Space struct {
	Services   netip.Prefix // /32: service addresses
	AS         netip.Prefix // /48: locators of this AS
	Identities netip.Prefix // /64: stable source addresses of the hosts' clients; never on the wire
}

// DefaultSpace is the plan of a network that says nothing else. All prefixes are unique local (RFC 4193).
func DefaultSpace() Space {
	return Space{
		Services:   netip.MustParsePrefix("fd5c::/32"),
		AS:         netip.MustParsePrefix("fd5d:0:1::/48"),
		Identities: netip.MustParsePrefix("fd5e::/64"),
	}
}

// reserved mean something to every host: loopback, unspecified and mapped addresses, link-local ones, multicast. A
// network that had them would take over what a host says to itself or its neighbours (docs/protocol.md §7).
var reserved = []netip.Prefix{netip.MustParsePrefix("::/8"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8")}

// Validate says which prefix has the wrong width, is no IPv6 prefix, is reserved or overlaps another.
func (s Space) Validate() error {
	parts := []struct {
		name   string
		prefix netip.Prefix
		bits   int
	}{{"services", s.Services, ServicePrefixBits}, {"as", s.AS, ASBits}, {"identities", s.Identities, 64}}
	for i, p := range parts {
		if !p.prefix.IsValid() || !p.prefix.Addr().Is6() || p.prefix.Addr().Is4In6() {
			return fmt.Errorf("%s prefix %v: want an IPv6 prefix such as fd5c::/32", p.name, p.prefix)
		}
		if p.prefix.Bits() != p.bits || p.prefix != p.prefix.Masked() {
			return fmt.Errorf("%s prefix %v: want exactly %d bits and zeros behind them", p.name, p.prefix, p.bits)
		}
		for _, q := range reserved {
			if p.prefix.Overlaps(q) {
				return fmt.Errorf("%s prefix %v lies in %v, which has a meaning on every host: want an IPv6 prefix such as fd5c::/32", p.name, p.prefix, q)
			}
		}
		for _, q := range parts[:i] {
			if p.prefix.Overlaps(q.prefix) {
				return fmt.Errorf("%s prefix %v overlaps %s prefix %v", p.name, p.prefix, q.name, q.prefix)
			}
		}
	}
	return nil
}

// ServiceAddr is the address that programs bind and connect to.
func (s Space) ServiceAddr(id ServiceID) netip.Addr {
	b := s.Services.Addr().As16()
	binary.BigEndian.PutUint32(b[4:], id.SS)
	binary.BigEndian.PutUint64(b[8:], uint64(id.Suffix))
	return netip.AddrFrom16(b)
}

// ServiceOf is the inverse of ServiceAddr; ok is false where addr is not in the service prefix or its
// serviceID may not be assigned.
func (s Space) ServiceOf(addr netip.Addr) (id ServiceID, ok bool) {
	if !s.Services.Contains(addr) {
		return ServiceID{}, false
	}
	b := addr.As16()
	id = ServiceID{SS: binary.BigEndian.Uint32(b[4:]), Suffix: Suffix(binary.BigEndian.Uint64(b[8:]))}
	return id, id.Valid()
}

// Locator is the locator of host number hostAddr of this AS. Number 0 is the AS itself: unresolved.
func (s Space) Locator(hostAddr uint16) Locator {
	return LocatorOf(s.AS.Addr()) | Locator(hostAddr)
}

// Owns reports whether the locator belongs to this AS.
func (s Space) Owns(l Locator) bool { return s.AS.Contains(l.Addr(0)) }

// Identity is the stable client address of the host with the given number.
func (s Space) Identity(host uint64) netip.Addr {
	return LocatorOf(s.Identities.Addr()).Addr(host)
}
