package forward

import (
	"fmt"
	"net/netip"
)

// A Config is what a router is.
type Config struct {
	// Addresses are the router's own, of no port: where it has no other it speaks from the first of the family.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Ports     []PortConfig `json:"ports,omitempty"` // by number; of those beyond the end everything is the default
	// ICMPRate is how many ICMP errors a second the router sends, in bursts of up to a twentieth of that and at
	// least ICMPBurst. 0 is DefaultICMPRate, less than 0 none.
	ICMPRate int  `json:"icmp_rate,omitempty"`
	LPM      bool `json:"lpm,omitempty"` // look the table up for each packet, whatever [Compile] makes
	// Salt makes this router choose among equal paths otherwise than its neighbours. 0 is the router's number.
	Salt uint64 `json:"salt,omitempty"`
}

// A PortConfig is one port of a router.
type PortConfig struct {
	Addresses []netip.Prefix `json:"addresses,omitempty"`  // its own address in a prefix that is beyond the port
	LinkLocal netip.Addr     `json:"link_local,omitempty"` // default: from the Ethernet address
	MAC       [6]byte        `json:"mac,omitempty"`        // default: that of the edge, or from the router's number
	MTU       int            `json:"mtu,omitempty"`        // bytes from the IP header on; default: that of the edge, or DefaultMTU
	// LAN says that several neighbours may be beyond, to be found by neighbour discovery and ARP. Otherwise there is
	// one, who gets everything. It is the default of an edge that takes an interface that is there already.
	LAN bool `json:"lan,omitempty"`
}

// What the zero values of a Config mean, and limits.
const (
	DefaultMTU      = 1500
	DefaultICMPRate = 1000 // a second, as Linux's icmp_msgs_per_sec was
	ICMPBurst       = 50   // Linux's icmp_msgs_burst
	MinMTU          = 68   // RFC 791; with IPv6 1280
	MaxMTU          = 65535
)

func (c *Config) validate() error {
	for _, a := range c.Addresses {
		if !ownable(a) {
			return fmt.Errorf("address %v of the router: expected a unicast address beyond a link, such as fd00::1", a)
		}
	}
	for i, p := range c.Ports {
		if err := p.validate(); err != nil {
			return fmt.Errorf("port %d: %w", i, err)
		}
	}
	return nil
}

func (p *PortConfig) validate() error {
	switch {
	case p.MTU != 0 && (p.MTU < MinMTU || p.MTU > MaxMTU):
		return fmt.Errorf("MTU %d: expected %d to %d bytes", p.MTU, MinMTU, MaxMTU)
	case p.LinkLocal.IsValid() && (!p.LinkLocal.Is6() || !p.LinkLocal.IsLinkLocalUnicast()):
		return fmt.Errorf("link-local address %v: expected one in fe80::/10", p.LinkLocal)
	case p.MAC[0]&1 != 0:
		return fmt.Errorf("MAC %x: expected the address of one interface, not of a group", p.MAC)
	}
	for _, a := range p.Addresses {
		if !a.IsValid() || !ownable(a.Addr()) {
			return fmt.Errorf("address %v: expected a unicast address with the length of its prefix, such as fd01::1/64", a)
		}
	}
	return nil
}

// ownable reports whether a router may have an address, and packets to it cross other routers.
func ownable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && !a.IsLinkLocalUnicast() && !a.Is4In6() && a.Zone() == ""
}
