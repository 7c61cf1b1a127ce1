package controld

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/sid"
)

// DrainHost drains all that a host serves, or takes that back, or only tells what a drain would do. Services
// of which the host has the last instance are drained only with force.
func (a *adminAPI) DrainHost(ctx context.Context, req *connect.Request[apiv1.DrainHostRequest]) (*connect.Response[apiv1.DrainHostResponse], error) {
	m, answer := req.Msg, new(apiv1.DrainHostResponse)
	check := func() (c change, err error) {
		h := a.n.hosts[m.Host]
		if h == nil {
			return c, fmt.Errorf("host %.80q: %w: scaffold host ls shows those that joined", m.Host, errNoHost)
		}
		if err := checkMode(m.Mode); err != nil {
			return c, err
		}
		served := h.triples()
		list := a.n.servedBy(h, served, m.Undrain)
		answer.Flows = h.clientFlows()
		for _, r := range list {
			answer.Services = append(answer.Services, a.n.wouldDrain(h, r, served[r.ID], m))
		}
		if m.DryRun {
			return c, nil
		}
		if sole := a.n.soleOf(h, list); len(sole) > 0 && !m.Undrain && !m.Force {
			a.n.metrics.refusedDrains.Inc()
			return c, fmt.Errorf("%w: %s is the last host that serves %s: nobody could connect any more: use force if that is meant", errConflict, m.Host, strings.Join(sole, ", "))
		}
		return a.n.drainAll(h, list, m)
	}
	if m.DryRun {
		return get(ctx, a.n, func() (*apiv1.DrainHostResponse, error) {
			_, err := check()
			return answer, err
		})
	}
	if err := a.do(ctx, check); err != nil {
		return nil, err
	}
	a.await(ctx)
	return connect.NewResponse(answer), nil
}

// triples are what the host registered, by service.
func (h *host) triples() map[sid.ServiceID][]sid.Triple {
	m := make(map[sid.ServiceID][]sid.Triple)
	for t := range h.wanted {
		m[t.Service] = append(m[t.Service], t)
	}
	return m
}

// servedBy are the services that the host serves; for the end of a drain those that it was drained of.
func (n *network) servedBy(h *host, served map[sid.ServiceID][]sid.Triple, undrain bool) (list []names.Record) {
	for _, r := range n.names.All() {
		if undrain && n.overrides[overrideKey{r.ID, h.Name}].Drain || !undrain && served[r.ID] != nil {
			list = append(list, r)
		}
	}
	return list
}

func (n *network) soleOf(h *host, list []names.Record) (sole []string) {
	for _, r := range list {
		if _, is := n.plan.SoleServer(r.ID, h.Name); is {
			sole = append(sole, r.Name)
		}
	}
	return sole
}

func (n *network) drainAll(h *host, list []names.Record, m *apiv1.DrainHostRequest) (all change, err error) {
	var effects []func()
	for _, r := range list {
		c, err := n.draining(r, h.Name, m.Undrain, m.Mode)
		if err != nil {
			return change{}, err
		}
		all.records = append(all.records, c.records...)
		effects = append(effects, c.effect)
	}
	all.effect = func() {
		for _, f := range effects {
			f()
		}
	}
	return all, nil
}

// clientFlows are those of the host that are none of its instances'.
func (h *host) clientFlows() uint32 {
	var served uint32
	for _, t := range h.load.GetTriples() {
		served += t.Flows
	}
	return h.load.GetFlows() - min(served, h.load.GetFlows())
}

// wouldDrain tells what a drain does to one service.
func (n *network) wouldDrain(h *host, r names.Record, triples []sid.Triple, m *apiv1.DrainHostRequest) *apiv1.Drained {
	d := &apiv1.Drained{Service: r.Name, Others: n.others(h, r.ID, triples)}
	var tcp uint32
	for _, t := range triples {
		flows, _ := h.loadOf(t)
		d.Flows += flows
		if t.Proto == sid.TCP {
			tcp += flows
		}
	}
	if m.Undrain {
		return d
	}
	d.Mode = cmp.Or(m.Mode, r.Policy.DrainMode())
	d.Breaks = n.breaks(h, r, d, tcp)
	return d
}

// others counts the instances elsewhere that take new flows, of the triple that has the fewest.
func (n *network) others(h *host, id sid.ServiceID, triples []sid.Triple) uint32 {
	count := make(map[sid.Triple]uint32)
	for _, i := range n.plan.Instances(id) {
		if i.Host != h.Name && i.Effective > 0 {
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
func (n *network) breaks(h *host, r names.Record, d *apiv1.Drained, tcp uint32) string {
	var list []string
	if d.Others == 0 {
		list = append(list, "it is the last instance: new clients are refused")
	}
	if d.Mode == names.Shed && tcp > 0 {
		switch {
		case r.Policy.Failover != names.Continue:
			list = append(list, fmt.Sprintf("%d connections are reset (failover is reset)", tcp))
		case n.key == nil:
			list = append(list, fmt.Sprintf("%d connections are reset (the network is open)", tcp))
		case !n.resumable(h, r.ID):
			list = append(list, fmt.Sprintf("%d connections are reset (no other instance can resume them)", tcp))
		}
	}
	return strings.Join(list, "; ")
}

// resumable reports whether another instance can go on with the host's flows of the service.
func (n *network) resumable(h *host, id sid.ServiceID) bool {
	return slices.ContainsFunc(n.plan.Capable(id), func(host string) bool { return host != h.Name })
}
