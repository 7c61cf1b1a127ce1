package controld

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// ownSS is the network's own service system.
const ownSS = 1

// CreateService adds a service; without a serviceID it gets a random one.
func (a *adminAPI) CreateService(ctx context.Context, req *connect.Request[apiv1.CreateServiceRequest]) (*connect.Response[apiv1.Service], error) {
	m := req.Msg
	return a.changed(ctx, func() (names.Record, change, error) {
		access, err := accessFrom(m.Access)
		if err != nil {
			return names.Record{}, change{}, err
		}
		r, err := a.n.newRecord(m.Name, m.Ss, m.Sid, policyFrom(m.Policy), access)
		return r, change{[]store.Change{store.PutService(r)}, func() { a.n.addService(r) }}, err
	})
}

// newRecord checks what is asked for and fills in what is not said.
func (n *network) newRecord(name string, ss uint32, id string, policy names.Policy, access names.Access) (names.Record, error) {
	r := names.Record{Name: name, Policy: policy, Access: access, Version: 1, Created: time.Now().UnixMilli()}
	orElse(&ss, ownSS)
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
		r.ID = n.names.Allocate(ss, randomBits)
	}
	if err := n.holdable(policy); err != nil {
		return r, err
	}
	return n.names.Check(r)
}

func randomBits() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:])
}

func (n *network) addService(r names.Record) {
	if err := n.names.Add(r); err != nil {
		panic(fmt.Sprintf("controld: service %s passed its check and is refused: %v", r.Name, err))
	}
	n.plan.SetService(r.ID, planPolicy(r))
	n.watchGuard(r)
	n.moveGuards()
	n.event("service.create", r.Name, "service created", "sid", r.ID.String(), "address", n.cfg.Space.ServiceAddr(r.ID).String())
	n.rejudge(r.ID)
	n.touchGuards(r.ID)
}

// UpdatePolicy replaces the policy of a service and tells the hosts that serve it.
func (a *adminAPI) UpdatePolicy(ctx context.Context, req *connect.Request[apiv1.UpdatePolicyRequest]) (*connect.Response[apiv1.Service], error) {
	return a.changed(ctx, func() (names.Record, change, error) {
		r, err := a.n.lookup(req.Msg.Name)
		if err == nil {
			r, err = a.n.names.WithPolicy(r.Name, policyFrom(req.Msg.Policy))
		}
		if err == nil {
			err = a.n.holdable(r.Policy)
		}
		return r, change{[]store.Change{store.PutService(r)}, func() { a.n.setRecord(r, "service.policy", "policy changed") }}, err
	})
}

// RemoveService removes a service; one that still has instances only with force.
func (a *adminAPI) RemoveService(ctx context.Context, req *connect.Request[apiv1.RemoveServiceRequest]) (*connect.Response[apiv1.RemoveServiceResponse], error) {
	err := a.do(ctx, func() (change, error) {
		r, err := a.n.lookup(req.Msg.Name)
		if err != nil {
			return change{}, err
		}
		if live := len(a.n.plan.Instances(r.ID)); live > 0 && !req.Msg.Force {
			return change{}, fmt.Errorf("%w: service %s has %d instances: stop or drain them first, or use force", errConflict, r.Name, live)
		}
		return change{a.n.removal(r), func() { a.n.removeService(r) }}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.RemoveServiceResponse{}), nil
}

func (n *network) removeService(r names.Record) {
	n.touchGuards(r.ID)
	n.names.Remove(r.Name)
	n.plan.RemoveService(r.ID)
	n.watchGuard(names.Record{ID: r.ID})
	for key := range n.overrides {
		if key.service == r.ID {
			delete(n.overrides, key)
		}
	}
	for _, h := range n.hosts {
		for t, w := range h.wanted {
			if t.Service == r.ID {
				w.up, w.told = false, false
				h.wanted[t] = w
			}
		}
		if _, told := h.told[r.ID]; told && h.session != nil {
			delete(h.told, r.ID)
			n.news[h] = append(n.news[h], n.servicePolicy(r, true))
		}
	}
	n.event("service.remove", r.Name, "service removed", "sid", r.ID.String())
}

// SetWeight gives a host a weight for one service.
func (a *adminAPI) SetWeight(ctx context.Context, req *connect.Request[apiv1.SetWeightRequest]) (*connect.Response[apiv1.Service], error) {
	m := req.Msg
	return a.changed(ctx, func() (names.Record, change, error) {
		if m.Weight > plan.MaxWeight {
			return names.Record{}, change{}, fmt.Errorf("%w: weight %d: want 0 to %d", names.ErrInvalid, m.Weight, plan.MaxWeight)
		}
		return a.n.override(m.Name, m.Host, func(o *store.Override) (string, string) {
			o.Weight, o.Set = m.Weight, true
			return "service.weight", fmt.Sprintf("weight of %s is %d", m.Host, m.Weight)
		})
	})
}

// override prepares a change of an operator's word about one host of one service. alter makes it and
// returns the event's kind and text.
func (n *network) override(name, hostName string, alter func(*store.Override) (kind, text string)) (names.Record, change, error) {
	r, err := n.lookup(name)
	if err != nil {
		return r, change{}, err
	}
	if h := n.hosts[hostName]; h == nil {
		return r, change{}, fmt.Errorf("host %.80q: %w: scaffold host ls shows those that joined", hostName, errNoHost)
	}
	o := n.overrides[overrideKey{r.ID, hostName}]
	o.Service, o.Host = r.ID, hostName
	kind, text := alter(&o)
	record := store.PutOverride(o)
	if !o.Set && !o.Drain {
		record = store.DeleteOverride(o)
	}
	return r, change{[]store.Change{record}, func() {
		n.setOverride(o)
		n.event(kind, r.Name, text, "host", hostName, "weight", uitoa(o.Weight))
	}}, nil
}

// lookup finds a service by name, serviceID or service address.
func (n *network) lookup(what string) (names.Record, error) {
	if addr, err := netip.ParseAddr(what); err == nil {
		if id, ok := n.cfg.Space.ServiceOf(addr); ok {
			return n.byID(id)
		}
	}
	if id, err := sid.ParseServiceID(what); err == nil {
		return n.byID(id)
	}
	return n.names.Named(what)
}

func (n *network) byID(id sid.ServiceID) (names.Record, error) {
	r, ok := n.names.ByID(id)
	if !ok {
		return r, fmt.Errorf("service %v: %w", id, names.ErrUnknown)
	}
	return r, nil
}
