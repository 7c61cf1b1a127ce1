package hostd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/host/history"
	"scaffold.dev/scaffold/internal/host/mobility"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// inLoop runs f in the loop, where the flows are.
func (l *local) inLoop(ctx context.Context, f func(s *mobility.Sessions) error) error {
	err := errLeaving
	var fault error
	ok := l.d.call(ctx, func() {
		s := l.d.sessions
		if !s.Ready() {
			fault = connect.NewError(connect.CodeUnavailable, errors.New("this host has not joined the network yet"))
			return
		}
		fault = f(s)
	})
	if ok {
		return fault
	}
	return err
}

func invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

func notFound(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}

// MoveFlows renegotiates flows over to another uplink.
func (l *local) MoveFlows(ctx context.Context, req *connect.Request[apiv1.MoveFlowsRequest]) (*connect.Response[apiv1.MoveFlowsResponse], error) {
	resp := &apiv1.MoveFlowsResponse{}
	l.meetService(ctx, req.Msg.Service)
	err := l.inLoop(ctx, func(s *mobility.Sessions) error {
		to := l.d.places.On(req.Msg.To)
		if l.d.uplinks.Named(req.Msg.To) == nil {
			return invalid("this host has no uplink %q; it has %s", req.Msg.To, strings.Join(l.d.cfg.Uplinks, ", "))
		}
		if to == nil || !to.Live() {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("uplink %q leads to no router now: see `scaffold host status`", req.Msg.To))
		}
		want, err := l.selection(req.Msg)
		if err != nil {
			return err
		}
		moved, failed := s.MoveFlows(to.Locator, want)
		resp.Moved, resp.Failed = uint32(moved), uint32(failed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(resp), nil
}

// selection says which flows a request means.
func (l *local) selection(r *apiv1.MoveFlowsRequest) (func(host.Flow) bool, error) {
	if r.Flow == "" && r.Service == "" && r.From == "" {
		return nil, invalid("which flows? Name a flow, a service or an interface")
	}
	id, ip, _ := history.ParseName(r.Flow)
	if r.Flow != "" && id == 0 {
		return nil, invalid("flow %q: want a socketID (16 hexadecimal digits) or a stable identifier", r.Flow)
	}
	var from sid.Locator
	if r.From != "" {
		p := l.d.places.On(r.From)
		if p == nil {
			return nil, invalid("no flow stands at %q: this host has the uplinks %s", r.From, strings.Join(l.d.cfg.Uplinks, ", "))
		}
		from = p.Locator
	}
	service := l.named(r.Service)
	return func(f host.Flow) bool {
		return (r.Flow == "" || f.ID == id || f.Stable == ip) && (r.From == "" || f.Locator == from) && service(f.Service)
	}, nil
}

// meetService asks for a name that no program of this host has asked for, so that named knows whose it is.
// Without an answer the name matches nothing, and the caller says so.
func (l *local) meetService(ctx context.Context, name string) {
	if name != "" && !strings.Contains(name, ":") {
		l.d.names.LookUp(ctx, strings.ToLower(name), &apiv1.ResolveRequest{Name: name}) //nolint:errcheck // the caller says what has no answer
	}
}

// named matches a service by its name, serviceID or address; "" matches all.
func (l *local) named(want string) func(sid.ServiceID) bool {
	space := l.d.names.Space()
	want = strings.TrimSuffix(want, "."+strings.TrimSuffix(l.d.names.Suffix(), "."))
	known := map[sid.ServiceID]bool{}
	return func(id sid.ServiceID) bool {
		if want == "" {
			return true
		}
		is, ok := known[id]
		if !ok {
			addr := space.ServiceAddr(id)
			is = want == id.String() || want == addr.String() || want == l.d.serving.Name(id) || want == l.d.names.Of(addr)
			known[id] = is
		}
		return is
	}
}

// FailFlows ends flows that this host serves: they fail over by the service's policy.
func (l *local) FailFlows(ctx context.Context, req *connect.Request[apiv1.FailFlowsRequest]) (*connect.Response[apiv1.FailFlowsResponse], error) {
	want, err := l.failing(req.Msg)
	if err != nil {
		return nil, err
	}
	resp := &apiv1.FailFlowsResponse{}
	l.meetService(ctx, req.Msg.Service)
	err = l.inLoop(ctx, func(s *mobility.Sessions) error {
		service := func(sid.ServiceID) bool { return true }
		if a, err := netip.ParseAddr(req.Msg.Service); err != nil || !a.IsUnspecified() {
			service = l.named(req.Msg.Service)
		}
		resp.Failed = uint32(s.Shed(wire.Draining, func(f host.Flow) bool { return want(f) && service(f.Service) }))
		s.Settle(time.Now()) // before the program goes on and closes
		return nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(resp), nil
}

// failing says which flows a request means but for the service.
func (l *local) failing(r *apiv1.FailFlowsRequest) (func(host.Flow) bool, error) {
	var proto sid.Proto
	var err error
	if r.Proto != "" {
		if proto, err = sid.ParseProto(r.Proto); err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, err)
		}
	}
	var local, peer netip.AddrPort
	if r.Local != "" || r.Peer != "" {
		if local, peer, err = parsePair(r.Local, r.Peer); err != nil {
			return nil, err
		}
	} else if r.Service == "" {
		return nil, invalid("which flows? Name a service, or both ends of one flow")
	}
	return func(f host.Flow) bool {
		return (proto == 0 || f.Proto == proto) && (r.Port == 0 || uint32(f.Local.Port()) == r.Port) &&
			(!peer.IsValid() || mobility.SameEnds(f, local, peer))
	}, nil
}

func parsePair(local, peer string) (a, b netip.AddrPort, err error) {
	if a, err = netip.ParseAddrPort(local); err == nil {
		b, err = netip.ParseAddrPort(peer)
	}
	if err != nil {
		return a, b, invalid("want an address and a port for each end, as the program sees them: %w", err)
	}
	return a, b, nil
}

// Identify tells a program what its connection is called, and how far it had come elsewhere.
func (l *local) Identify(ctx context.Context, req *connect.Request[apiv1.IdentifyRequest]) (*connect.Response[apiv1.FlowIdentity], error) {
	proto, err := sid.ParseProto(req.Msg.Proto)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	at, peer, err := parsePair(req.Msg.Local, req.Msg.Peer)
	if err != nil {
		return nil, err
	}
	resp := &apiv1.FlowIdentity{}
	err = l.inLoop(ctx, func(s *mobility.Sessions) error {
		f, ok := s.Seek(proto, at, peer)
		if !ok || !f.Stable.IsValid() {
			return notFound("no flow of host %s goes between %v and %v", l.d.cfg.Name, at, peer)
		}
		resp.Stable, resp.Service = f.Stable.String(), l.d.serviceName(f.Service)
		v, _ := s.View(session.Key{Stable: f.Stable, Role: mobility.RoleOf(f)})
		if v.Role == session.Server && v.Transport != (wire.Transport{}) {
			resp.Resumed, resp.Received, resp.Sent = true, v.Transport.Sent, v.Transport.Received
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(resp), nil
}

// serviceName is the name of a service, or its serviceID.
func (d *daemon) serviceName(id sid.ServiceID) string {
	if name := d.names.Of(d.names.Space().ServiceAddr(id)); name != "" && !d.serving.Knows(id) {
		return name
	}
	return d.serving.Name(id)
}

// GetFlowHistory tells what happened to one flow.
func (l *local) GetFlowHistory(ctx context.Context, req *connect.Request[apiv1.GetFlowHistoryRequest]) (*connect.Response[apiv1.FlowHistory], error) {
	var resp *apiv1.FlowHistory
	err := l.inLoop(ctx, func(s *mobility.Sessions) (err error) {
		resp, err = l.historyOf(s, req.Msg.Flow)
		return err
	})
	if err != nil {
		return nil, err
	}
	findProcesses([]*apiv1.Flow{resp.Flow}, l.sockets(ctx))
	return connect.NewResponse(resp), nil
}

// historyOf is what the loop knows of a flow.
func (l *local) historyOf(s *mobility.Sessions, flow string) (*apiv1.FlowHistory, error) {
	t, f, live := s.History(flow)
	if t == nil && !live {
		return nil, notFound("host %s knows no flow %q, live or of late", l.d.cfg.Name, flow)
	}
	resp := l.history(t, f, live)
	if t == nil {
		return resp, nil
	}
	if v, ok := s.View(t.Key); ok {
		resp.Flow.Moves = v.Epoch
	}
	return resp, nil
}

// history says what happened to a flow, and how it is where it lives; t is nil where nothing has happened to it.
func (l *local) history(t *history.Flow, f host.Flow, live bool) *apiv1.FlowHistory {
	resp := &apiv1.FlowHistory{Ended: !live}
	if live {
		resp.Flow = l.flow(f, l.d.serviceName(f.Service))
		resp.Flow.Uplink = l.d.places.UplinkAt(f.Uplink)
	} else {
		resp.Flow = &apiv1.Flow{Stable: t.Key.Stable.String(), Host: l.d.cfg.Name, Proto: t.Tuple.Proto.String(),
			Local: t.Tuple.Local.String(), Peer: t.Tuple.Remote.String(), Service: l.d.serviceName(t.Service)}
	}
	if t == nil {
		resp.Events = []*apiv1.FlowEvent{{UnixNs: history.Began(f).UnixNano(), Kind: "begin", Text: history.Beginning(f) + "; nothing happened to it yet"}}
		return resp
	}
	for _, c := range t.Events {
		resp.Events = append(resp.Events, &apiv1.FlowEvent{UnixNs: c.At.UnixNano(), Kind: c.Kind, Text: c.Text, StallNs: int64(c.Stall)})
	}
	return resp
}
