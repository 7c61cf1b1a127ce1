package hostd

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// serveAPI opens the Unix socket: this host's own API, and the network's by way of the controller.
func (d *daemon) serveAPI(ctx context.Context) error {
	l, err := api.Listen("unix:" + d.cfg.Socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	path, own := apiv1connect.NewLocalHandler(&local{d: d})
	mux.Handle(path, own)
	former := api.Former(own)
	mux.Handle(former.Path, former.Handler)
	for _, of := range []string{apiv1connect.AdminName, apiv1connect.SwitchesName, apiv1connect.TrustName} {
		mux.Handle("/"+of+"/", d.adminProxy())
	}
	mux.Handle(apiv1connect.TrustRotateProcedure, http.NotFoundHandler()) // who opens the socket must not bring a key of his own
	d.export()
	mux.Handle("/", d.watch(true))
	d.serveAt(l, mux)
	if d.cfg.Metrics == "" {
		return nil
	}
	if l, err = api.Listen(d.cfg.Metrics); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	d.serveAt(l, d.watch(false))
	return nil
}

// watch serves metrics and health.
func (d *daemon) watch(profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", d.verdict)
	mux.Handle("/", obs.Handler(d.metrics.registry, new(obs.Health), profiles))
	return mux
}

func (d *daemon) serveAt(l net.Listener, h http.Handler) {
	d.apis.Go(func() {
		if err := api.Serve(d.ctx, h, l); err != nil && d.ctx.Err() == nil {
			d.log.Error("the host's API ended", "at", l.Addr(), "error", err)
		}
	})
}

func (d *daemon) counters() (c map[string]uint64, err error) {
	d.call(d.ctx, func() {
		if d.edge != nil {
			c, err = d.countAll()
		}
	})
	return c, err
}

// countAll is what the edge and the flows' side count; runs in the loop.
func (d *daemon) countAll() (map[string]uint64, error) {
	c, err := d.edge.Counters()
	if err != nil {
		return nil, err
	}
	maps.Copy(c, d.sessions.Counts())
	return c, nil
}
