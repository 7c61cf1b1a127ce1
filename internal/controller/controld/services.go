package controld

import (
	"context"
	"net/netip"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/services"
	"scaffold.dev/scaffold/sid"
)

// newServices are those of the network, and what they need of the other rooms.
func newServices(n *network) *services.Services {
	return services.New(n.names, services.Config{
		Space: n.cfg.Space, Domain: n.cfg.Domain, Keyed: func() bool { return n.members.Key() != nil }, Plan: n.plan, Access: n.access,
		Overrides: n.overrides, Registrations: n.registrations, Hosts: loaded{n}, History: n.events, RefusedDrains: n.metrics.refusedDrains,
	})
}

// loaded are the hosts, with the flows that they say they have.
type loaded struct{ n *network }

func (l loaded) Known(host string) bool { return l.n.hosts[host] != nil }

func (l loaded) Flows(host string, t sid.Triple) uint32 {
	flows, _ := l.n.hosts[host].loadOf(t)
	return flows
}

// ClientFlows are those of the host that are none of its instances'.
func (l loaded) ClientFlows(host string) uint32 {
	load := l.n.hosts[host].load
	var served uint32
	for _, t := range load.GetTriples() {
		served += t.Flows
	}
	return load.GetFlows() - min(served, load.GetFlows())
}

// At is the host whose identity an address is, or in whose locator it is.
func (l loaded) At(addr netip.Addr) string {
	if !l.n.cfg.Space.Identities.Contains(addr) {
		at, _ := l.n.places.At(sid.LocatorOf(addr))
		return at.Host
	}
	if h := l.n.identityOwner(sid.Low(addr)); h != nil {
		return h.Name
	}
	return ""
}

// CreateService adds a service; without a serviceID it gets a random one.
func (a *adminAPI) CreateService(ctx context.Context, req *connect.Request[apiv1.CreateServiceRequest]) (*connect.Response[apiv1.Service], error) {
	says, err := a.n.orders.Once(ctx, func() (orders.Change, error) { return a.n.services.Create(req.Msg) })
	return a.warned(ctx, req.Msg.Access, says, err)
}

// UpdatePolicy replaces the policy of a service and tells the hosts that serve it.
func (a *adminAPI) UpdatePolicy(ctx context.Context, req *connect.Request[apiv1.UpdatePolicyRequest]) (*connect.Response[apiv1.Service], error) {
	says, err := a.n.orders.Once(ctx, func() (orders.Change, error) { return a.n.services.UpdatePolicy(req.Msg) })
	return a.after(ctx, says, err)
}

// UpdateAccess replaces who may serve a service and who may connect to it.
func (a *adminAPI) UpdateAccess(ctx context.Context, req *connect.Request[apiv1.UpdateAccessRequest]) (*connect.Response[apiv1.Service], error) {
	says, err := a.n.orders.Once(ctx, func() (orders.Change, error) { return a.n.services.UpdateAccess(req.Msg) })
	return a.warned(ctx, req.Msg.Access, says, err)
}

// RemoveService removes a service; one that still has instances only with force.
func (a *adminAPI) RemoveService(ctx context.Context, req *connect.Request[apiv1.RemoveServiceRequest]) (*connect.Response[apiv1.RemoveServiceResponse], error) {
	if err := a.n.orders.Do(ctx, func() (orders.Change, error) { return a.n.services.RemoveService(req.Msg) }); err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.RemoveServiceResponse{}), nil
}

// SetWeight gives a host a weight for one service.
func (a *adminAPI) SetWeight(ctx context.Context, req *connect.Request[apiv1.SetWeightRequest]) (*connect.Response[apiv1.Service], error) {
	one := []*apiv1.HostWeight{{Host: req.Msg.Host, Weight: req.Msg.Weight}}
	says, err := a.n.orders.Once(ctx, func() (orders.Change, error) { return a.n.services.SetWeights(req.Msg.Name, one) })
	return a.after(ctx, says, err)
}

// SetWeights gives several hosts their weights for one service: all, or none.
func (a *adminAPI) SetWeights(ctx context.Context, req *connect.Request[apiv1.SetWeightsRequest]) (*connect.Response[apiv1.Service], error) {
	says, err := a.n.orders.Once(ctx, func() (orders.Change, error) {
		return a.n.services.SetWeights(req.Msg.Name, req.Msg.Weights)
	})
	return a.after(ctx, says, err)
}

// Drain gives a host no new flows of a service, or takes that back.
func (a *adminAPI) Drain(ctx context.Context, req *connect.Request[apiv1.DrainRequest]) (*connect.Response[apiv1.Service], error) {
	says, err := a.n.orders.Once(ctx, func() (orders.Change, error) { return a.n.services.Drain(req.Msg) })
	return a.after(ctx, says, err)
}

// DrainHost drains all that a host serves, or takes that back, or only tells what a drain would do.
func (a *adminAPI) DrainHost(ctx context.Context, req *connect.Request[apiv1.DrainHostRequest]) (*connect.Response[apiv1.DrainHostResponse], error) {
	answer := new(apiv1.DrainHostResponse)
	check := func() (c orders.Change, err error) {
		answer, c, err = a.n.services.DrainHost(req.Msg)
		return c, err
	}
	if req.Msg.DryRun {
		return get(ctx, a.n, func() (*apiv1.DrainHostResponse, error) {
			_, err := check()
			return answer, err
		})
	}
	if err := a.n.orders.Do(ctx, check); err != nil {
		return nil, err
	}
	a.n.pushes.Await(ctx)
	return connect.NewResponse(answer), nil
}

// warned is after, for orders with lists of who may: names that nothing bears are named, since they may come yet, or were
// mistyped.
func (a *adminAPI) warned(ctx context.Context, access *apiv1.Access, says *apiv1.Event, err error) (*connect.Response[apiv1.Service], error) {
	answer, err := a.after(ctx, says, err)
	if err != nil {
		return nil, err
	}
	knows := func(service string) bool { _, err := a.n.names.Named(service); return err == nil }
	err = a.n.ask(context.WithoutCancel(ctx), func() {
		answer.Msg.Warnings = a.n.services.Nameless(access.GetServers(), access.GetAllow(), knows)
	})
	return answer, err
}
