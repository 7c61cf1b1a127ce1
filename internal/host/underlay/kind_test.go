package underlay

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestOffersAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string][]string{
		"192.0.2.1":                   {"vxlan:192.0.2.1:23729", "wireguard:192.0.2.1:23730"},
		"vxlan:192.0.2.1":             {"vxlan:192.0.2.1:23729"},
		"wireguard:192.0.2.1:51820":   {"wireguard:192.0.2.1:51820"},
		"2001:db8::1":                 {"vxlan:[2001:db8::1]:23729", "wireguard:[2001:db8::1]:23730"},
		"wireguard:[2001:db8::1]":     {"wireguard:[2001:db8::1]:23730"},
		"wireguard:[2001:db8::1]:99":  {"wireguard:[2001:db8::1]:99"},
		"vxlan:[::ffff:192.0.2.1]:99": {"vxlan:192.0.2.1:99"},
	} {
		offers, err := ParseOffers(text)
		var got []string
		for _, o := range offers {
			got = append(got, o.String())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is read as %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestBadOffersAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "want [KIND:]ADDRESS[:PORT]",
		"gre:192.0.2.1":        "want [KIND:]ADDRESS[:PORT]",
		"r1.example":           "want [KIND:]ADDRESS[:PORT]",
		"vxlan:":               "want [KIND:]ADDRESS[:PORT]",
		"192.0.2.1:99":         "of which kind is port 99",
		"vxlan:192.0.2.1:0":    "port 0",
		"vxlan:0.0.0.0":        "cannot reach",
		"vxlan:fe80::1":        "cannot reach",
		"wireguard:127.0.0.1":  "cannot reach",
		"wireguard:fe80::1%lo": "cannot reach",
	} {
		if _, err := ParseOffers(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", text, err, want)
		}
	}
	twoPorts := []Offer{{VXLAN, netip.MustParseAddrPort("192.0.2.1:1")}, {VXLAN, netip.MustParseAddrPort("192.0.2.2:2")}}
	onePort := []Offer{{VXLAN, netip.MustParseAddrPort("192.0.2.1:1")}, {WireGuard, netip.MustParseAddrPort("192.0.2.2:1")}}
	for _, offers := range [][]Offer{twoPorts, onePort} {
		if CheckOffers(offers) == nil {
			t.Errorf("%v stand beside each other", offers)
		}
	}
}

func FuzzParseOffers(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "vxlan:[2001:db8::1]:1", "wireguard:192.0.2.1:9", "a:b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		offers, err := ParseOffers(s)
		if err != nil {
			return
		}
		for _, o := range offers {
			again, err := ParseOffers(o.String())
			if err != nil || len(again) != 1 || again[0] != o {
				t.Errorf("%q is %v, which is read again as %v, %v", s, o, again, err)
			}
		}
	})
}

func TestATunnelsMTUIsWhatItsHeadersLeave(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	for _, c := range []struct {
		kind Kind
		path int
		to   netip.Addr
		want int
	}{
		{VXLAN, 1500, four, 1450}, {VXLAN, 1500, six, 1430}, {WireGuard, 1500, four, 1390}, {WireGuard, 1500, six, 1370},
		{WireGuard, 1400, four, 1290}, {WireGuard, 1400, six, MinMTU}, {VXLAN, 576, four, MinMTU}, {VXLAN, 65536, four, maxMTU},
	} {
		if got := c.kind.Fit(c.path, c.to); got != c.want {
			t.Errorf("a path of %d bytes to %v leaves %s %d, want %d", c.path, c.to, c.kind, got, c.want)
		}
	}
}
