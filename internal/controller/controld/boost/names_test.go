package boost

import (
	"maps"
	"net/netip"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A served is a network in which web is served at a host of router rw, and agents' machines are hosts.
type served struct {
	boosted        bool
	hosts          map[string]string // by address
	routers, sites map[string]string // as told
}

func (s *served) Named() []plan.Named {
	if !s.boosted {
		return nil
	}
	return []plan.Named{{Triple: sid.Triple{Proto: sid.TCP, Port: 80}, At: []sid.Locator{sid.DefaultSpace().Locator(0x201)}}}
}

func (s *served) EachRouter(do func(plan.Router)) {
	for i, name := range []string{"re", "rw"} {
		do(plan.Router{Name: name, Service: true, Locator: sid.DefaultSpace().Locator(uint16(i+1) << 8)})
	}
}

func (s *served) HostAt(a netip.Addr) string { return s.hosts[a.String()] }

func (s *served) Address(sid.ServiceID) (string, netip.Addr) { return "web", web }

func (s *served) Clients() netip.Prefix { return sid.DefaultSpace().AS }

func (s *served) SetSites(routers, hosts map[string]string) { s.routers, s.sites = routers, hosts }

var web = netip.MustParseAddr("fd5c::80")

// Lanes of a name go to agents that know them and whose machines are hosts, and to no others; with the policy they go again.
func TestNamesAreCarriedByAgentsThatAreHosts(t *testing.T) {
	n := newNetwork(t)
	net := &served{boosted: true, hosts: map[string]string{}}
	n.Network = net
	for _, s := range []*apiv1.BoostSite{
		{Name: "east", Prefixes: []string{"fd5d:0:1:100::/56"}, Agents: []string{"e1", "e2"}}, {Name: "west", Prefixes: []string{"fd5d:0:1:200::/56"}, Agents: []string{"w1", "w2"}},
	} {
		if _, err := n.API().SetBoostSite(t.Context(), connect.NewRequest(s)); err != nil {
			t.Fatal(err)
		}
	}
	agents := map[string]*stream{}
	for _, name := range []string{"e1", "e2", "w1", "w2"} {
		j := joinOf(name)
		j.Names = name != "e2" // of before
		if name != "w2" {      // whose machine is no host
			net.hosts[netip.MustParseAddrPort(j.Door).Addr().String()] = "host-" + name
		}
		agents[name] = n.joinAs(j)
	}
	n.wait(Patience)
	for name, s := range agents {
		lanes := s.told().GetLanes()
		if name == "e2" || name == "w2" {
			if len(lanes) > 0 {
				t.Errorf("%s is told %v", name, lanes)
			}
			continue
		}
		if len(lanes) != 1 {
			t.Fatalf("%s is told %v", name, lanes)
		}
		l := lanes[0]
		if l.Entry != "web" || !l.Named || !l.AtOnce || l.Near != "e1" || len(l.Far) != 1 || l.Far[0] != "w1" || l.Port != 80 || l.Server != web.String()+"/128" || l.Client != sid.DefaultSpace().AS.String() {
			t.Errorf("%s is told %v", name, l)
		}
	}
	if !maps.Equal(net.routers, map[string]string{"re": "east", "rw": "west"}) || !maps.Equal(net.sites, map[string]string{"host-e1": "east", "host-w1": "west"}) {
		t.Errorf("sites of routers %v, of hosts %v", net.routers, net.sites)
	}
	net.boosted = false
	n.Flush()
	for _, name := range []string{"e1", "w1"} {
		if last := agents[name].told(); last == nil || len(last.Lanes) > 0 {
			t.Errorf("behind the policy's end %s is told %v", name, last)
		}
	}
}
