package frr

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

// maxPaths is how many equal paths are used side by side; Debian's FRR is built for up to 256.
const maxPaths = 64

func (g BGP) filled() BGP {
	g.Keepalive = cmp.Or(g.Keepalive, DefaultBGP.Keepalive)
	g.Hold = cmp.Or(g.Hold, DefaultBGP.Hold*g.Keepalive)
	g.Connect = cmp.Or(g.Connect, DefaultBGP.Connect)
	return g
}

func (g BGP) check() error {
	switch {
	case g.AS == 0:
		return fmt.Errorf("BGP without a number of its autonomous system")
	case g.Keepalive < 1 || g.Hold < 3 || g.Hold > 65535 || g.Keepalive >= g.Hold:
		return fmt.Errorf("BGP keeps alive every %d s and holds for %d s: want 1 s at least, 3 to 65535 s, and more of the second", g.Keepalive, g.Hold)
	case g.Connect < 1 || g.Connect > 65535:
		return fmt.Errorf("BGP tries to connect every %d s, want 1 to 65535", g.Connect)
	}
	return nil
}

// bgp writes sessions that take and give everything: without "no bgp ebgp-requires-policy" FRR would neither.
func (c Config) bgp() string {
	g, b := c.BGP.filled(), &strings.Builder{}
	fmt.Fprintf(b, "hostname %s\nrouter bgp %d\n bgp router-id %v\n", c.Name, g.AS, c.id())
	b.WriteString(" no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n no bgp network import-check\n bgp bestpath as-path multipath-relax\n")
	fmt.Fprintf(b, " timers bgp %d %d\n", g.Keepalive, g.Hold)
	var names []string
	for _, p := range c.Ports {
		if p.Peer != nil {
			names = append(names, p.neighbor(b, g))
		}
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		g.family(b, family, names, c.redistribute())
	}
	b.WriteString("exit\n")
	return b.String()
}

// neighbor writes a session and returns its name in FRR.
func (p Port) neighbor(b *strings.Builder, g BGP) string {
	as, name := "external", p.Name
	if p.Peer.AS != 0 {
		as = fmt.Sprint(p.Peer.AS)
	}
	if p.Peer.Addr.IsValid() {
		name = p.Peer.Addr.WithZone("").String()
		fmt.Fprintf(b, " neighbor %s remote-as %s\n", name, as)
	} else {
		fmt.Fprintf(b, " neighbor %s interface remote-as %s\n", name, as)
	}
	if p.Peer.Addr.IsLinkLocalUnicast() {
		fmt.Fprintf(b, " neighbor %s interface %s\n", name, p.Name)
	}
	if p.Peer.Wait {
		fmt.Fprintf(b, " neighbor %s ebgp-multihop\n neighbor %s passive\n", name, name)
	}
	fmt.Fprintf(b, " neighbor %s timers connect %d\n neighbor %s advertisement-interval 0\n neighbor %s capability extended-nexthop\n", name, g.Connect, name, name)
	return name
}

func (g BGP) family(b *strings.Builder, family string, neighbors []string, more string) {
	fmt.Fprintf(b, " address-family %s unicast\n", family)
	for _, n := range g.Networks {
		if n.Addr().Is4() == (family == "ipv4") {
			fmt.Fprintf(b, "  network %v\n", netip.PrefixFrom(n.Addr(), n.Bits()).Masked())
		}
	}
	fmt.Fprintf(b, "  redistribute connected\n  maximum-paths %d\n", maxPaths)
	b.WriteString(more)
	for _, n := range neighbors {
		fmt.Fprintf(b, "  neighbor %s activate\n", n)
	}
	b.WriteString(" exit-address-family\n")
}
