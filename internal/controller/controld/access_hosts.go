package controld

import (
	"scaffold.dev/scaffold/sid"
)

// accessHosts is what access lists need to know of hosts.
type accessHosts struct{ n *network }

// Locators are those of a host that is here.
func (g accessHosts) Locators(host string) []sid.Locator { return g.n.locatorsOf(host) }

// Kept are locators that hosts have left, by host.
func (g accessHosts) Kept() map[string][]sid.Locator { return g.n.locators.Left() }

// EachHost calls f for hosts that serve a service.
func (g accessHosts) EachHost(serves sid.ServiceID, f func(host string)) {
	g.n.plan.EachHost(serves, f)
}

// locatorsOf are those of a host that is here.
func (n *network) locatorsOf(name string) (list []sid.Locator) {
	if h := n.hosts[name]; h != nil && h.Here {
		for _, p := range h.All() {
			list = append(list, p.Locator)
		}
	}
	return list
}
