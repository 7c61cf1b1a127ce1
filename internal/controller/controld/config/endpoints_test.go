package config

import (
	"net/netip"
	"slices"
	"testing"
)

func TestAnyAddressIsEachOfTheMachine(t *testing.T) {
	machine := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	for in, want := range map[string][]string{
		"[::]:7":           {"192.0.2.1:7", "[2001:db8::1]:7"},
		":7":               {"192.0.2.1:7", "[2001:db8::1]:7"},
		"http://0.0.0.0:7": {"192.0.2.1:7"},
		"https://net1:7":   {"net1:7"},
		"198.51.100.1:7":   {"198.51.100.1:7"},
		"unix:/run/x":      nil,
	} {
		if got := spread([]string{in}, machine); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
