package controld

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/internal/versions"
	"scaffold.dev/scaffold/sid"
)

// GetStatus is the network at a glance.
func (a *adminAPI) GetStatus(ctx context.Context, _ *connect.Request[apiv1.GetStatusRequest]) (*connect.Response[apiv1.Status], error) {
	return get(ctx, a.n, func() (*apiv1.Status, error) {
		n := a.n
		services, instances := n.plan.Count()
		s := &apiv1.Status{
			Network: n.cfg.Network, Version: obs.Version(), Space: n.space(), Domain: n.cfg.Domain, Trust: n.cfg.Trust,
			Generation: n.generation, Hosts: uint32(n.present()), Routers: uint32(n.connectedRouters()),
			Services: uint32(services), Instances: uint32(instances), Leader: n.cfg.Name, StartedUnixMs: n.started.UnixMilli(),
			Speaks: ownVersions(), Schema: versions.Schema().To,
		}
		if n.notSaved != nil {
			s.Store = n.notSaved.Error()
		}
		s.Epoch = n.epoch
		if n.restored != nil {
			s.Restored, s.UnknownServices = n.restored.Made, uint32(len(n.unknown))
		}
		if n.seat.store.Elected() {
			s.Controllers = n.seat.list(nil, n.controllers)
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
			list.Services = append(list.Services, a.n.service(r))
		}
		return list, nil
	})
}

// GetService shows one service.
func (a *adminAPI) GetService(ctx context.Context, req *connect.Request[apiv1.GetServiceRequest]) (*connect.Response[apiv1.Service], error) {
	return get(ctx, a.n, func() (*apiv1.Service, error) {
		r, err := a.n.lookup(req.Msg.Name)
		if err != nil {
			return nil, err
		}
		return a.n.service(r), nil
	})
}

func (n *network) service(r names.Record) *apiv1.Service {
	return &apiv1.Service{
		Name: r.Name, Sid: r.ID.String(), Address: n.cfg.Space.ServiceAddr(r.ID).String(),
		Policy: apiPolicy(r.Policy), CreatedUnixMs: r.Created, Instances: n.instances(n.plan.Instances(r.ID)),
		Access: apiAccess(r.Access), Owner: r.Owner(),
	}
}

func (n *network) instances(list []plan.Instance) []*apiv1.Instance {
	out := make([]*apiv1.Instance, 0, len(list))
	for _, i := range list {
		m := &apiv1.Instance{
			Host: i.Host, Locator: i.Locator.String(), Proto: i.Triple.Proto.String(), Port: uint32(i.Triple.Port),
			Weight: i.Weight, Effective: i.Effective, State: i.State, Reason: i.Reason,
		}
		if h := n.hosts[i.Host]; h != nil {
			m.SinceUnixMs = h.wanted[i.Triple].since.UnixMilli()
			m.Flows, m.AcceptQueue = h.loadOf(i.Triple)
			if i.State == "draining" {
				m.Reason += fmt.Sprintf(" (%s), %d flows left", n.drainMode(h, i.Triple.Service), m.Flows)
			}
		}
		out = append(out, m)
	}
	return out
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
				list.Hosts = append(list.Hosts, a.n.host(h))
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
			return nil, fmt.Errorf("host %.80q: %w: scaffold host ls shows those that joined", req.Msg.Name, errNoHost)
		}
		m := a.n.host(h)
		if h.Here {
			m.Instances = a.n.instances(a.n.plan.InstancesAt(h.Name))
		}
		return m, nil
	})
}

func (n *network) host(h *host) *apiv1.Host {
	m := &apiv1.Host{
		Name: h.Name, Locator: h.Locator.String(), Identity: n.cfg.Space.Identity(h.Identity).String(),
		Router: h.Router, Port: h.Port, State: n.stateText(h), Version: h.version, Protocol: h.protocol,
		Flows: h.load.GetFlows(), Cpu: h.load.GetCpu(), Key: h.publicKey(),
	}
	for _, p := range h.all() {
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
		for _, name := range slices.Sorted(maps.Keys(a.n.routers)) {
			list.Routers = append(list.Routers, a.n.router(a.n.routers[name]))
		}
		return list, nil
	})
}

func (n *network) router(r *router) *apiv1.Router {
	p := n.planRouter(r.Router)
	m := &apiv1.Router{
		Name: r.Name, Locator: p.Locator.String(), Block: p.Block().String(), Service: r.Service, State: "gone",
		Links: n.links(r), Generation: r.applied,
		Resolved: r.counters.GetCounters()["resolved"], Refused: refusals(r.counters.GetCounters()),
		TableBytes: r.counters.GetTableBytes(), TableInstances: r.counters.GetInstances(),
		Version: r.version, Protocol: r.protocol,
	}
	if r.session != nil {
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

// links are those to other routers as they are reported, and the hosts.
func (n *network) links(r *router) []*apiv1.Link {
	var list []*apiv1.Link
	for _, l := range r.links {
		list = append(list, &apiv1.Link{Port: l.Port, Peer: l.Peer, PeerPort: l.PeerPort, Up: l.Up, Cost: l.Cost, Via: l.Via, Reason: l.Reason})
	}
	for _, at := range n.places {
		if at.Router == r.Name {
			list = append(list, &apiv1.Link{Port: at.Port, Peer: at.host.Name, Up: at.state == plan.HostUp, Cost: 1, Host: true})
		}
	}
	slices.SortFunc(list, func(a, b *apiv1.Link) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Peer, b.Peer))
	})
	return list
}

// WatchEvents sends the last events and, if asked, those that follow.
func (a *adminAPI) WatchEvents(ctx context.Context, req *connect.Request[apiv1.WatchEventsRequest], stream *connect.ServerStream[apiv1.Event]) error {
	s := newSession[apiv1.Event](ctx, watcherQueue)
	defer s.end(nil)
	var past []*apiv1.Event
	err := a.n.ask(ctx, func() {
		past = a.n.events.last(int(min(req.Msg.History, remembered)))
		if req.Msg.Follow {
			a.n.events.watchers[s] = struct{}{}
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
	defer a.n.loop.post(func() { delete(a.n.events.watchers, s) })
	defer hangUpAfter(s.ctx)()
	return streamError(s.write(stream.Send))
}
