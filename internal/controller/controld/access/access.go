// Package access finds the locators of those who may connect to each service, and finds them anew when hosts move. The
// loop owns them.
package access

import (
	"fmt"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// maxPrefixes is how many prefixes a host is told of one service: its edge has a table of four times as many.
const maxPrefixes = 16384

// Lists are the lists of those who may connect, as locators. They follow hosts that move.
type Lists struct {
	sets  map[sid.ServiceID]resolve.AccessList
	edits map[sid.ServiceID]uint64                     // how often a service's set changed, ever
	by    map[names.Allowed]map[sid.ServiceID]struct{} // whose lists name the host, or the service
	stale map[sid.ServiceID]struct{}                   // to be looked at

	names   Names
	hosts   Hosts
	events  Events
	changed func(sid.ServiceID)
}

// Names are those of services.
type Names interface {
	ByID(sid.ServiceID) (names.Record, bool)
	Named(string) (names.Record, error)
}

// Hosts are those of the network.
type Hosts interface {
	Locators(host string) []sid.Locator
	Kept() map[string][]sid.Locator // that hosts have left, and nobody else has yet
	EachHost(serves sid.ServiceID, f func(host string))
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// New makes the lists of a network without services; changed is called of each whose set is another one.
func New(all Names, hosts Hosts, events Events, changed func(sid.ServiceID)) *Lists {
	return &Lists{
		sets: make(map[sid.ServiceID]resolve.AccessList), edits: make(map[sid.ServiceID]uint64),
		by: make(map[names.Allowed]map[sid.ServiceID]struct{}), stale: make(map[sid.ServiceID]struct{}),
		names: all, hosts: hosts, events: events, changed: changed,
	}
}

// Watch notes what a service's list names. It is called with each version of its record.
func (x *Lists) Watch(r names.Record) {
	for _, ids := range x.by {
		delete(ids, r.ID)
	}
	for _, text := range r.Access.Allow {
		a, err := names.ParseAllowed(text)
		if err != nil || text == names.Nobody || a.Prefix.IsValid() {
			continue // prefixes do not move
		}
		if x.by[a] == nil {
			x.by[a] = make(map[sid.ServiceID]struct{})
		}
		x.by[a][r.ID] = struct{}{}
	}
	x.stale[r.ID] = struct{}{}
}

// TouchHost makes lists follow a host whose locators change.
func (x *Lists) TouchHost(name string) { x.touch(names.Allowed{Host: name}) }

// TouchService makes lists follow who serves a service.
func (x *Lists) TouchService(id sid.ServiceID) {
	if r, ok := x.names.ByID(id); ok {
		x.touch(names.Allowed{Service: r.Name})
	}
}

func (x *Lists) touch(a names.Allowed) {
	for id := range x.by[a] {
		x.stale[id] = struct{}{}
	}
}

// Move finds the locators of lists anew, and tells who serves.
func (x *Lists) Move() {
	if len(x.stale) == 0 {
		return
	}
	kept := x.hosts.Kept() // a locator stays its host's until nobody can send from it any more
	for id := range x.stale {
		r, ok := x.names.ByID(id)
		if !ok {
			delete(x.sets, id)
			continue
		}
		set := x.list(r, kept)
		if have, had := x.sets[id]; had == (set != nil) && slices.Equal(have, set) {
			continue
		}
		if x.sets[id] = set; set == nil {
			delete(x.sets, id)
		}
		x.edits[id]++
		x.changed(id)
	}
	clear(x.stale)
}

// list is a service's list as locators; nil where everybody may connect.
func (x *Lists) list(r names.Record, kept map[string][]sid.Locator) resolve.AccessList {
	if len(r.Access.Allow) == 0 {
		return nil
	}
	var all []resolve.Prefix
	host := func(name string) {
		for _, l := range append(x.hosts.Locators(name), kept[name]...) {
			all = append(all, resolve.NewPrefix(l, sid.LocatorBits))
		}
	}
	for _, text := range r.Access.Allow {
		a, err := names.ParseAllowed(text)
		switch {
		case err != nil || text == names.Nobody:
		case a.Prefix.IsValid():
			all = append(all, resolve.NewPrefix(sid.LocatorOf(a.Prefix.Addr()), a.Prefix.Bits()))
		case a.Service != "":
			if s, err := x.names.Named(a.Service); err == nil {
				x.hosts.EachHost(s.ID, host)
			}
		default:
			host(a.Host)
		}
	}
	set := resolve.NewAccessList(all)
	if len(set) > maxPrefixes {
		x.events.Tell("service.access", r.Name, fmt.Sprintf("who may connect comes to %d locators, hosts are told the first %d: name a prefix", len(set), maxPrefixes))
		set = set[:maxPrefixes]
	}
	return set
}

// Edition tells versions of what a host is told of a service apart.
func (x *Lists) Edition(r names.Record) uint64 { return r.Version + x.edits[r.ID] }

// Of is a service's list as hosts are told it; nil where everybody may connect.
func (x *Lists) Of(id sid.ServiceID) *apiv1.AccessList {
	set, ok := x.sets[id]
	if !ok {
		return nil
	}
	g := &apiv1.AccessList{}
	for _, p := range set {
		g.Allow = append(g.Allow, &apiv1.LocatorPrefix{Locator: uint64(p.Locator), Bits: uint32(p.Bits)})
	}
	return g
}

// Set is a service's list as locators.
func (x *Lists) Set(id sid.ServiceID) resolve.AccessList { return x.sets[id] }
