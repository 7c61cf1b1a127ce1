package install

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/trust"
)

// A mint makes tokens as a controller that is reached at these addresses.
type mint struct {
	apiv1connect.TrustClient
	addresses []string
	made      map[string]string // the name that the test has for a token, by its text
}

func (m *mint) CreateToken(_ context.Context, r *connect.Request[apiv1.CreateTokenRequest]) (*connect.Response[apiv1.CreateTokenResponse], error) {
	t := trust.NewToken(trust.Role(r.Msg.Role), trust.Pin{}, m.addresses...).String()
	m.made[t] = fmt.Sprintf("TOKEN-%s-%d", r.Msg.Role, r.Msg.Uses)
	return connect.NewResponse(&apiv1.CreateTokenResponse{Token: t}), nil
}

// TestInstallPrintsTheLinesThatMachinesType: whole lines, with tokens of the right role in them, and where the controller
// is only where the token does not say it.
func TestInstallPrintsTheLinesThatMachinesType(t *testing.T) {
	for name, c := range map[string]struct {
		addresses []string
		hosts     uint32
		want      string
	}{
		"reached": {[]string{"192.0.2.1:23728"}, 0, `the network lab has keys: machines become members by a token, within an hour
  on a router:                  sudo scaffold join --token TOKEN-router-1 --service --install
  on each host, up to 10:       sudo scaffold join --token TOKEN-host-10 --install
  more: sudo scaffold token create --role host (router, admin)
`},
		"on loopback alone": {nil, 0, `the network lab has keys: machines become members by a token, within an hour
  on a router:                  sudo scaffold join --token TOKEN-router-1 --service --install ADDRESS
  on each host, up to 10:       sudo scaffold join --token TOKEN-host-10 --install ADDRESS
  ADDRESS is where those machines reach this controller: it listens on this machine alone (listen: in /etc/scaffold/controld.yaml)
  more: sudo scaffold token create --role host (router, admin)
`},
		"it was open": {[]string{"192.0.2.1:23728"}, 2, `the network lab has keys: machines become members by a token, within an hour
  on a router:                  sudo scaffold join --token TOKEN-router-1 --service --install
  on each host, up to 10:       sudo scaffold join --token TOKEN-host-10 --install
  more: sudo scaffold token create --role host (router, admin)
  it was open: each of its machines joins once, under the name that it has (scaffold host ls); flows go on meanwhile
`},
	} {
		m := &mint{addresses: c.addresses, made: map[string]string{}}
		got, err := joinLines(t.Context(), m, &apiv1.Status{Network: "lab", Hosts: c.hosts})
		for token, as := range m.made {
			got = strings.ReplaceAll(got, token, as)
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
}

// TestInstallSaysWhatAnOpenNetworkIs and what to type to give it keys.
func TestInstallSaysWhatAnOpenNetworkIs(t *testing.T) {
	const want = `the network lab is open: whoever reaches its controller may join, steer every service and copy all that is stored
  to give it keys, with its flows going on: sudo scaffold install controller --trust keys
`
	if got := openMeans(&apiv1.Status{Network: "lab"}); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
