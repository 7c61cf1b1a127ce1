package controld

import (
	"slices"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/trust"
)

// TestTokensCarryWhereControllersAre unless the one who makes it says where.
func TestTokensCarryWhereControllersAre(t *testing.T) {
	c := start(t, config.Config{Trust: config.TrustKeys, Advertise: []string{"https://192.0.2.7:23728", "https://[2001:db8::7]:23728", "http://127.0.0.1:1", "unix:/x"}})
	for want, said := range map[string][]string{"192.0.2.7:23728": nil, "198.51.100.1:9": {"198.51.100.1:9"}} {
		answer, err := c.local().trust.CreateToken(t.Context(), connect.NewRequest(&apiv1.CreateTokenRequest{Role: "host", Addresses: said}))
		if err != nil {
			t.Fatal(err)
		}
		token, err := trust.ParseToken(answer.Msg.Token)
		if err != nil || len(token.Addresses) == 0 || token.Addresses[0] != want || slices.Contains(token.Addresses, "127.0.0.1:1") {
			t.Errorf("with --address %q the token carries %q, %v; want %s first, and no loopback", said, token.Addresses, err, want)
		}
	}
}
