package hostd

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A server is a program that holds Local.Serve.
type server struct {
	match     func(sid.Triple) bool
	canResume bool
	notices   chan string
}

// Serve holds as long as the call is open: this host says that the program can resume, and tells it of
// drains.
func (l *local) Serve(ctx context.Context, req *connect.Request[apiv1.ServeRequest], stream *connect.ServerStream[apiv1.ServeNotice]) error {
	proto, err := sid.ParseProto(req.Msg.Proto)
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	x := &server{canResume: req.Msg.CanResume, notices: make(chan string, 16)}
	err = l.inLoop(ctx, func(s *sessions) error {
		x.match = l.d.triples(req.Msg.Service, proto, uint16(req.Msg.Port))
		s.servers = append(s.servers, x)
		s.servingChanged()
		return nil
	})
	if err != nil {
		return err
	}
	defer l.d.post(func() { l.d.sessions.(*sessions).unserve(x) })
	if err := stream.Send(&apiv1.ServeNotice{Kind: "serving"}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.d.ctx.Done():
			return errLeaving
		case kind := <-x.notices:
			if err := stream.Send(&apiv1.ServeNotice{Kind: kind}); err != nil {
				return err
			}
		}
	}
}

// triples matches what a program serves: with an unspecified address, all names at that port.
func (d *daemon) triples(service string, p sid.Proto, port uint16) func(sid.Triple) bool {
	if a, err := netip.ParseAddr(service); err == nil && a.IsUnspecified() {
		service = ""
	}
	return func(t sid.Triple) bool { return t.Proto == p && t.Port == port && d.named(service)(t.Service) }
}

func (s *sessions) unserve(x *server) {
	s.servers = slices.DeleteFunc(s.servers, func(o *server) bool { return o == x })
	s.servingChanged()
}

// servingChanged tells the engine and the controller what can resume.
func (s *sessions) servingChanged() {
	s.recheckCapable()
	s.d.serving.dirty = true
}

// canResume reports whether a program of this host can go on with the flows of an instance.
func (s *sessions) canResume(t sid.Triple) bool {
	return s.keys != nil && (s.barren == nil || t.Proto != sid.TCP) && slices.ContainsFunc(s.servers, func(x *server) bool { return x.canResume && x.match(t) })
}

// recheckCapable tells the engine which services' flows may come here: as with first packets, none before it is known
// who may connect, and none of a service that this host may not serve.
func (s *sessions) recheckCapable() {
	if s.engine == nil {
		return
	}
	now := map[sid.ServiceID]bool{}
	for t, i := range s.d.serving.instances {
		if i.refused == "" && (i.trusted || s.d.serving.known(t)) && s.canResume(t) {
			now[t.Service] = true
		}
	}
	for id := range s.capable {
		if !now[id] {
			s.engine.SetCapable(id, false)
		}
	}
	for id := range now {
		s.engine.SetCapable(id, true)
	}
	s.capable = now
}

// noticeDrain tells the programs that serve.
func (s *sessions) noticeDrain(id sid.ServiceID, mode string) {
	kind := "draining"
	if mode == "" {
		kind = "undrained"
	}
	for t := range s.d.serving.instances {
		for _, x := range s.servers {
			if t.Service == id && x.match(t) {
				select {
				case x.notices <- kind:
				default: // it does not read
				}
			}
		}
	}
}

// progressEvery is how often DrainLocal looks.
const progressEvery = 200 * time.Millisecond

// DrainLocal takes this host's instance of a service out of service, and tells how many flows are left.
func (l *local) DrainLocal(ctx context.Context, req *connect.Request[apiv1.DrainLocalRequest], stream *connect.ServerStream[apiv1.DrainProgress]) error {
	mode, want := req.Msg.Mode, func(sid.ServiceID) bool { return false }
	if mode != "" && mode != "wait" && mode != "shed" {
		return invalid("mode %q: want wait or shed", mode)
	}
	if req.Msg.Undrain {
		l.d.catchUp(ctx) // what has just ended is not to come back for a moment
	}
	p := &apiv1.DrainProgress{}
	err := l.inLoop(ctx, func(s *sessions) error {
		want = l.d.named(req.Msg.Service)
		shed, n := s.drainLocal(want, mode, !req.Msg.Undrain)
		if n == 0 {
			return notFound("host %s does not serve %q", l.d.cfg.Name, req.Msg.Service)
		}
		p.Shed = uint32(shed)
		return nil
	})
	if err != nil || req.Msg.Undrain {
		return err
	}
	for {
		if err := l.inLoop(ctx, func(s *sessions) error { p.Flows = uint32(s.serving(want)); return nil }); err != nil {
			return err
		}
		if err := stream.Send(p); err != nil || p.Flows == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(progressEvery):
		}
	}
}

// drainLocal takes instances out of service or back, and sheds the flows of those that shed.
func (s *sessions) drainLocal(want func(sid.ServiceID) bool, mode string, drain bool) (shed, services int) {
	seen := map[sid.ServiceID]bool{}
	for t, i := range s.d.serving.instances {
		if !want(t.Service) {
			continue
		}
		i.drained = drain
		s.d.serving.dirty = true
		seen[t.Service] = true
	}
	for id := range seen {
		how := mode
		if p := s.d.serving.policies[id]; how == "" && p != nil {
			how = p.Policy.GetDrain()
		}
		if !drain {
			how = ""
		} else if how == "" {
			how = "wait"
		}
		s.noticeDrain(id, how)
		if how == "shed" {
			s.d.serving.flush() // nothing new comes any more when the first client turns away
			shed += s.shed(wire.Draining, func(f host.Flow) bool { return f.Service == id })
		}
	}
	return shed, len(seen)
}
