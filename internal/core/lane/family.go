package lane

import (
	"net/netip"
	"strings"
)

// A Family says of which of IP's versions addresses are: of none, one or both.
type Family uint8

// The two versions.
const (
	IPv4 Family = 1 << iota
	IPv6
)

var families = []struct {
	Family
	version    uint32
	name       string
	forwarding string // what has a machine forward
}{{IPv4, 4, "IPv4", "net.ipv4.ip_forward=1"}, {IPv6, 6, "IPv6", "net.ipv6.conf.all.forwarding=1"}}

// FamilyOf is that of one address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// Families are those of the versions, 4 and 6; others are none.
func Families(versions []uint32) (all Family) {
	for _, f := range families {
		for _, v := range versions {
			if v == f.version {
				all |= f.Family
			}
		}
	}
	return all
}

// Versions are the versions of IP, 4 and 6, in order.
func (f Family) Versions() (list []uint32) {
	for _, one := range families {
		if f&one.Family != 0 {
			list = append(list, one.version)
		}
	}
	return list
}

// String names them.
func (f Family) String() string {
	var names []string
	for _, one := range families {
		if f&one.Family != 0 {
			names = append(names, one.name)
		}
	}
	return strings.Join(names, " and ")
}

// Forwarding is what has a machine forward packets of these, as a command.
func (f Family) Forwarding() string {
	text := "sysctl -w"
	for _, one := range families {
		if f&one.Family != 0 {
			text += " " + one.forwarding
		}
	}
	return text
}
