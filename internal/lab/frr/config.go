package frr

import (
	"fmt"
	"net/netip"
	"strings"
)

// A Config is what configurations of a router's daemons are written from. OSPF and BGP may both be there; each
// then gives the other its routes only if a snippet asks for it.
type Config struct {
	Name   string // host name
	Number uint32 // of the node, not 0: its router identifier is this number written as an IPv4 address
	Ports  []Port
	Behind []netip.Prefix // destinations behind the router that no port leads to; they are announced, and lost here
	OSPF   *OSPF          // nil: not run
	BGP    *BGP           // nil: not run
}

// A Port is an interface of the router. Its addresses are the kernel's: whoever made it has set them.
type Port struct {
	Name    string
	Cost    int   // of OSPF; 0 for DefaultCost
	Passive bool  // its prefixes are announced, but no router is on it; lo is one
	Peer    *Peer // the router at its other end, for BGP; nil: none
}

// A Peer is a neighbour in BGP.
type Peer struct {
	AS   uint32     // 0: any but our own
	Addr netip.Addr // invalid: whoever answers on the interface (RFC 8950; "unnumbered")
	Wait bool       // let it come: it is a program that connects, at any distance, such as a replay
}

// OSPF runs version 3 for IPv6 and version 2 for IPv4, all ports in area 0, as point-to-point links. Zero values
// stand for those of DefaultOSPF.
type OSPF struct {
	NoIPv4, NoIPv6 bool
	Hello, Dead    int // seconds
	SPF            SPF
}

// SPF are the delays of a computation of shortest paths, in milliseconds: before the first after a quiet time,
// and between those that follow, which grows from Hold to Max.
type SPF struct{ Delay, Hold, Max int }

// DefaultCost is what an OSPF link costs unless its port says otherwise.
const DefaultCost = 10

// DefaultOSPF are short times: a lab's links are quick and its routers few.
var DefaultOSPF = OSPF{Hello: 1, Dead: 4, SPF: SPF{Delay: 10, Hold: 50, Max: 500}}

// BGP runs eBGP to the peers of the ports, with equal paths side by side. Zero times stand for those of
// DefaultBGP.
type BGP struct {
	AS                       uint32
	Keepalive, Hold, Connect int            // seconds
	Networks                 []netip.Prefix // announced, besides what is connected
}

// DefaultBGP are short times, for the same reason.
var DefaultBGP = BGP{Keepalive: 1, Hold: 3, Connect: 1}

// Files writes the configuration of each daemon to run, as Spec wants them.
func (c Config) Files() (map[string]string, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("FRR of %s: %w", c.Name, err)
	}
	files := map[string]string{zebra: c.zebra()}
	if c.OSPF != nil && !c.OSPF.NoIPv6 {
		files["ospf6d"] = c.ospf6()
	}
	if c.OSPF != nil && !c.OSPF.NoIPv4 {
		files["ospfd"] = c.ospf4()
	}
	if c.BGP != nil {
		files["bgpd"] = c.bgp()
	}
	if len(c.Behind) != 0 {
		files["staticd"] = c.static()
	}
	return files, nil
}

// static makes routes for others to announce; without a way, they lose what nobody behind the router takes.
func (c Config) static() string {
	var b strings.Builder
	for _, p := range c.Behind {
		family := "ipv6"
		if p.Addr().Is4() {
			family = "ip"
		}
		fmt.Fprintf(&b, "%s route %v blackhole\n", family, p.Masked())
	}
	return b.String()
}

// redistribute is the line that announces static routes, where there are any.
func (c Config) redistribute() string {
	if len(c.Behind) == 0 {
		return ""
	}
	return " redistribute static\n"
}

func (c Config) check() error {
	if c.Number == 0 {
		return fmt.Errorf("number 0 makes no router identifier; number routers from 1 on")
	}
	seen := map[string]bool{}
	for _, p := range c.Ports {
		switch {
		case p.Name == "" || strings.ContainsAny(p.Name, " \t\n!"):
			return fmt.Errorf("%q is no name of an interface", p.Name)
		case seen[p.Name]:
			return fmt.Errorf("interface %s is there twice", p.Name)
		case p.Cost < 0 || p.Cost > 65535:
			return fmt.Errorf("interface %s: cost %d, want 1 to 65535", p.Name, p.Cost)
		case p.Peer != nil && c.BGP == nil:
			return fmt.Errorf("interface %s has a peer, but the router runs no BGP", p.Name)
		}
		seen[p.Name] = true
	}
	if c.OSPF != nil {
		if err := c.OSPF.filled().check(); err != nil {
			return err
		}
	}
	if c.BGP != nil {
		return c.BGP.filled().check()
	}
	return nil
}

func (c Config) id() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(c.Number >> 24), byte(c.Number >> 16), byte(c.Number >> 8), byte(c.Number)})
}

// feedLine makes zebra connect to the feed.
const feedLine = "fpm address 127.0.0.1 port 2620"

// zebra writes what all daemons of the router build on.
func (c Config) zebra() string {
	return fmt.Sprintf("hostname %s\nip router-id %v\n%s\n", c.Name, c.id(), feedLine)
}
