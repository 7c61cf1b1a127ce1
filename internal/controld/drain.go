package controld

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// A drain is two orders, one after the other: routers send the host no new flow of the service, and once they
// all do, the host does with its flows what the mode says.

// An orderWait is a host that is told the mode once the routers have the rules.
type orderWait struct {
	asked   bool // upTo is known
	upTo    uint64
	overdue bool
}

// Drain gives a host no new flows of a service, or takes that back. The last instance that serves is
// drained only with force.
func (a *adminAPI) Drain(ctx context.Context, req *connect.Request[apiv1.DrainRequest]) (*connect.Response[apiv1.Service], error) {
	m := req.Msg
	return a.changed(ctx, func() (names.Record, change, error) {
		r, err := a.n.lookup(m.Name)
		if err == nil {
			err = checkMode(m.Mode)
		}
		if err != nil {
			return r, change{}, err
		}
		if t, sole := a.n.plan.SoleServer(r.ID, m.Host); sole && !m.Undrain && !m.Force {
			a.n.metrics.refusedDrains.Inc()
			return r, change{}, fmt.Errorf("%w: %s is the last host that serves %s on %v/%d: nobody could connect any more: use force if that is meant", errConflict, m.Host, r.Name, t.Proto, t.Port)
		}
		c, err := a.n.draining(r, m.Host, m.Undrain, m.Mode)
		return r, c, err
	})
}

func checkMode(mode string) error {
	if err := (names.Policy{Drain: mode}).Check(); err != nil {
		return fmt.Errorf("%w: %w", names.ErrInvalid, err)
	}
	return nil
}

// draining is the change that a drain, or its end, of a host for one service comes to.
func (n *network) draining(r names.Record, host string, undrain bool, mode string) (change, error) {
	_, c, err := n.override(r.Name, host, func(o *store.Override) (string, string) {
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
	effect := c.effect
	c.effect = func() {
		effect()
		n.tellDrain(n.hosts[host], r.ID)
	}
	return c, nil
}

// drainMode is what the host is to do with its flows of the service: "" where it serves on.
func (n *network) drainMode(h *host, id sid.ServiceID) string {
	o := n.overrides[overrideKey{id, h.Name}]
	r, ok := n.names.ByID(id)
	if !o.Drain || !ok {
		return ""
	}
	return cmp.Or(o.Mode, r.Policy.DrainMode())
}

// tellDrain lets a host know what to do with its flows of one service, if it serves it and does not know yet:
// to serve on at once, to drain once the routers send it no more.
func (n *network) tellDrain(h *host, id sid.ServiceID) {
	if h == nil || h.session == nil {
		return
	}
	if _, serves := h.told[id]; !serves {
		return
	}
	key, mode := overrideKey{id, h.Name}, n.drainMode(h, id)
	delete(n.ordering, key)
	switch {
	case mode == h.ordered[id]:
	case mode == "":
		n.sendOrder(h, id, mode)
	default:
		w := &orderWait{}
		n.ordering[key] = w
		n.loop.after(applyPatience, func() { w.overdue = true })
	}
}

func (n *network) sendOrder(h *host, id sid.ServiceID, mode string) {
	h.ordered[id] = mode
	h.session.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Drain{Drain: &apiv1.DrainOrder{Ss: id.SS, Suffix: uint64(id.Suffix), Mode: mode}}})
}

// orders sends those that waited for the routers. flush calls it once it has sent the rules.
func (n *network) orders() {
	for key, w := range n.ordering {
		if !w.asked {
			w.asked, w.upTo = true, n.generation
		}
		connected := func(r *router) bool { return r.session != nil }
		if !w.overdue && len(n.lagging(w.upTo, connected)) > 0 {
			continue
		}
		delete(n.ordering, key)
		if h := n.hosts[key.host]; h != nil && h.session != nil {
			n.sendOrder(h, key.service, n.drainMode(h, key.service))
		}
	}
}

// loaded takes what a host says of its load, and notes which drained instances have no flow left.
func (n *network) loaded(h *host, l *apiv1.Load) {
	if err := h.checkLoad(l); err != nil {
		n.metrics.refusedEvents.Inc()
		if h.meter.take(time.Now(), eventBurst, eventsASecond) {
			n.event("host.error", h.Name, "its report of its load is not believed, the one before stays: "+err.Error())
		}
		return
	}
	before := h.load
	h.load = l
	for t := range h.wanted {
		r, ok := n.names.ByID(t.Service)
		if !ok || !n.overrides[overrideKey{t.Service, h.Name}].Drain {
			continue
		}
		was, _ := loadOf(before, t)
		if now, _ := loadOf(l, t); was > 0 && now == 0 {
			n.event("service.drained", r.Name, fmt.Sprintf("%s %v/%d has no flow left", h.Name, t.Proto, t.Port), "host", h.Name)
		}
	}
}
