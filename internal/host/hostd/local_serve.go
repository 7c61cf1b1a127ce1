package hostd

import (
	"context"
	"net/netip"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/mobility"
	"scaffold.dev/scaffold/sid"
)

// Serve holds as long as the call is open: this host says that the program can resume, and tells it of
// drains.
func (l *local) Serve(ctx context.Context, req *connect.Request[apiv1.ServeRequest], stream *connect.ServerStream[apiv1.ServeNotice]) error {
	proto, err := sid.ParseProto(req.Msg.Proto)
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	var notices <-chan string
	var end func()
	err = l.inLoop(ctx, func(s *mobility.Sessions) error {
		notices, end = s.Serve(l.triples(req.Msg.Service, proto, uint16(req.Msg.Port)), req.Msg.CanResume)
		return nil
	})
	if err != nil {
		return err
	}
	defer l.d.post(end)
	if err := stream.Send(&apiv1.ServeNotice{Kind: "serving"}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.d.ctx.Done():
			return errLeaving
		case kind := <-notices:
			if err := stream.Send(&apiv1.ServeNotice{Kind: kind}); err != nil {
				return err
			}
		}
	}
}

// triples matches what a program serves: with an unspecified address, all names at that port.
func (l *local) triples(service string, p sid.Proto, port uint16) func(sid.Triple) bool {
	if a, err := netip.ParseAddr(service); err == nil && a.IsUnspecified() {
		service = ""
	}
	return func(t sid.Triple) bool { return t.Proto == p && t.Port == port && l.named(service)(t.Service) }
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
		l.d.serving.CatchUp(ctx) // what has just ended is not to come back for a moment
	}
	p := &apiv1.DrainProgress{}
	err := l.inLoop(ctx, func(s *mobility.Sessions) error {
		want = l.named(req.Msg.Service)
		shed, n := l.drain(s, want, mode, !req.Msg.Undrain)
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
		if err := l.inLoop(ctx, func(s *mobility.Sessions) error { p.Flows = uint32(s.Serves(want)); return nil }); err != nil {
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

// drain takes instances out of service or back, and sheds the flows of those that shed.
func (l *local) drain(s *mobility.Sessions, want func(sid.ServiceID) bool, mode string, drain bool) (shed, services int) {
	all := l.d.serving.Drain(want, drain)
	for id, how := range all {
		if mode != "" {
			how = mode
		}
		if !drain {
			how = ""
		} else if how == "" {
			how = "wait"
		}
		shed += s.Drain(id, how)
	}
	return shed, len(all)
}
