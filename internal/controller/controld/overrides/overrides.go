// Package overrides holds what operators say of single hosts of services: weights, and drains with what the host is to do
// with its flows. A host is told of a drain once the routers send it no new flow. The loop owns what it knows.
package overrides

import (
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A Plan makes rules of them.
type Plan interface {
	SetOverride(id sid.ServiceID, host string, o plan.Override)
}

// Services are those that there are.
type Services interface {
	ByID(id sid.ServiceID) (names.Record, bool)
}

// Hosts are told of drains.
type Hosts interface {
	Connected(host string) bool
	Serves(host string, id sid.ServiceID) bool // its session knows the service
	Told(host string, id sid.ServiceID) string // the mode that its session knows
	Tell(host string, id sid.ServiceID, mode string)
}

// Routers apply the rules.
type Routers interface {
	Generation() uint64      // of the rules that were sent
	Behind(upTo uint64) bool // one that is here has not applied them yet
}

// A Loop runs what is to be done later in the goroutine that owns the overrides.
type Loop interface {
	After(time.Duration, func())
}

// A Config is what overrides need of others.
type Config struct {
	Plan     Plan
	Services Services
	Hosts    Hosts
	Routers  Routers
	Loop     Loop
	Patience time.Duration // with routers that do not apply their rules
}

type key struct {
	service sid.ServiceID
	host    string
}

// A wait is a host that is told the mode once the routers have the rules.
type wait struct {
	asked   bool // upTo is known
	upTo    uint64
	overdue bool
}

// Overrides are all of a network.
type Overrides struct {
	Config
	all   map[key]store.Override
	waits map[key]*wait // drains that hosts are not told of yet
}

// New has none.
func New(cfg Config) *Overrides {
	return &Overrides{Config: cfg, all: make(map[key]store.Override), waits: make(map[key]*wait)}
}

// Of is the one about a host of a service.
func (x *Overrides) Of(id sid.ServiceID, host string) store.Override { return x.all[key{id, host}] }

// Set takes one; one that says nothing is none.
func (x *Overrides) Set(o store.Override) {
	k := key{o.Service, o.Host}
	x.all[k] = o
	if !o.Set && !o.Drain {
		delete(x.all, k)
	}
	x.Plan.SetOverride(o.Service, o.Host, o.Override)
}

// OfService are those about hosts of a service.
func (x *Overrides) OfService(id sid.ServiceID) (list []store.Override) {
	for k, o := range x.all {
		if k.service == id {
			list = append(list, o)
		}
	}
	return list
}

// ForgetService is for a service that is no more; the plan has forgotten it already.
func (x *Overrides) ForgetService(id sid.ServiceID) {
	for k := range x.all {
		if k.service == id {
			delete(x.all, k)
		}
	}
}

// ForgetHost is for a host that is no more. It returns what was said of it.
func (x *Overrides) ForgetHost(name string) (list []store.Override) {
	for k, o := range x.all {
		if o.Host == name {
			delete(x.all, k)
			x.Plan.SetOverride(o.Service, name, plan.Override{})
			list = append(list, o)
		}
	}
	return list
}

// Weights are those that hosts were given for a service.
func (x *Overrides) Weights(id sid.ServiceID) map[string]uint32 {
	weights := make(map[string]uint32)
	for k, o := range x.all {
		if k.service == id && o.Set {
			weights[k.host] = o.Weight
		}
	}
	return weights
}
