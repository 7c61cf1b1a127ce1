package services

import (
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// What files of services are held against, and change, beside what Services has for others (specs.Catalogue).

// New makes a record of a service that is to be.
func (x *Services) New(name, id string, policy names.Policy, access names.Access) (names.Record, error) {
	return x.Make(name, 0, id, policy, access)
}

// Instances is how many there are of a service.
func (x *Services) Instances(id sid.ServiceID) int { return len(x.cfg.Plan.Instances(id)) }

// Removal is what the store forgets with a service.
func (x *Services) Removal(r names.Record) []store.Change {
	records := []store.Change{store.DeleteService(r.ID), store.DeleteServed(r.ID)}
	for _, o := range x.cfg.Overrides.OfService(r.ID) {
		records = append(records, store.DeleteOverride(o))
	}
	return records
}

// Override is an operator's word about one host of a service.
func (x *Services) Override(service sid.ServiceID, host string) store.Override {
	return x.cfg.Overrides.Of(service, host)
}

// SetOverride takes an operator's word about one host of a service.
func (x *Services) SetOverride(o store.Override) { x.cfg.Overrides.Set(o) }
