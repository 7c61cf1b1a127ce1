package hostd

import (
	"context"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/host/places"
	"scaffold.dev/scaffold/internal/operate/obs"
	judged "scaffold.dev/scaffold/internal/operate/verdict"
	"scaffold.dev/scaffold/wire"
)

// facts are what this host knows of itself, also while no controller answers.
func (d *daemon) facts(ctx context.Context) health.Snapshot {
	s := health.Snapshot{Now: time.Now(), Lab: d.cfg.Lab}
	told := make(chan *health.Own, 1)
	if d.call(ctx, func() { told <- d.ownFacts() }) {
		s.Own = <-told
	}
	return s
}

// ownFacts runs in the loop.
func (d *daemon) ownFacts() *health.Own {
	joined, _, endpoint, trouble := d.control.state()
	o := &health.Own{Role: "host", Name: d.cfg.Name, Joined: joined && d.control.Connected(), Controller: plainZone(endpoint), Trouble: trouble, Wired: true}
	for _, u := range d.uplinks.All() {
		if u.Attachment() != nil {
			o.Uplinks++
		}
	}
	if !d.uplinks.Lead() {
		o.Uplinks, o.Trouble = 0, d.uplinks.Trouble()
	}
	for _, p := range d.places.All() {
		if c, err := wire.ParseCertificate(p.Certificate); err == nil {
			if until := time.Unix(c.NotAfter, 0); o.Until.IsZero() || until.Before(o.Until) {
				o.Until, o.Valid = until, places.CertificateValid(c)
			}
		}
	}
	open := d.places.Home() != nil && d.places.Home().NetworkKey == nil
	if open {
		o.Until = time.Time{} // an open network looks at none
	}
	o.Open = o.Joined && open
	if m, _ := d.credentials.Member(); m != nil {
		o.Credential, o.For = m.Until(), m.Until().Sub(m.Since())
	}
	if d.edge != nil {
		if u, err := d.edge.Usage(); err == nil && u.MaxFlows > 0 {
			o.Full = float64(d.load.flows) / float64(u.MaxFlows)
		}
	}
	return o
}

// GetOwnHealth is what is wrong with this host.
func (l *local) GetOwnHealth(ctx context.Context, _ *connect.Request[apiv1.GetHealthRequest]) (*connect.Response[apiv1.Health], error) {
	return connect.NewResponse(&apiv1.Health{Asked: l.d.cfg.Name, Role: "host", Version: obs.Version(), NowUnixMs: time.Now().UnixMilli(),
		Problems: judged.ToAPI(l.d.verdict.Problems(ctx))}), nil
}
