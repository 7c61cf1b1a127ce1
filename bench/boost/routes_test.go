package boost

import (
	"strings"
	"testing"
)

func TestFurtherAddressesAreReachedAsTheClientIs(t *testing.T) {
	for told, want := range map[string]string{
		"10.96.0.2 via inet6 fe80::1 dev to-x src 10.95.0.2 uid 0 \n    cache": "via inet6 fe80::1 dev to-x",
		"10.96.0.2 via 10.95.0.1 dev to-x src 10.95.0.2 uid 0 \n    cache":     "via 10.95.0.1 dev to-x",
		"10.96.0.2 dev to-c1 src 10.96.0.1 uid 0 \n    cache":                  "via 10.96.0.2 dev to-c1",
		"": "",
	} {
		if got := strings.Join(wayOf(told, "10.96.0.2"), " "); got != want {
			t.Errorf("%q: %q, want %q", told, got, want)
		}
	}
}
