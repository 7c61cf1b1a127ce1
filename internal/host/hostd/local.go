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
	"scaffold.dev/scaffold/internal/host/places"
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
	if !l.d.call(ctx, func() { l.status(s); edge = l.d.edge }) {
		return nil, errLeaving
	}
	if edge != nil {
		n, _ := edge.Count() // beside the loop: there may be many
		s.Flows = uint32(n)
	}
	return connect.NewResponse(s), nil
}

// status fills in what the loop knows.
func (l *local) status(s *apiv1.HostStatus) {
	joined, reached, endpoint, trouble := l.d.control.state()
	s.Controller = plainZone(endpoint)
	s.State, s.Reason = "joined", ""
	switch {
	case joined && l.d.control.Connected():
	case !l.d.uplinks.Lead():
		s.State = "waiting for a router"
		s.Reason = l.d.uplinks.Trouble()
	case reached || l.d.places.Home() != nil && trouble != "":
		s.State, s.Reason = "controller unreachable", trouble
	default:
		s.State, s.Reason = "joining", trouble
	}
	s.Permits = l.d.permits.List()
	for _, g := range l.d.serving.List() {
		if g.Refused {
			s.Refused = append(s.Refused, g)
		}
	}
	for _, u := range l.d.uplinks.All() {
		up := &apiv1.Uplink{Interface: u.Name, Router: u.Hello.Name, Up: u.Up, Mtu: uint32(u.MTU)}
		if u.Tunnel != nil {
			up.Tunnel = u.Tunnel.Describe()
		}
		if p := l.d.places.On(u.Name); p != nil {
			up.Locator = p.Locator.String()
		}
		s.Uplinks = append(s.Uplinks, up)
	}
	if m, _ := l.d.credentials.Member(); m != nil {
		s.CredentialUntilUnix = m.Until().Unix()
	}
	if l.d.places.Home() != nil {
		s.Trust = "open"
		if l.d.places.Home().NetworkKey != nil {
			s.Trust = "keys"
		}
		s.Network, s.Domain = l.d.places.Home().Network, l.d.places.Home().Domain
		s.Identity = l.d.places.Home().Space.Identity(l.d.identity).String()
	}
	if l.d.edge != nil {
		s.Counters, _ = l.d.countAll()
		u, _ := l.d.edge.Usage()
		s.KernelBytes, s.MaxFlows = u.Bytes, u.MaxFlows
	}
}

// ListRegistrations tells what this host serves and whether it is ready.
func (l *local) ListRegistrations(ctx context.Context, _ *connect.Request[apiv1.ListRegistrationsRequest]) (*connect.Response[apiv1.ListRegistrationsResponse], error) {
	resp := &apiv1.ListRegistrationsResponse{}
	if !l.d.call(ctx, func() { resp.Registrations = l.d.serving.List() }) {
		return nil, errLeaving
	}
	return connect.NewResponse(resp), nil
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
			resp.Flows = append(resp.Flows, known.of(f, l.flow(f, service)))
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
	var names map[sid.ServiceID]string
	ok := l.d.call(ctx, func() {
		edge = l.d.edge
		names = l.d.serving.Names()
	})
	if !ok {
		return errLeaving
	}
	if edge == nil {
		return nil
	}
	space := l.d.names.Space()
	return edge.Flows(func(fl host.Flow) bool {
		name, ok := names[fl.Service]
		if !ok {
			name = cmp.Or(l.d.names.Of(space.ServiceAddr(fl.Service)), fl.Service.String())
			names[fl.Service] = name
		}
		return f(fl, name)
	})
}

func (l *local) flow(f host.Flow, service string) *apiv1.Flow {
	return &apiv1.Flow{
		Id: f.ID.String(), Role: f.Role.String(), Proto: f.Proto.String(), State: f.State.String(), Service: service, Host: l.d.cfg.Name,
		Local: f.Local.String(), Peer: f.Peer.String(), WireLocal: f.WireLocal.String(), WirePeer: f.WirePeer.String(),
		IdleMs: host.IdleMS(f.LastSeen), Stable: stableOf(f), Guest: l.d.guests.NameOf(f.Tuple.Guest),
	}
}

func stableOf(f host.Flow) string {
	if !f.Stable.IsValid() {
		return ""
	}
	return f.Stable.String()
}

// Who tells whose an address from a log is, where this host is one of the ends.
func (l *local) Who(ctx context.Context, req *connect.Request[apiv1.WhoRequest]) (*connect.Response[apiv1.Flow], error) {
	want, port, err := parseWho(req.Msg.Address)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var mine bool
	if !l.d.call(ctx, func() { mine = l.isHost(want) }) {
		return nil, errLeaving
	}
	if mine {
		return connect.NewResponse(&apiv1.Flow{Host: l.d.cfg.Name, Process: "the host itself", Local: want.String()}), nil
	}
	var found *apiv1.Flow
	err = l.flows(ctx, func(f host.Flow, service string) bool {
		// The frozen address that a server logs ends in the client's first socketID.
		if f.WireLocal.Addr() == want && (port == 0 || f.Local.Port() == port) {
			found = l.flow(f, service)
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
func (l *local) isHost(a netip.Addr) bool {
	if l.d.places.Home() == nil {
		return false
	}
	at := slices.IndexFunc(l.d.places.All(), func(p places.Place) bool { return p.Locator.Host() == a })
	return at >= 0 || a == l.d.places.Home().Space.Identity(l.d.identity)
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
