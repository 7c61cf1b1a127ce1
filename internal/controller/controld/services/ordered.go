package services

import (
	"fmt"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
)

// What is ordered of services is checked here. The answer is what the order comes to.

// Create adds a service.
func (x *Services) Create(m *apiv1.CreateServiceRequest) (orders.Change, error) {
	access, err := x.accessFrom(m.Access)
	if err != nil {
		return orders.Change{}, err
	}
	r, err := x.Make(m.Name, m.Ss, m.Sid, specs.Policy(m.Policy), access)
	return orders.Change{Records: []store.Change{store.PutService(r)}, Effect: func() { x.Add(r) }, Says: []*apiv1.Event{specs.Created(r, x.Address(r.ID))}}, err
}

// UpdatePolicy replaces the policy of a service.
func (x *Services) UpdatePolicy(m *apiv1.UpdatePolicyRequest) (orders.Change, error) {
	before, err := x.Lookup(m.Name)
	if err == nil {
		err = x.unchanged(before, m.Version, m.Replace, "its policy")
	}
	after := before
	if err == nil {
		after, err = x.With(before.Name, specs.Policy(m.Policy), before.Access, before.Applied)
	}
	if err == nil {
		err = x.Holdable(after.Policy)
	}
	if err != nil {
		return orders.Change{}, err
	}
	return orders.Change{Records: []store.Change{store.PutService(after)}, Effect: func() { x.Set(after, true) },
		Says: []*apiv1.Event{specs.Rewritten("service.policy", "policy changed", before, after)}}, nil
}

// RemoveService removes a service; one that still has instances only with force.
func (x *Services) RemoveService(m *apiv1.RemoveServiceRequest) (orders.Change, error) {
	r, err := x.Lookup(m.Name)
	if err != nil {
		return orders.Change{}, err
	}
	if live := x.Instances(r.ID); live > 0 && !m.Force {
		return orders.Change{}, fmt.Errorf("%w: service %s has %s: stop what serves it first, or use force", orders.ErrConflict, r.Name, events.Counted(live, "instance"))
	}
	if err := x.unchanged(r, m.Version, m.Version == 0, "it"); err != nil {
		return orders.Change{}, err
	}
	return orders.Change{Records: x.Removal(r), Effect: func() { x.Remove(r) }, Says: []*apiv1.Event{specs.Removed(r)}}, nil
}

// maxWeights is what the store saves in one transaction.
const maxWeights = 100

// SetWeights gives hosts their weights for one service: all, or none.
func (x *Services) SetWeights(name string, weights []*apiv1.HostWeight) (all orders.Change, err error) {
	if len(weights) == 0 || len(weights) > maxWeights {
		return all, fmt.Errorf("%w: %d weights: want 1 to %d", names.ErrInvalid, len(weights), maxWeights)
	}
	seen := map[string]bool{}
	for _, w := range weights {
		if w.GetWeight() > names.MaxWeight {
			return orders.Change{}, fmt.Errorf("%w: weight %d: want 0 to %d", names.ErrInvalid, w.Weight, names.MaxWeight)
		}
		if seen[w.GetHost()] {
			return orders.Change{}, fmt.Errorf("%w: host %.80q stands twice: one weight for each host", names.ErrInvalid, w.GetHost())
		}
		seen[w.GetHost()] = true
		one, err := x.override(name, w.GetHost(), func(o *store.Override) (string, string) {
			o.Weight, o.Set = w.Weight, true
			return "service.weight", fmt.Sprintf("weight of %s is %d", w.Host, w.Weight)
		})
		if err != nil {
			return orders.Change{}, err
		}
		all = all.And(one)
	}
	return all, nil
}

// override prepares a change of an operator's word about one host of one service. alter makes it and
// returns the event's kind and text.
func (x *Services) override(name, host string, alter func(*store.Override) (kind, text string)) (orders.Change, error) {
	r, err := x.Lookup(name)
	if err != nil {
		return orders.Change{}, err
	}
	if !x.cfg.Hosts.Known(host) {
		return orders.Change{}, NoHost(host)
	}
	o := x.Override(r.ID, host)
	o.Service, o.Host = r.ID, host
	before := o
	kind, text := alter(&o)
	says := specs.Override(kind, r.Name, text, before, o)
	record := store.PutOverride(o)
	if !o.Set && !o.Drain {
		record = store.DeleteOverride(o)
	}
	return orders.Change{Records: []store.Change{record}, Effect: func() { x.SetOverride(o) }, Says: []*apiv1.Event{says}}, nil
}

// NoHost says that there is no such host.
func NoHost(name string) error {
	return fmt.Errorf("host %.80q: %w: scaffold host ls shows those that joined", name, orders.ErrNoHost)
}
