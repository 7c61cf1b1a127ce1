package agent

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// What a storm sends is what a host would take for a message, from addresses of the network, each from another one.
func TestAStormIsOfWholePackets(t *testing.T) {
	as := netip.MustParsePrefix("fd5d:0:1::/48")
	hosts := []sid.Locator{0xfd5d000000010101, 0xfd5d000000010102}
	for _, kind := range StormKinds {
		s := Storm{Kind: kind, From: as, To: hosts, Router: make(net.HardwareAddr, 6), Service: netip.MustParseAddrPort("[fd5c::1]:7"), Rate: 1}
		tmpl, err := s.template()
		if err != nil {
			t.Fatal(err)
		}
		h, seen := newSheaf(tmpl), map[netip.Addr]bool{}
		for _, b := range h.frames {
			tmpl.vary(b)
			ip := b[ethLen:]
			from := netip.AddrFrom16([16]byte(ip[8:]))
			if seen[from] || kind != "hello" && !as.Contains(from) {
				t.Errorf("%s: source %v", kind, from)
			}
			seen[from] = true
			if n := int(binary.BigEndian.Uint16(ip[4:])); n != len(ip)-ip6Len {
				t.Errorf("%s: says %d bytes and has %d", kind, n, len(ip)-ip6Len)
			}
			sum := words(ip[8:40]) + uint64(len(ip)-ip6Len) + uint64(ip[6]) + words(ip[ip6Len:])
			if len(ip)%2 == 1 {
				sum += uint64(ip[len(ip)-1]) << 8
			}
			for sum>>16 != 0 {
				sum = sum&0xffff + sum>>16
			}
			if sum != 0xffff {
				t.Errorf("%s: its checksum is wrong: %x", kind, sum)
			}
			if kind == "ping" || kind == "datagram" {
				continue
			}
			if _, err := wire.Parse(ip[ip6Len+8:]); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	if _, err := (&Storm{Kind: "rain"}).template(); err == nil {
		t.Error("a storm of nothing")
	}
}
