package gateway

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/operate/obs"
)

var errEnding = errors.New("this gateway is ending: start it again")

// serveAPI opens what operators, health checks and the next gateway speak to.
func (g *Gateway) serveAPI() error {
	cfg := g.cfg.Load()
	own, err := api.Listen("unix:" + cfg.Socket)
	if err != nil {
		return err
	}
	next, err := listenNext(cfg.Socket)
	if err != nil {
		own.Close()
		return err
	}
	health := g.checked(&g.health)
	metrics := g.newMetrics()
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewGatewayHandler(&control{g: g}))
	mux.Handle("GET /healthz", health)
	mux.Handle("/", obs.Handler(metrics, &g.health, true))
	outside := http.NewServeMux()
	outside.Handle("GET /healthz", health)
	outside.Handle("GET /metrics", metrics.Handler())
	ctx, cancel := context.WithCancel(g.ctx)
	ended := make(chan struct{}, 2)
	serve := func(h http.Handler, l net.Listener) {
		if err := api.Serve(ctx, h, l); err != nil && ctx.Err() == nil {
			g.log.Error("the gateway's API ended", "error", err)
		}
		ended <- struct{}{}
	}
	servers := 1
	if cfg.HTTP != "" {
		l, err := net.Listen("tcp", cfg.HTTP)
		if err != nil {
			cancel()
			own.Close()
			next.Close()
			return err
		}
		servers++
		go serve(outside, l) // ends with closeAPI
	}
	go serve(mux, own)
	go g.offer(next)
	g.closeAPI = func() {
		cancel()
		next.Close()
		for range servers {
			<-ended
		}
		g.closeAPI = func() {}
	}
	return nil
}

// listenNext opens the socket at which the next gateway asks. The API's, beside it, has shown that nobody else is here.
func listenNext(socket string) (*net.UnixListener, error) {
	path := handoverPath(socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// control is the API. Its methods run in goroutines of the HTTP server and ask the loop.
type control struct {
	apiv1connect.UnimplementedGatewayHandler
	g *Gateway
}

// GetGateway tells how the gateway stands.
func (c *control) GetGateway(ctx context.Context, _ *connect.Request[apiv1.GetGatewayRequest]) (*connect.Response[apiv1.GatewayStatus], error) {
	return c.do(ctx, func() error { return nil })
}

// DrainGateway sends new flows elsewhere, or with undrain takes them again.
func (c *control) DrainGateway(ctx context.Context, req *connect.Request[apiv1.DrainGatewayRequest]) (*connect.Response[apiv1.GatewayStatus], error) {
	return c.do(ctx, func() error {
		if req.Msg.Undrain {
			return c.g.undrain()
		}
		c.g.leave(false)
		return nil
	})
}

// ReloadGateway reads the configuration again.
func (c *control) ReloadGateway(ctx context.Context, _ *connect.Request[apiv1.ReloadGatewayRequest]) (*connect.Response[apiv1.GatewayStatus], error) {
	return c.do(ctx, c.g.reload)
}

// do runs f in the loop, and tells how things stand after it.
func (c *control) do(ctx context.Context, f func() error) (*connect.Response[apiv1.GatewayStatus], error) {
	var s *apiv1.GatewayStatus
	err := c.g.call(ctx, func() error {
		err := f()
		s = c.g.status()
		return err
	})
	switch {
	case errors.Is(err, context.Canceled):
		return nil, connect.NewError(connect.CodeUnavailable, err)
	case err != nil:
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return connect.NewResponse(s), nil
}

// status is what operators see; runs in the loop.
func (g *Gateway) status() *apiv1.GatewayStatus {
	s := &apiv1.GatewayStatus{
		State: g.state.String(), Version: obs.Version(), Pid: uint32(os.Getpid()), StartedUnixMs: g.began.UnixMilli(),
		Flows: uint32(g.flowCount()), Room: uint32(g.room.size),
	}
	if g.exiting {
		s.State = "ending"
	}
	for _, d := range g.all() {
		s.Listeners = append(s.Listeners, d.status())
	}
	slices.SortFunc(s.Listeners, func(a, b *apiv1.GatewayListener) int { return cmp.Compare(a.At, b.At) })
	return s
}

func (d *door) status() *apiv1.GatewayListener {
	l, c := d.want.Load(), &d.count
	s := &apiv1.GatewayListener{
		At: d.label(), To: l.Target(), Proxy: uint32(l.Proxy), Open: !d.closing.Load(), Flows: uint32(d.flows()),
		Accepted: c.accepted.Load(), Failed: c.failed.Load(), Refused: c.full.Load() + c.crowded.Load(),
		Retried: c.retried.Load(), Broken: c.broken.Load(), BytesUp: c.up.Load(), BytesDown: c.down.Load(),
	}
	if err := d.g.names.trouble(l.Service); err != nil {
		s.Trouble = err.Error()
	}
	return s
}
