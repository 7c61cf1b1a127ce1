package boost

import (
	"maps"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A Network is that in which names are served.
type Network interface {
	// Named are the ports of services whose connections agents are to carry.
	Named() []plan.Named
	EachRouter(do func(plan.Router))
	// HostAt is the host that has the address, "" where none has, or one that does not say which of its instances are an agent's.
	HostAt(netip.Addr) string
	// Address is a service's, and its name.
	Address(sid.ServiceID) (name string, addr netip.Addr)
	// Clients is where all hosts of the network have their addresses.
	Clients() netip.Prefix
	// SetSites says at which site routers are, and hosts on which agents of a site serve names.
	SetSites(routers, hosts map[string]string)
}

// lookAtNames finds out whether what named lanes are planned from has changed: who serves, where, and which machines of agents are
// hosts. It costs nothing while no service is to be boosted.
func (x *Boost) lookAtNames() {
	if x.Network == nil {
		return
	}
	named := x.Network.Named()
	if len(named) == 0 && len(x.names) == 0 {
		return
	}
	var names []lane.Name
	for _, n := range named {
		service, addr := x.Network.Address(n.Triple.Service)
		name := lane.Name{Service: service, Server: netip.AddrPortFrom(addr, n.Triple.Port)}
		for _, l := range n.At {
			if site := x.siteAt(netip.PrefixFrom(l.Addr(0), 64)); site != "" && !slices.Contains(name.Sites, site) {
				name.Sites = append(name.Sites, site)
			}
		}
		slices.Sort(name.Sites)
		names = append(names, name)
	}
	hosts := x.hostsOfAgents()
	same := slices.EqualFunc(names, x.names, func(a, b lane.Name) bool {
		return a.Service == b.Service && a.Server == b.Server && slices.Equal(a.Sites, b.Sites)
	})
	if !same || !maps.Equal(hosts, x.hosts) {
		x.stale = true
	}
	x.names, x.hosts = names, hosts
	x.tellSites()
}

// hostsOfAgents are the hosts that agents' machines are, by agent, of agents that know names: one that has an agent's address.
func (x *Boost) hostsOfAgents() map[string]string {
	hosts := map[string]string{}
	for name, a := range x.agents {
		if !a.names {
			continue
		}
		for _, door := range append([]string{a.Door}, a.Doors...) {
			at, err := netip.ParseAddrPort(door)
			if err != nil {
				continue
			}
			if h := x.Network.HostAt(at.Addr()); h != "" {
				hosts[name] = h
				break
			}
		}
	}
	return hosts
}

// tellSites says whose clients' connections are to come to which agents: those behind the routers all of whose hosts' addresses are
// a site's.
func (x *Boost) tellSites() {
	routers, hosts := map[string]string{}, map[string]string{}
	x.Network.EachRouter(func(r plan.Router) {
		if site := x.siteAt(r.Block()); site != "" {
			routers[r.Name] = site
		}
	})
	for agent, host := range x.hosts {
		if site := x.siteOf(agent); site != "" {
			hosts[host] = site
		}
	}
	x.Network.SetSites(routers, hosts)
}

// siteAt is the site that a prefix is in, "" for none.
func (x *Boost) siteAt(p netip.Prefix) string {
	for name, s := range x.sites {
		for _, text := range s.Prefixes {
			if of := netip.MustParsePrefix(text); of.Bits() <= p.Bits() && of.Contains(p.Addr()) { // looked at before it was stored
				return name
			}
		}
	}
	return ""
}

// planNames makes the lanes of names.
func (x *Boost) planNames() {
	x.named = nil
	if len(x.names) > 0 {
		x.named = lane.PlanNames(x.state(), x.names, x.Network.Clients(), x.lanes)
	}
}
