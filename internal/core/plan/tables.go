package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// tables are a router's own tables as it has been told them: all but services and resolutions,
// which are the same for all service routers and stand with their services.
type tables struct {
	ways      map[netip.Prefix]Route // between routers
	hosts     map[netip.Prefix]Route // to its own hosts
	probes    map[sid.Locator]Probe
	redirects map[sid.Locator]Redirect
	gone      map[sid.Locator]Gone
	sources   map[Source]Source
}

func newTables() tables {
	return tables{
		ways:      make(map[netip.Prefix]Route),
		hosts:     make(map[netip.Prefix]Route),
		probes:    make(map[sid.Locator]Probe),
		redirects: make(map[sid.Locator]Redirect),
		gone:      make(map[sid.Locator]Gone),
		sources:   make(map[Source]Source),
	}
}

// diff replaces table by want, and returns what is new or changed and what is gone, each in order.
func diff[K comparable, V comparable](table map[K]V, want map[K]V, order func(a, b V) int) (set, gone []V) {
	for k, v := range table {
		if _, keep := want[k]; !keep {
			gone = append(gone, v)
			delete(table, k)
		}
	}
	for k, v := range want {
		if have, ok := table[k]; !ok || have != v {
			set = append(set, v)
			table[k] = v
		}
	}
	slices.SortFunc(set, order)
	slices.SortFunc(gone, order)
	return set, gone
}

func byPrefix(a, b Route) int {
	if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
		return c
	}
	return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits())
}

func byHost(a, b Probe) int    { return cmp.Compare(a.Locator, b.Locator) }
func byFrom(a, b Redirect) int { return cmp.Compare(a.From, b.From) }
func byLocator(a, b Gone) int  { return cmp.Compare(a.Locator, b.Locator) }
func bySource(a, b Source) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Locator, b.Locator))
}

func keyed(routes []Route) map[netip.Prefix]Route {
	m := make(map[netip.Prefix]Route, len(routes))
	for _, r := range routes {
		m[r.Prefix] = r
	}
	return m
}

// probes are the hosts that r watches: also those that are gone, so that their return is seen.
func (p *Plan) probes(r *router) map[sid.Locator]Probe {
	m := make(map[sid.Locator]Probe, len(r.hosts))
	for l := range r.hosts {
		m[l] = Probe{Locator: l, Port: p.places[l].Port}
	}
	return m
}
