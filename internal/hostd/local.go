package hostd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// local is the host's own API. Its methods run in goroutines of the HTTP server and ask the loop.
type local struct {
	apiv1connect.UnimplementedLocalHandler // of what this version does not know
	d                                      *daemon
}

var errLeaving = connect.NewError(connect.CodeUnavailable, errors.New("this host is leaving the network"))

// GetHostStatus tells how the host stands.
func (l *local) GetHostStatus(ctx context.Context, _ *connect.Request[apiv1.GetHostStatusRequest]) (*connect.Response[apiv1.HostStatus], error) {
	s := &apiv1.HostStatus{Name: l.d.cfg.Name, Features: l.d.features}
	var edge *host.Edge
	if !l.d.call(ctx, func() { l.d.status(s); edge = l.d.edge }) {
		return nil, errLeaving
	}
	if edge != nil {
		n, _ := edge.Count() // beside the loop: there may be many
		s.Flows = uint32(n)
	}
	return connect.NewResponse(s), nil
}

// status fills in what the loop knows.
func (d *daemon) status(s *apiv1.HostStatus) {
	joined, reached, endpoint, trouble := d.control.state()
	s.Controller = endpoint
	s.State, s.Reason = "joined", ""
	switch {
	case joined && d.control.out != nil:
	case d.active() == nil:
		s.State = "waiting for a router"
		s.Reason = d.trouble()
	case reached || d.home != nil && trouble != "":
		s.State, s.Reason = "controller unreachable", trouble
	default:
		s.State, s.Reason = "joining", trouble
	}
	s.Permits = d.permits.list()
	for _, g := range d.serving.list() {
		if g.Refused {
			s.Refused = append(s.Refused, g)
		}
	}
	for _, u := range d.uplinks {
		up := &apiv1.Uplink{Interface: u.name, Router: u.hello.Name, Up: u.up, Mtu: uint32(u.mtu)}
		if u.tunnel != nil {
			up.Tunnel = u.tunnel.describe()
		}
		if p := d.placeOn(u.name); p != nil {
			up.Locator = p.Locator.String()
		}
		s.Uplinks = append(s.Uplinks, up)
	}
	if m, _ := d.credentials.Member(); m != nil {
		s.CredentialUntilUnix = m.Until().Unix()
	}
	if d.home != nil {
		s.Trust = "open"
		if d.home.NetworkKey != nil {
			s.Trust = "keys"
		}
		s.Network, s.Domain = d.home.Network, d.home.Domain
		s.Identity = d.home.Space.Identity(d.identity).String()
	}
	if d.edge != nil {
		s.Counters, _ = d.countAll()
		u, _ := d.edge.Usage()
		s.KernelBytes, s.MaxFlows = u.Bytes, u.MaxFlows
	}
}

// ListRegistrations tells what this host serves and whether it is ready.
func (l *local) ListRegistrations(ctx context.Context, _ *connect.Request[apiv1.ListRegistrationsRequest]) (*connect.Response[apiv1.ListRegistrationsResponse], error) {
	resp := &apiv1.ListRegistrationsResponse{}
	if !l.d.call(ctx, func() { resp.Registrations = l.d.serving.list() }) {
		return nil, errLeaving
	}
	return connect.NewResponse(resp), nil
}

func (r *registry) list() (all []*apiv1.LocalRegistration) {
	for t, i := range r.instances {
		reason := i.verdict(r.known(t)).reason
		g := &apiv1.LocalRegistration{
			Service: r.name(t.Service), Proto: t.Proto.String(), Port: uint32(t.Port), Ready: reason == "", Reason: reason,
			Sockets: uint32(r.sockets.Count(t)), AcceptQueue: i.waiting, Refused: i.refused != "",
		}
		r.sockets.Cookies(t, func(_ uint64, o serving.Owner) {
			if o.PID != 0 && !slices.Contains(g.Pids, o.PID) {
				g.Pids = append(g.Pids, o.PID)
			}
		})
		slices.Sort(g.Pids)
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *apiv1.LocalRegistration) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
	})
	return all
}

// ListFlows tells the live flows with the processes at this end.
func (l *local) ListFlows(ctx context.Context, req *connect.Request[apiv1.ListFlowsRequest]) (*connect.Response[apiv1.ListFlowsResponse], error) {
	resp := &apiv1.ListFlowsResponse{}
	limit, known := int(req.Msg.Limit), l.travels(ctx)
	err := l.flows(ctx, func(f host.Flow, service string) bool {
		want := req.Msg.Service
		if want != "" && want != service && want != f.Service.String() {
			return true
		}
		resp.Total++
		if limit == 0 || len(resp.Flows) < limit {
			resp.Flows = append(resp.Flows, known.of(f, l.d.flow(f, service)))
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	findProcesses(resp.Flows, l.sockets(ctx))
	return connect.NewResponse(resp), nil
}

// flows visits the edge's flows with the names of their services.
func (l *local) flows(ctx context.Context, f func(host.Flow, string) bool) error {
	var edge *host.Edge
	names := map[sid.ServiceID]string{}
	ok := l.d.call(ctx, func() {
		edge = l.d.edge
		for id := range l.d.serving.policies {
			names[id] = l.d.serving.name(id)
		}
	})
	if !ok {
		return errLeaving
	}
	if edge == nil {
		return nil
	}
	space := l.d.names.space()
	return edge.Flows(func(fl host.Flow) bool {
		name, ok := names[fl.Service]
		if !ok {
			name = cmp.Or(l.d.names.of(space.ServiceAddr(fl.Service)), fl.Service.String())
			names[fl.Service] = name
		}
		return f(fl, name)
	})
}

func (d *daemon) flow(f host.Flow, service string) *apiv1.Flow {
	return &apiv1.Flow{
		Id: f.ID.String(), Role: f.Role.String(), Proto: f.Proto.String(), State: f.State.String(), Service: service, Host: d.cfg.Name,
		Local: f.Local.String(), Peer: f.Peer.String(), WireLocal: f.WireLocal.String(), WirePeer: f.WirePeer.String(),
		IdleMs: idleMS(f.LastSeen), Stable: stableOf(f), Guest: d.guests.name(f.Tuple.Guest),
	}
}

func stableOf(f host.Flow) string {
	if !f.Stable.IsValid() {
		return ""
	}
	return f.Stable.String()
}

// of finds the name of an address among the answers that programs of this host got.
func (n *names) of(addr netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.known {
		if a.Address == addr && !a.Missing {
			return a.Name
		}
	}
	return ""
}

// Who tells whose an address from a log is, where this host is one of the ends.
func (l *local) Who(ctx context.Context, req *connect.Request[apiv1.WhoRequest]) (*connect.Response[apiv1.Flow], error) {
	want, port, err := parseWho(req.Msg.Address)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var mine bool
	if !l.d.call(ctx, func() { mine = l.d.isHost(want) }) {
		return nil, errLeaving
	}
	if mine {
		return connect.NewResponse(&apiv1.Flow{Host: l.d.cfg.Name, Process: "the host itself", Local: want.String()}), nil
	}
	var found *apiv1.Flow
	err = l.flows(ctx, func(f host.Flow, service string) bool {
		// The frozen address that a server logs ends in the client's first socketID.
		if f.WireLocal.Addr() == want && (port == 0 || f.Local.Port() == port) {
			found = l.d.flow(f, service)
		}
		return found == nil
	})
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("%v is no live flow's end on host %s", want, l.d.cfg.Name))
	}
	findProcesses([]*apiv1.Flow{found}, l.sockets(ctx))
	return connect.NewResponse(found), nil
}

// isHost reports whether the address is the host's own, at one of its places.
func (d *daemon) isHost(a netip.Addr) bool {
	if d.home == nil {
		return false
	}
	at := slices.IndexFunc(d.places, func(p place) bool { return p.Locator.Host() == a })
	return at >= 0 || a == d.home.Space.Identity(d.identity)
}

func parseWho(s string) (netip.Addr, uint16, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr(), ap.Port(), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, 0, fmt.Errorf("address %q: want an IPv6 address, or [address]:port", s)
	}
	return a, 0, nil
}
