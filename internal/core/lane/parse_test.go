package lane

import (
	"strings"
	"testing"
)

func TestHostsAreAPrefixOrAnAddress(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.0/24": "192.0.2.0/24", "192.0.2.7": "192.0.2.7/32", "2001:db8::/32": "2001:db8::/32", "2001:db8::1": "2001:db8::1/128",
		"192.0.2.1/24": "is 192.0.2.0/24 meant?", "::ffff:192.0.2.0/120": "write it as IPv4", "::ffff:192.0.2.7": "write it as IPv4",
		"fe80::1%eth0": "expected an address or a prefix", "": "expected an address or a prefix", "192.0.2.0/33": "expected an address or a prefix",
	} {
		p, err := ParsePrefix(text)
		if err == nil && p.String() != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, %v, want %s", text, p, err, want)
		}
	}
}

func TestAnEndHasNoZone(t *testing.T) {
	for text, want := range map[string]bool{"192.0.2.1:80": true, "[2001:db8::1]:80": true, "[fe80::1%eth0]:80": false, "192.0.2.1": false, "": false} {
		if a, err := ParseEnd(text); (err == nil) != want || err == nil && a.String() != text {
			t.Errorf("%q is %v, %v", text, a, err)
		}
	}
}
