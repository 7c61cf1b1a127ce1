package e2e

import (
	"net/netip"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// TestNoConnectionIsRefusedWhileAnInstanceServes: of two servers, the first with a thousand times the weight, the first
// ends while those are away that could tell anybody. Connections go to the second.
func TestNoConnectionIsRefusedWhileAnInstanceServes(t *testing.T) {
	for _, away := range [][]string{
		{"s1/hostd"},
		{"ctl/controld"},
		{"s1/hostd", "ctl/controld"},
		{"c1/hostd", "s1/hostd", "s2/hostd", "ctl/controld"},
	} {
		t.Run(strings.Join(away, " and "), func(t *testing.T) { endsUnseen(theNetwork(t), away) })
	}
}

func endsUnseen(n *network, away []string) {
	const service = "away"
	addr, err := n.service(service)
	if err != nil {
		n.create(service)
		if addr, err = n.service(service); err != nil {
			n.t.Fatal(err)
		}
		for host, weight := range map[string]uint32{"s1": 1000, "s2": 1} {
			req := &apiv1.SetWeightRequest{Name: service, Host: host, Weight: weight}
			if _, err := n.admin.SetWeight(n.t.Context(), connect.NewRequest(req)); err != nil {
				n.t.Fatal(err)
			}
		}
	}
	at := netip.AddrPortFrom(netip.MustParseAddr(addr.Address), 80)
	heavy := n.serveTCP("s1", at.String())
	n.serveTCP("s2", at.String())
	n.serving(service, "tcp", 80, 2)
	for _, d := range away {
		n.kill(d)
	}
	defer func() {
		for _, d := range away {
			n.do("start " + d)
		}
		n.settled()
	}()
	heavy.Close()
	if err := only(n.connects("c1", at, 200), 0); err != nil {
		n.t.Errorf("%v: %v\nthe edge of s1 counts %v, that of c1 %v\nlook at: %s", at, err, n.drops("s1"), n.drops("c1"), n.look())
	}
}
