package hostd

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/internal/host/permits"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// newPermits are what this host may serve of services with a key, and what that needs of the other sides.
func newPermits(d *daemon) *permits.Permits {
	return permits.New(permits.Config{
		Log: d.log, Keys: &d.keys, Presented: filepath.Join(d.store.dir, permitsDir), Directory: d.cfg.Permits, Post: d.post,
		Challenge: func() []byte { return d.challenge }, Name: d.serviceName, Again: func(news func(sid.ServiceID) bool) { d.serving.ShowAnew(news) },
	})
}

// PresentPermit keeps a permit, in the state directory, until it expires or another takes its place.
func (l *local) PresentPermit(ctx context.Context, req *connect.Request[apiv1.PresentPermitRequest]) (*connect.Response[apiv1.HeldPermit], error) {
	p, err := wire.ParsePermit(req.Msg.Permit)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	err = l.d.keys.Permitted(p, time.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%w (this is %s, with the key %08x)", err, l.d.cfg.Name, wire.KeyID(l.d.keys.Public())))
	}
	if err := l.d.store.keepPermit(p.Service.String()+permits.Suffix, permit.Format(p, "", l.d.cfg.Name)); err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err)
	}
	found := l.d.permits.Find(time.Now())
	answer := &apiv1.HeldPermit{}
	if !l.d.call(ctx, func() {
		l.d.permits.Take(found)
		answer = l.d.permits.Held(p)
	}) {
		return nil, errLeaving
	}
	return connect.NewResponse(answer), nil
}
