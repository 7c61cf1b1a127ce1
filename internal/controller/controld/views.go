package controld

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/places"
	"scaffold.dev/scaffold/internal/controller/controld/services"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/sid"
)

// GetStatus is the network at a glance.
func (a *adminAPI) GetStatus(ctx context.Context, _ *connect.Request[apiv1.GetStatusRequest]) (*connect.Response[apiv1.Status], error) {
	return get(ctx, a.n, func() (*apiv1.Status, error) {
		n := a.n
		services, instances := n.plan.Count()
		s := &apiv1.Status{
			Network: n.cfg.Network, Version: obs.Version(), Space: n.space(), Domain: n.cfg.Domain, Trust: n.cfg.Trust,
			Generation: n.pushes.Generation(), Hosts: uint32(n.present()), Routers: uint32(n.routers.Connected()),
			Services: uint32(services), Instances: uint32(instances), Leader: n.cfg.Name, StartedUnixMs: n.started.UnixMilli(),
			Speaks: ownVersions(), Schema: versions.Schema().To, StoreState: n.storeState(),
			Settling: n.grace.Settling(),
		}
		s.Store = s.StoreState.Trouble
		s.Epoch = n.epoch
		if n.restored != nil {
			s.Restored, s.UnknownServices = n.restored.Made, uint32(len(n.unknown))
		}
		if n.process.store.Elected() {
			s.Controllers = n.process.Peers.List(nil, n.controllers.Known())
		}
		return s, nil
	})
}

// present is how many hosts are here.
func (n *network) present() (count int) {
	for _, h := range n.hosts {
		if h.Here {
			count++
		}
	}
	return count
}

// ListServices lists services by name, with their instances.
func (a *adminAPI) ListServices(ctx context.Context, _ *connect.Request[apiv1.ListServicesRequest]) (*connect.Response[apiv1.ListServicesResponse], error) {
	return get(ctx, a.n, func() (*apiv1.ListServicesResponse, error) {
		list := new(apiv1.ListServicesResponse)
		for _, r := range a.n.names.All() {
			list.Services = append(list.Services, a.n.explain.Shown(r))
		}
		return list, nil
	})
}

// GetService shows one service.
func (a *adminAPI) GetService(ctx context.Context, req *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	return get(ctx, a.n, func() (*apiv1.Service, error) {
		r, err := a.n.services.Lookup(req.Msg.Name)
		if err != nil {
			return nil, err
		}
		return a.n.explain.Shown(r), nil
	})
}

func (h *host) loadOf(t sid.Triple) (flows, acceptQueue uint32) { return loadOf(h.load, t) }

func loadOf(load *apiv1.Load, t sid.Triple) (flows, acceptQueue uint32) {
	for _, l := range load.GetTriples() {
		if l.Ss == t.Service.SS && sid.Suffix(l.Suffix) == t.Service.Suffix && sid.Proto(l.Proto) == t.Proto && l.Port == uint32(t.Port) {
			return l.Flows, l.AcceptQueue
		}
	}
	return 0, 0
}

// ListHosts lists hosts by name: those that are here, and those that failed.
func (a *adminAPI) ListHosts(ctx context.Context, _ *connect.Request[apiv1.ListHostsRequest]) (*connect.Response[apiv1.ListHostsResponse], error) {
	return get(ctx, a.n, func() (*apiv1.ListHostsResponse, error) {
		list := &apiv1.ListHostsResponse{Trust: a.n.cfg.Trust}
		for _, name := range slices.Sorted(maps.Keys(a.n.hosts)) {
			if h := a.n.hosts[name]; h.Here || h.failed {
				list.Hosts = append(list.Hosts, a.host(h))
			}
		}
		return list, nil
	})
}

// GetHost shows one host with its instances.
func (a *adminAPI) GetHost(ctx context.Context, req *connect.Request[apiv1.GetHostRequest]) (*connect.Response[apiv1.Host], error) {
	return get(ctx, a.n, func() (*apiv1.Host, error) {
		h, ok := a.n.hosts[req.Msg.Name]
		if !ok || !h.Here && !h.failed {
			return nil, services.NoHost(req.Msg.Name)
		}
		m := a.host(h)
		if h.Here {
			m.Instances = a.n.explain.Instances(a.n.plan.InstancesAt(h.Name))
		}
		return m, nil
	})
}

// host is one as people are shown it.
func (a *adminAPI) host(h *host) *apiv1.Host {
	n := a.n
	m := &apiv1.Host{
		Name: h.Name, Locator: h.Locator.String(), Identity: n.cfg.Space.Identity(h.Identity).String(),
		Router: h.Router, Port: h.Port, State: n.places.Text(&h.Host), Version: h.version, Protocol: h.protocol,
		Flows: h.load.GetFlows(), Cpu: h.load.GetCpu(), Key: h.Key,
	}
	if len(m.Key) == 0 {
		m.Key = n.registrations.Shown(h.Name)
	}
	for _, p := range h.All() {
		if h.Here {
			m.Places = append(m.Places, &apiv1.HostPlace{Locator: p.Locator.String(), Router: p.Router, Port: p.Port})
		}
	}
	if !h.joined.IsZero() {
		m.JoinedUnixMs = h.joined.UnixMilli()
	}
	return m
}

// ListRouters lists routers by name.
func (a *adminAPI) ListRouters(ctx context.Context, _ *connect.Request[apiv1.ListRoutersRequest]) (*connect.Response[apiv1.ListRoutersResponse], error) {
	return get(ctx, a.n, func() (*apiv1.ListRoutersResponse, error) {
		list := &apiv1.ListRoutersResponse{Trust: a.n.cfg.Trust}
		for _, name := range a.n.routers.Names() {
			list.Routers = append(list.Routers, a.router(name))
		}
		return list, nil
	})
}

// router is one as people are shown it.
func (a *adminAPI) router(name string) *apiv1.Router {
	r, _ := a.n.routers.Of(name)
	block, _ := a.n.routers.Block(name)
	rules := a.n.pushes.Of(name)
	m := &apiv1.Router{
		Name: name, Locator: block.String(), Block: plan.Router{Locator: block}.Block().String(), Service: r.Service, State: "gone",
		Links: a.linksOf(name), Generation: rules.Applied, Current: rules.Synced && rules.Applied >= rules.Told,
		Resolved: r.Counters.GetCounters()["resolved"], Refused: refusals(r.Counters.GetCounters()),
		TableBytes: r.Counters.GetTableBytes(), TableInstances: r.Counters.GetInstances(),
		Version: r.Version, Protocol: r.Protocol,
	}
	if r.Here {
		m.State = "up"
	}
	return m
}

// refusals adds up the router's counters of them, one for each reason.
func refusals(counters map[string]uint64) (sum uint64) {
	for name, count := range counters {
		if strings.HasPrefix(name, "refused") {
			sum += count
		}
	}
	return sum
}

// linksOf are those to other routers as they are reported, and the hosts.
func (a *adminAPI) linksOf(router string) []*apiv1.Link {
	list := a.n.links.Of(router)
	a.n.places.Each(func(at places.Attachment) {
		if at.Router == router {
			list = append(list, &apiv1.Link{Port: at.Port, Peer: at.Host, Up: at.State == plan.HostUp, Cost: 1, Host: true})
		}
	})
	slices.SortFunc(list, func(a, b *apiv1.Link) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Peer, b.Peer))
	})
	return list
}

// WatchEvents sends the last events and, if asked, those that follow.
func (a *adminAPI) WatchEvents(ctx context.Context, req *connect.Request[apiv1.WatchEventsRequest], stream *connect.ServerStream[apiv1.Event]) error {
	wants := events.Wanted(req.Msg)
	s := events.NewWatcher(ctx, wants)
	defer s.End(nil)
	var past []*apiv1.Event
	err := a.n.ask(ctx, func() {
		past = a.n.events.Last(int(min(req.Msg.History, 2*events.Remembered)), wants)
		if req.Msg.Follow {
			a.n.events.Follow(s)
		}
	})
	if err != nil {
		return err
	}
	for _, e := range past {
		if err := stream.Send(e); err != nil {
			return err
		}
	}
	if !req.Msg.Follow {
		return nil
	}
	defer a.n.loop.Post(func() { a.n.events.Leave(s) })
	defer session.HangUpAfter(s.Context())()
	return streamError(s.Write(stream.Send))
}
