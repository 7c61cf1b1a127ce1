package routerd

import (
	"context"
	"net"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/operate/verdict"
)

// troubled notes why there is no controller; nil: there is one.
func (d *daemon) troubled(err error) {
	text := ""
	if err != nil {
		text = api.Plainly(err)
	}
	d.trouble.Store(&text)
}

// facts are what this router knows of itself, also while no controller answers.
func (d *daemon) facts(context.Context) health.Snapshot {
	s := health.Snapshot{Now: time.Now(), Lab: d.cfg.Lab}
	o := &health.Own{Role: "router", Name: d.cfg.Name, Trouble: *d.trouble.Load()}
	if len(d.cfg.Controllers) > 0 {
		o.Controller = d.cfg.Controllers[0]
	}
	if m, _ := d.credentials.Member(); m != nil {
		o.Credential, o.For = m.Until(), m.Until().Sub(m.Since())
	} else {
		o.Open = elsewhere(o.Controller)
	}
	if d.call(func() {
		o.Joined = d.session != nil
		o.Open = o.Open && o.Joined
		if d.resolver != nil {
			if u, err := d.resolver.Usage(); err == nil && u.Room > 0 {
				o.Full = float64(u.Nodes) / float64(u.Room)
			}
		}
	}) {
		s.Own = o
	}
	return s
}

// elsewhere reports whether a controller's endpoint is reached from other machines than its own.
func elsewhere(endpoint string) bool {
	e, err := api.ParseEndpoint(endpoint)
	if err != nil || e.Network != "tcp" {
		return false
	}
	host, _, _ := net.SplitHostPort(e.Address)
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// GetOwnHealth is what is wrong with this router.
func (l *local) GetOwnHealth(ctx context.Context, _ *connect.Request[apiv1.GetHealthRequest]) (*connect.Response[apiv1.Health], error) {
	return connect.NewResponse(&apiv1.Health{Asked: l.d.cfg.Name, Role: "router", Version: obs.Version(), NowUnixMs: time.Now().UnixMilli(),
		Problems: verdict.ToAPI(l.d.verdict.Problems(ctx))}), nil
}
