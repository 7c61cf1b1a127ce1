package frr

import (
	"fmt"
	"net/netip"
	"slices"
)

// A Kind says what a router does with packets to a prefix.
type Kind uint8

// Gone is a prefix without a route; packets to Unreachable and Prohibited prefixes are answered by an ICMP
// error, those to a Blackhole are not.
const (
	Gone Kind = iota
	Unicast
	Blackhole
	Unreachable
	Prohibited
)

var kinds = [...]string{"gone", "unicast", "blackhole", "unreachable", "prohibited"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A Via is one way to a prefix. Several are used side by side (ECMP).
type Via struct {
	Index   int        // of the interface, in the router's namespace
	Gateway netip.Addr // the neighbour, without a zone; may be IPv6 for an IPv4 prefix (RFC 8950). Invalid: on the link itself
	Weight  int        // of this way among all, at least 1
}

func (v Via) String() string {
	if !v.Gateway.IsValid() {
		return fmt.Sprintf("dev %d", v.Index)
	}
	return fmt.Sprintf("via %v dev %d weight %d", v.Gateway, v.Index, v.Weight)
}

// Who made a route: numbers of rtnetlink and of FRR (its zebra/rt_netlink.h).
const (
	FromKernel = 2
	FromStatic = 196
	FromBGP    = 186
	FromOSPF   = 188 // both versions
)

// A Change is the route of one prefix as it is from now on.
type Change struct {
	Prefix   netip.Prefix
	Kind     Kind
	Protocol uint8 // who made it: FromOSPF and so on, or any other number of rtnetlink
	Via      []Via // of Unicast, at least one, in a fixed order; belongs to the receiver
}

func (c Change) String() string { return fmt.Sprintf("%v %v %v", c.Prefix, c.Kind, c.Via) }

// same reports whether two changes ask for the same. Who made the route does not matter to forwarding.
func (c Change) same(d Change) bool { return c.Kind == d.Kind && slices.Equal(c.Via, d.Via) }
