package members

import (
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// TestATokenIsPrintedWithTheLineThatUsesIt: until when, for whom, and the command of its role, with the place of an
// address where the token has none.
func TestATokenIsPrintedWithTheLineThatUsesIt(t *testing.T) {
	const end = 1767225600 // the first second of 2026
	for _, c := range []struct {
		stored    *apiv1.Token
		addresses []string
		want      string
	}{
		{&apiv1.Token{Role: "host", Uses: 1}, []string{"192.0.2.1:23728"}, "until 2026-01-01 00:00:00 UTC, for one host: sudo scaffold join --token TOKEN --install\n"},
		{&apiv1.Token{Role: "host", Uses: 20}, nil, "until 2026-01-01 00:00:00 UTC, for 20 of role host: sudo scaffold join --token TOKEN --install ADDRESS\n"},
		{&apiv1.Token{Role: "host", Uses: 1, Name: "web1"}, []string{"c1:1", "c2:1"}, "until 2026-01-01 00:00:00 UTC, for host web1 alone: sudo scaffold join --token TOKEN --install\n"},
		{&apiv1.Token{Role: "router", Uses: 1}, []string{"192.0.2.1:23728"}, "until 2026-01-01 00:00:00 UTC, for one router: sudo scaffold join --token TOKEN --service --install\n"},
		{&apiv1.Token{Role: "admin", Uses: 1}, []string{"192.0.2.1:23728"}, "until 2026-01-01 00:00:00 UTC, for one admin: scaffold login --token TOKEN\n"},
		{&apiv1.Token{Role: "admin", Uses: 1}, nil, "until 2026-01-01 00:00:00 UTC, for one admin: scaffold login --token TOKEN ADDRESS\n"},
	} {
		c.stored.ExpiresUnix = end
		token := trust.NewToken(trust.Role(c.stored.Role), trust.Pin{}, c.addresses...).String()
		var out strings.Builder
		err := tellUse(&out, &apiv1.CreateTokenResponse{Token: token, Stored: c.stored})
		if got := strings.ReplaceAll(out.String(), token, "TOKEN"); err != nil || got != c.want {
			t.Errorf("%v: %v\n%s\nwant\n%s", c.stored, err, got, c.want)
		}
	}
}
