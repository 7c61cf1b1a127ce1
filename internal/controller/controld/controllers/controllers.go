// Package controllers knows the controllers of a network as the one that leads sees them: those that run, and those that
// are remembered. The loop owns them; what the store shows of those that run is for all, Peers.
package controllers

import (
	"maps"
	"slices"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
)

// Controllers are those of a network.
type Controllers struct {
	self    string
	known   map[string]store.Controller
	running map[string]store.Candidate // nil until it is known
	saver   Saver
	events  Events
	tell    func(*apiv1.Controllers)
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// New makes those of which a controller of that name knows nothing yet; tell tells all daemons where they are.
func New(self string, saver Saver, events Events, tell func(*apiv1.Controllers)) *Controllers {
	return &Controllers{self: self, known: make(map[string]store.Controller), saver: saver, events: events, tell: tell}
}

// Restore takes up those that the store remembers.
func (x *Controllers) Restore(known []store.Controller) {
	for _, c := range known {
		x.known[c.Name] = c
	}
}

// Known are those that are remembered, whether they run or not.
func (x *Controllers) Known() map[string]store.Controller { return maps.Clone(x.known) }

// Running are those that run, as far as it is known.
func (x *Controllers) Running() []store.Candidate { return slices.Collect(maps.Values(x.running)) }

// Count is how many run, and how many do not; ok is false where that is not known.
func (x *Controllers) Count() (running, gone int, ok bool) {
	return len(x.running), max(0, len(x.known)-len(x.running)), x.running != nil
}

// Look reports whether one is remembered, and whether it runs.
func (x *Controllers) Look(name string) (known, runs bool) {
	_, known = x.known[name]
	_, runs = x.running[name]
	return known, runs
}

// Forget is told that one is none of the network's any more.
func (x *Controllers) Forget(name string) {
	delete(x.known, name)
	x.tell(x.All())
}

// endpoints are those of all controllers, this one's first.
func (x *Controllers) endpoints() (list []string) {
	list = append(list, x.known[x.self].API...)
	for _, name := range x.names() {
		if name != x.self {
			list = append(list, x.known[name].API...)
		}
	}
	return list
}

func (x *Controllers) names() []string {
	names := make([]string, 0, len(x.known))
	for name := range x.known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// All is what daemons are told of the controllers; nil where there can be one only.
func (x *Controllers) All() *apiv1.Controllers {
	if len(x.known) == 0 {
		return nil
	}
	return &apiv1.Controllers{Endpoints: x.endpoints()}
}

// Run takes who runs: new ones are kept and daemons told of them, and what came or went is an event.
func (x *Controllers) Run(running []store.Candidate) {
	before := x.endpoints()
	now := make(map[string]store.Candidate, len(running))
	for _, c := range running {
		now[c.Name] = c
		if have, known := x.known[c.Name]; !known || !slices.Equal(have.API, c.API) {
			x.known[c.Name] = store.Controller{Name: c.Name, API: c.API}
			x.saver.Later(store.PutController(x.known[c.Name]))
		}
		if _, was := x.running[c.Name]; !was && x.running != nil {
			x.events.Tell("controller.back", c.Name, "controller runs and stands by", "version", c.Version)
		}
	}
	for name := range x.running {
		if _, is := now[name]; !is {
			x.events.Tell("controller.gone", name, "controller does not run any more")
		}
	}
	x.running = now
	if !slices.Equal(before, x.endpoints()) {
		x.tell(x.All())
	}
}
