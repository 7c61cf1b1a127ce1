package frr

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// full uses all that can be written.
var full = Config{
	Name: "r7", Number: 7,
	Ports: []Port{
		{Name: "lo", Passive: true},
		{Name: "e0", Cost: 7, Peer: &Peer{AS: 65002, Addr: netip.MustParseAddr("fe80::2%e0")}},
		{Name: "e1", Peer: &Peer{}},
		{Name: "e2", Peer: &Peer{AS: 65003, Addr: netip.MustParseAddr("fd00:3::3"), Wait: true}},
	},
	Behind: []netip.Prefix{netip.MustParsePrefix("2001:db8:7::/48"), netip.MustParsePrefix("198.51.100.0/24")},
	OSPF:   &OSPF{Hello: 2, SPF: SPF{Delay: 20}},
	BGP:    &BGP{AS: 65001, Keepalive: 2, Networks: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("192.0.2.0/24")}},
}

func TestConfigurationsAreWrittenAsBefore(t *testing.T) {
	files, err := full.Files()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all.WriteString("--- " + name + ".conf\n" + files[name])
	}
	golden(t, "testdata/config.golden", all.String())
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	for _, x := range []struct {
		want   string
		change func(*Config)
	}{
		{"number routers from 1 on", func(c *Config) { c.Number = 0 }},
		{`"" is no name of an interface`, func(c *Config) { c.Ports = []Port{{}} }},
		{"interface e0 is there twice", func(c *Config) { c.Ports = []Port{{Name: "e0"}, {Name: "e0"}} }},
		{"cost 70000, want 1 to 65535", func(c *Config) { c.Ports = []Port{{Name: "e0", Cost: 70000}} }},
		{"runs no BGP", func(c *Config) { c.BGP = nil }},
		{"without a number of its autonomous system", func(c *Config) { c.BGP = &BGP{} }},
		{"keeps alive every 9 s and holds for 3 s", func(c *Config) { c.BGP = &BGP{AS: 1, Keepalive: 9, Hold: 3} }},
		{"tries to connect every -1 s", func(c *Config) { c.BGP = &BGP{AS: 1, Connect: -1} }},
		{"says hello every -1 s", func(c *Config) { c.OSPF = &OSPF{Hello: -1} }},
		{"dead after 1 s", func(c *Config) { c.OSPF = &OSPF{Dead: 1} }},
		{"want delay <= hold <= max", func(c *Config) { c.OSPF = &OSPF{SPF: SPF{Delay: 100}} }},
		{"neither for IPv4 nor for IPv6", func(c *Config) { c.OSPF = &OSPF{NoIPv4: true, NoIPv6: true} }},
	} {
		c := full
		x.change(&c)
		if _, err := c.Files(); err == nil || !strings.Contains(err.Error(), "FRR of r7: ") || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}
