package services

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A Plan makes rules of services, and knows their instances.
type Plan interface {
	SetService(names.Record)
	RemoveService(id sid.ServiceID)
	Instances(id sid.ServiceID) []plan.Instance
	SoleServer(id sid.ServiceID, host string) (sid.Triple, bool)
	Capable(id sid.ServiceID) (hosts []string) // that can resume others' flows
}

// Access finds the locators of those who may connect.
type Access interface {
	Watch(names.Record)            // the list of a service is another one
	TouchService(id sid.ServiceID) // others serve it than before
	Move()                         // tells of lists that changed
}

// Overrides are what operators say of single hosts of services.
type Overrides interface {
	Of(id sid.ServiceID, host string) store.Override
	OfService(id sid.ServiceID) []store.Override
	Set(store.Override)
	ForgetService(id sid.ServiceID)
	Tell(host string, id sid.ServiceID) // what it is to do with its flows
}

// Registrations are what hosts would serve.
type Registrations interface {
	ByService(host string) map[sid.ServiceID][]sid.Triple
	Rejudge(id sid.ServiceID)  // others may serve than before
	Replaced(id sid.ServiceID) // its record is another one
	Removed(r names.Record)
	AskedFor(id sid.ServiceID) // a host asks for its address
}

// Hosts are those of the network.
type Hosts interface {
	Known(host string) bool
	Flows(host string, t sid.Triple) uint32 // to its instance
	ClientFlows(host string) uint32         // that are none of its instances'
	At(addr netip.Addr) (host string)       // whose identity it is, or in whose locator; "": nobody's
}

// History is what happened and was ordered.
type History interface {
	Last(count int, wants func(*apiv1.Event) bool) []*apiv1.Event
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// A Config is what services need of others.
type Config struct {
	Space         sid.Space
	Domain        string
	Keyed         func() bool // members prove who they are
	Plan          Plan
	Access        Access
	Overrides     Overrides
	Registrations Registrations
	Hosts         Hosts
	History       History
	RefusedDrains Counter
}

// Services are those of one network. The loop owns them.
type Services struct {
	*names.Table
	cfg Config
}

// New has those of the table.
func New(table *names.Table, cfg Config) *Services { return &Services{table, cfg} }

// Restore takes up a service of before; an error says that it cannot be one.
func (x *Services) Restore(r names.Record) error {
	if err := x.Table.Add(r); err != nil {
		return err
	}
	x.cfg.Plan.SetService(r)
	x.cfg.Access.Watch(r)
	return nil
}

// ownSS is the network's own service system.
const ownSS = 1

// Make checks what is asked for, and fills in what is not said: without a serviceID it gets a random one.
func (x *Services) Make(name string, ss uint32, id string, policy names.Policy, access names.Access) (names.Record, error) {
	r := names.Record{Name: name, Policy: policy, Access: access, Version: 1, Created: time.Now().UnixMilli()}
	ss = cmp.Or(ss, ownSS)
	switch {
	case id != "":
		parsed, err := sid.ParseServiceID(id)
		if err != nil {
			return r, fmt.Errorf("%w: %w", names.ErrInvalid, err)
		}
		r.ID = parsed
	case len(access.Key) > 0:
		r.ID = sid.ServiceID{SS: ss, Suffix: sid.Certified(access.Key)}
	default:
		r.ID = x.Allocate(ss, randomBits)
	}
	if err := x.Holdable(policy); err != nil {
		return r, err
	}
	return x.Check(r)
}

func randomBits() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:])
}

// Holdable says why a policy cannot hold in this network.
func (x *Services) Holdable(p names.Policy) error {
	if p.Failover == names.Continue && !x.cfg.Keyed() {
		return fmt.Errorf("%w: failover=continue needs hosts that prove who they are, or anybody could claim a flow, and this network is open: start the controller with --trust keys (in a lab file, network: trust: keys), or keep failover=reset", orders.ErrConflict)
	}
	return nil
}

// Add makes a service.
func (x *Services) Add(r names.Record) {
	if err := x.Table.Add(r); err != nil {
		panic(fmt.Sprintf("services: service %s passed its check and is refused: %v", r.Name, err))
	}
	x.cfg.Plan.SetService(r)
	x.cfg.Access.Watch(r)
	x.cfg.Access.Move()
	x.cfg.Registrations.Rejudge(r.ID)
	x.cfg.Access.TouchService(r.ID)
}

// Set puts a new version of a service in its place and lets everybody know; one whose mark alone is new is nobody's news.
func (x *Services) Set(r names.Record, reworded bool) {
	before, _ := x.ByID(r.ID)
	if err := x.Replace(r); err != nil {
		panic(fmt.Sprintf("services: service %s passed its check and is refused: %v", r.Name, err))
	}
	if !reworded {
		return
	}
	x.cfg.Plan.SetService(r)
	if !before.Access.Equal(r.Access) {
		x.cfg.Access.Watch(r)
		x.cfg.Access.Move()
		x.cfg.Registrations.Rejudge(r.ID)
	}
	x.cfg.Registrations.Replaced(r.ID)
}

// Remove removes a service.
func (x *Services) Remove(r names.Record) {
	x.cfg.Access.TouchService(r.ID)
	x.Table.Remove(r.Name)
	x.cfg.Plan.RemoveService(r.ID)
	x.cfg.Access.Watch(names.Record{ID: r.ID})
	x.cfg.Overrides.ForgetService(r.ID)
	x.cfg.Registrations.Removed(r)
}

// Lookup finds a service by name, serviceID or service address.
func (x *Services) Lookup(what string) (names.Record, error) {
	if addr, err := netip.ParseAddr(what); err == nil {
		if id, ok := x.cfg.Space.ServiceOf(addr); ok {
			return x.known(id)
		}
	}
	if id, err := sid.ParseServiceID(what); err == nil {
		return x.known(id)
	}
	return x.Named(what)
}

func (x *Services) known(id sid.ServiceID) (names.Record, error) {
	r, ok := x.ByID(id)
	if !ok {
		return r, fmt.Errorf("service %v: %w", id, names.ErrUnknown)
	}
	return r, nil
}

// Address is that of a service.
func (x *Services) Address(id sid.ServiceID) string { return x.cfg.Space.ServiceAddr(id).String() }
