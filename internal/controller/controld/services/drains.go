package services

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// Drain gives a host no new flows of a service, or takes that back. The last instance that serves is
// drained only with force.
func (x *Services) Drain(m *apiv1.DrainRequest) (orders.Change, error) {
	r, err := x.Lookup(m.Name)
	if err == nil {
		err = checkMode(m.Mode)
	}
	if err != nil {
		return orders.Change{}, err
	}
	if t, sole := x.cfg.Plan.SoleServer(r.ID, m.Host); sole && !m.Undrain && !m.Force {
		x.cfg.RefusedDrains.Inc()
		return orders.Change{}, fmt.Errorf("%w: %s is the last host that serves %s on %v/%d: nobody could connect any more: use force if that is meant", orders.ErrConflict, m.Host, r.Name, t.Proto, t.Port)
	}
	return x.draining(r, m.Host, m.Undrain, m.Mode)
}

func checkMode(mode string) error {
	if err := (names.Policy{Drain: mode}).Check(); err != nil {
		return fmt.Errorf("%w: %w", names.ErrInvalid, err)
	}
	return nil
}

// draining is the change that a drain, or its end, of a host for one service comes to.
func (x *Services) draining(r names.Record, host string, undrain bool, mode string) (orders.Change, error) {
	c, err := x.override(r.Name, host, func(o *store.Override) (string, string) {
		o.Drain, o.Mode = !undrain, mode
		if undrain {
			o.Mode = ""
			return "service.undrain", host + " gets new flows again"
		}
		if cmp.Or(mode, r.Policy.DrainMode()) == names.Shed {
			return "service.drain", host + " gets no new flows; those that it has fail over by the service's policy"
		}
		return "service.drain", host + " gets no new flows; those that it has go on"
	})
	if err != nil {
		return c, err
	}
	return c.And(orders.Change{Effect: func() { x.cfg.Overrides.Tell(host, r.ID) }}), nil
}

// DrainHost drains all that a host serves, or takes that back, and tells what that does. Services of which the host has the
// last instance are drained only with force. The answer is there where the order is refused, too.
func (x *Services) DrainHost(m *apiv1.DrainHostRequest) (answer *apiv1.DrainHostResponse, all orders.Change, err error) {
	answer = new(apiv1.DrainHostResponse)
	if !x.cfg.Hosts.Known(m.Host) {
		return answer, all, NoHost(m.Host)
	}
	if err := checkMode(m.Mode); err != nil {
		return answer, all, err
	}
	served := x.cfg.Registrations.ByService(m.Host)
	list := x.servedBy(m.Host, served, m.Undrain)
	answer.Flows = x.cfg.Hosts.ClientFlows(m.Host)
	for _, r := range list {
		answer.Services = append(answer.Services, x.wouldDrain(r, served[r.ID], m))
	}
	if m.DryRun {
		return answer, all, nil
	}
	if sole := x.soleOf(m.Host, list); len(sole) > 0 && !m.Undrain && !m.Force {
		x.cfg.RefusedDrains.Inc()
		return answer, all, fmt.Errorf("%w: %s is the last host that serves %s: nobody could connect any more: use force if that is meant", orders.ErrConflict, m.Host, strings.Join(sole, ", "))
	}
	for _, r := range list {
		c, err := x.draining(r, m.Host, m.Undrain, m.Mode)
		if err != nil {
			return answer, orders.Change{}, err
		}
		all = all.And(c)
	}
	return answer, all, nil
}

// servedBy are the services that the host serves; for the end of a drain those that it was drained of.
func (x *Services) servedBy(host string, served map[sid.ServiceID][]sid.Triple, undrain bool) (list []names.Record) {
	for _, r := range x.All() {
		if undrain && x.Override(r.ID, host).Drain || !undrain && served[r.ID] != nil {
			list = append(list, r)
		}
	}
	return list
}

func (x *Services) soleOf(host string, list []names.Record) (sole []string) {
	for _, r := range list {
		if _, is := x.cfg.Plan.SoleServer(r.ID, host); is {
			sole = append(sole, r.Name)
		}
	}
	return sole
}

// wouldDrain tells what a drain does to one service.
func (x *Services) wouldDrain(r names.Record, triples []sid.Triple, m *apiv1.DrainHostRequest) *apiv1.Drained {
	d := &apiv1.Drained{Service: r.Name, Others: x.others(m.Host, r.ID, triples)}
	var tcp uint32
	for _, t := range triples {
		flows := x.cfg.Hosts.Flows(m.Host, t)
		d.Flows += flows
		if t.Proto == sid.TCP {
			tcp += flows
		}
	}
	if m.Undrain {
		return d
	}
	d.Mode = cmp.Or(m.Mode, r.Policy.DrainMode())
	d.Breaks = x.breaks(m.Host, r, d, tcp)
	return d
}

// others counts the instances elsewhere that take new flows, of the triple that has the fewest.
func (x *Services) others(host string, id sid.ServiceID, triples []sid.Triple) uint32 {
	count := make(map[sid.Triple]uint32)
	for _, i := range x.cfg.Plan.Instances(id) {
		if i.Host != host && i.Effective > 0 {
			count[i.Triple]++
		}
	}
	if len(triples) == 0 {
		return 0
	}
	least := count[triples[0]]
	for _, t := range triples {
		least = min(least, count[t])
	}
	return least
}

// breaks says what clients would notice; "" where nothing.
func (x *Services) breaks(host string, r names.Record, d *apiv1.Drained, tcp uint32) string {
	var list []string
	if d.Others == 0 {
		list = append(list, "it is the last instance: new clients are refused")
	}
	if d.Mode == names.Shed && tcp > 0 {
		switch {
		case r.Policy.Failover != names.Continue:
			list = append(list, resets(tcp)+" (failover is reset)")
		case !x.cfg.Keyed():
			list = append(list, resets(tcp)+" (the network is open)")
		case !x.resumable(host, r.ID):
			list = append(list, resets(tcp)+" (no other instance can resume them)")
		}
	}
	return strings.Join(list, "; ")
}

func resets(connections uint32) string {
	if connections == 1 {
		return "1 connection is reset"
	}
	return events.Counted(int(connections), "connection") + " are reset"
}

// resumable reports whether another instance can go on with the host's flows of the service.
func (x *Services) resumable(host string, id sid.ServiceID) bool {
	return slices.ContainsFunc(x.cfg.Plan.Capable(id), func(other string) bool { return other != host })
}
