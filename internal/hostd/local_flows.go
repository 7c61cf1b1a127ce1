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
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// inLoop runs f in the loop, where the flows are.
func (l *local) inLoop(ctx context.Context, f func(s *sessions) error) error {
	err := errLeaving
	var fault error
	ok := l.d.call(ctx, func() {
		s, _ := l.d.sessions.(*sessions)
		if s == nil || s.engine == nil {
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
	l.d.meetService(ctx, req.Msg.Service)
	err := l.inLoop(ctx, func(s *sessions) error {
		to := l.d.placeOn(req.Msg.To)
		if l.d.uplink(req.Msg.To) == nil {
			return invalid("this host has no uplink %q; it has %s", req.Msg.To, strings.Join(l.d.cfg.Uplinks, ", "))
		}
		if to == nil || !to.live() {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("uplink %q leads to no router now: see `scaffold host status`", req.Msg.To))
		}
		want, err := l.d.selection(req.Msg)
		if err != nil {
			return err
		}
		moved, failed := s.moveFlows(to.Locator, want)
		resp.Moved, resp.Failed = uint32(moved), uint32(failed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(resp), nil
}

// selection says which flows a request means.
func (d *daemon) selection(r *apiv1.MoveFlowsRequest) (func(host.Flow) bool, error) {
	if r.Flow == "" && r.Service == "" && r.From == "" {
		return nil, invalid("which flows? Name a flow, a service or an interface")
	}
	id, ip, _ := parseName(r.Flow)
	if r.Flow != "" && id == 0 {
		return nil, invalid("flow %q: want a socketID (16 hexadecimal digits) or a stable identifier", r.Flow)
	}
	var from sid.Locator
	if r.From != "" {
		p := d.placeOn(r.From)
		if p == nil {
			return nil, invalid("no flow stands at %q: this host has the uplinks %s", r.From, strings.Join(d.cfg.Uplinks, ", "))
		}
		from = p.Locator
	}
	service := d.named(r.Service)
	return func(f host.Flow) bool {
		return (r.Flow == "" || f.ID == id || f.Stable == ip) && (r.From == "" || f.Locator == from) && service(f.Service)
	}, nil
}

// meetService asks for a name that no program of this host has asked for, so that named knows whose it is.
// Without an answer the name matches nothing, and the caller says so.
func (d *daemon) meetService(ctx context.Context, name string) {
	if name != "" && !strings.Contains(name, ":") {
		d.names.lookup(ctx, strings.ToLower(name), &apiv1.ResolveRequest{Name: name})
	}
}

// named matches a service by its name, serviceID or address; "" matches all.
func (d *daemon) named(want string) func(sid.ServiceID) bool {
	space := d.names.space()
	known := map[sid.ServiceID]bool{}
	return func(id sid.ServiceID) bool {
		if want == "" {
			return true
		}
		is, ok := known[id]
		if !ok {
			addr := space.ServiceAddr(id)
			is = want == id.String() || want == addr.String() || want == d.serving.name(id) || want == d.names.of(addr)
			known[id] = is
		}
		return is
	}
}

// FailFlows ends flows that this host serves: they fail over by the service's policy.
func (l *local) FailFlows(ctx context.Context, req *connect.Request[apiv1.FailFlowsRequest]) (*connect.Response[apiv1.FailFlowsResponse], error) {
	want, err := l.d.failing(req.Msg)
	if err != nil {
		return nil, err
	}
	resp := &apiv1.FailFlowsResponse{}
	l.d.meetService(ctx, req.Msg.Service)
	err = l.inLoop(ctx, func(s *sessions) error {
		service := func(sid.ServiceID) bool { return true }
		if a, err := netip.ParseAddr(req.Msg.Service); err != nil || !a.IsUnspecified() {
			service = l.d.named(req.Msg.Service)
		}
		resp.Failed = uint32(s.shed(wire.Draining, func(f host.Flow) bool { return want(f) && service(f.Service) }))
		s.settle(time.Now()) // before the program goes on and closes
		return nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(resp), nil
}

// failing says which flows a request means but for the service.
func (d *daemon) failing(r *apiv1.FailFlowsRequest) (func(host.Flow) bool, error) {
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
			(!peer.IsValid() || sameEnds(f, local, peer))
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

// sameEnds reports whether a flow is the one that a program sees between the two addresses. A datagram
// socket may be bound to no address, and answer from another port.
func sameEnds(f host.Flow, local, peer netip.AddrPort) bool {
	if f.Proto != sid.TCP {
		remote := f.Peer == peer || f.Peer.Port() == 0 && f.Peer.Addr() == peer.Addr()
		return remote && (local.Addr().IsUnspecified() || f.Local.Addr() == local.Addr()) &&
			(f.Role == host.Server || f.Local.Port() == local.Port())
	}
	return f.Local == local && f.Peer == peer
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
	err = l.inLoop(ctx, func(s *sessions) error {
		f, ok := s.seek(proto, at, peer)
		if !ok || !f.Stable.IsValid() {
			return notFound("no flow of host %s goes between %v and %v", l.d.cfg.Name, at, peer)
		}
		resp.Stable, resp.Service = f.Stable.String(), l.d.serviceName(f.Service)
		v, _ := s.engine.View(session.Key{Stable: f.Stable, Role: roleOf(f)})
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
	if name := d.names.of(d.names.space().ServiceAddr(id)); name != "" && d.serving.policies[id] == nil {
		return name
	}
	return d.serving.name(id)
}

// seek finds a flow by what a program sees; of a datagram socket that may take a look at all.
func (s *sessions) seek(p sid.Proto, local, peer netip.AddrPort) (found host.Flow, ok bool) {
	if f, ok, err := s.edge.Lookup(host.Tuple{Local: local, Remote: peer, Proto: p}); err == nil && ok {
		return f, true
	}
	s.edge.Walk(func(f host.Flow) bool { //nolint:errcheck // not found, then
		if f.Proto == p && sameEnds(f, local, peer) {
			found, ok = f, true
		}
		return !ok
	})
	return found, ok
}

// Biography tells what happened to one flow.
func (l *local) Biography(ctx context.Context, req *connect.Request[apiv1.BiographyRequest]) (*connect.Response[apiv1.FlowStory], error) {
	resp := &apiv1.FlowStory{}
	err := l.inLoop(ctx, func(s *sessions) error {
		t := s.stories.find(req.Msg.Flow)
		f, live := s.flowOf(t, req.Msg.Flow)
		if t == nil && !live {
			return notFound("host %s knows no flow %q, live or of late", l.d.cfg.Name, req.Msg.Flow)
		}
		if live {
			resp.Flow = l.d.flow(f, l.d.serviceName(f.Service))
		} else {
			resp.Flow = &apiv1.Flow{Stable: t.key.Stable.String(), Host: l.d.cfg.Name, Proto: t.tuple.Proto.String(),
				Local: t.tuple.Local.String(), Peer: t.tuple.Remote.String(), Service: l.d.serviceName(t.service)}
		}
		resp.Ended = !live
		s.fill(resp, t, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	findProcesses([]*apiv1.Flow{resp.Flow}, l.sockets(ctx))
	return connect.NewResponse(resp), nil
}

// flowOf is the live flow of a story, or of what people call it where nothing has happened to it yet.
func (s *sessions) flowOf(t *story, want string) (f host.Flow, live bool) {
	if t != nil {
		f, live, _ = s.edge.Lookup(t.tuple)
		return f, live && f.Stable == t.key.Stable
	}
	id, ip, at := parseName(want)
	s.edge.Walk(func(x host.Flow) bool { //nolint:errcheck // not found, then
		if id != 0 && x.ID == id || ip.IsValid() && x.Stable == ip || at.IsValid() && (x.Local == at || x.Peer == at) {
			f, live = x, true
		}
		return !live
	})
	return f, live
}

// fill adds the chapters.
func (s *sessions) fill(resp *apiv1.FlowStory, t *story, f host.Flow) {
	if t == nil {
		resp.Chapters = []*apiv1.Chapter{{UnixNs: began(f).UnixNano(), Kind: "begin", Text: beginning(f) + "; nothing happened to it yet"}}
		return
	}
	if v, ok := s.engine.View(t.key); ok {
		resp.Flow.Moves = v.Epoch
	}
	for _, c := range t.chapters {
		resp.Chapters = append(resp.Chapters, &apiv1.Chapter{UnixNs: c.at.UnixNano(), Kind: c.kind, Text: c.text, StallNs: int64(c.stall)})
	}
}
