package hostd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/obs"
)

// serveAPI opens the Unix socket: this host's own API, and the network's by way of the controller.
func (d *daemon) serveAPI(ctx context.Context) error {
	l, err := api.Listen("unix:" + d.cfg.Socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewLocalHandler(&local{d: d}))
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
	mux.HandleFunc("GET /healthz", d.health)
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

// adminProxy hands what operators ask of the network to the controller, over the same way that this host joined by.
func (d *daemon) adminProxy() http.Handler {
	errs := connect.NewErrorWriter()
	unavailable := func(w http.ResponseWriter, r *http.Request, err error) {
		errs.Write(w, r, connect.NewError(connect.CodeUnavailable, err))
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "scaffold"
		},
		Transport:     roundTripper(d.toController),
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			_, _, endpoint, _ := d.control.state()
			unavailable(w, r, errors.Join(errors.New("the controller at "+endpoint+" does not answer"), err))
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, client, _ := d.control.current(); client == nil {
			unavailable(w, r, errors.New("this host has found no way to the controller yet"))
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (d *daemon) toController(r *http.Request) (*http.Response, error) {
	_, client, _ := d.control.current()
	return client.Transport.RoundTrip(r)
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
	maps.Copy(c, d.sessions.counts())
	return c, nil
}
