package controld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/internal/store"
)

// compressFrom is the size from which compressing an answer takes less time than it saves. Streams of hosts and routers
// are not compressed: the same rules would be for each router, which took a quarter of the time of 10,000 joins.
const compressFrom = 64 << 10

// maxMessage bounds what one message of a host or router may take: far more than any snapshot.
const maxMessage = 64 << 20

// Run is the controller until ctx ends. It returns nil then, and an error where it cannot start or
// its API fails. The store is closed in good order, but nothing depends on that.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	listeners, err := listen(cfg)
	if err != nil {
		return err
	}
	s, err := store.Open(cfg.store(log))
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	err = run(ctx, cfg, s, listeners, log)
	return errors.Join(err, s.Close())
}

func run(ctx context.Context, cfg Config, s *store.Store, listeners []net.Listener, log *slog.Logger) error {
	if len(cfg.Etcd) > 0 { // one that is not there is a mistake at the start, and is waited for later
		if _, err := s.Load(ctx); err != nil {
			return errors.Join(err, closeAll(listeners))
		}
	}
	cfg.warnInTheClear(log)
	c := newSeat(cfg, s, log)
	group, ctx := errgroup.WithContext(ctx)
	if c.gate != nil {
		c.gate.secure(listeners)
		group.Go(func() error { c.followTrust(ctx); return nil })
	}
	group.Go(func() error { return c.run(ctx) })
	if s.Elected() {
		group.Go(func() error { s.Candidates(ctx, c.seen); return nil })
		group.Go(func() error { return serve(ctx, c, listeners) })
		return group.Wait()
	}
	group.Go(func() error { // nobody is answered before there is an answer
		select {
		case <-c.leads:
		case <-ctx.Done():
			return closeAll(listeners)
		}
		return serve(ctx, c, listeners)
	})
	return group.Wait()
}

// serve answers. Of several controllers one is ready that follows another, or waits for the rest.
func serve(ctx context.Context, c *seat, listeners []net.Listener) error {
	obs.TellManager("READY=1")
	return api.Serve(ctx, c, listeners...)
}

func listen(cfg Config) ([]net.Listener, error) {
	endpoints := cfg.Listen
	if cfg.Socket != "" {
		endpoints = append([]string{unixEndpoint(cfg.Socket)}, endpoints...)
	}
	var all []net.Listener
	for _, endpoint := range endpoints {
		l, err := api.Listen(endpoint)
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, l)
	}
	return append(all, cfg.Doors...), nil
}

// unixEndpoint takes a path, or an endpoint that says so already.
func unixEndpoint(path string) string {
	if e, err := api.ParseEndpoint(path); err == nil && e.Network == "unix" {
		return path
	}
	return "unix:" + path
}

func closeAll(listeners []net.Listener) error {
	var err error
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// handler serves both services, metrics and health.
func (n *network) handler() http.Handler {
	mux := http.NewServeMux()
	limit := connect.WithHandlerOptions(connect.WithReadMaxBytes(maxMessage), connect.WithCompressMinBytes(compressFrom), connect.WithInterceptors(n.metrics.timed()))
	admin := n.admin
	mux.Handle(apiv1connect.NewAdminHandler(admin, limit, ownOnly()))
	mux.Handle(apiv1connect.NewTrustHandler(&trustAPI{n: n, admin: admin}, limit))
	mux.Handle(apiv1connect.NewAgentHandler(&agentAPI{n: n, orders: admin}, limit, connect.WithCompression("gzip", nil, nil)))
	for _, m := range n.cfg.Mounts {
		mux.Handle(m.Path, m.Handler)
	}
	mux.Handle("/", obs.Handler(n.metrics.registry, n.health, n.cfg.Profiles))
	if n.gate == nil {
		return withDeadlines(mux)
	}
	return withDeadlines(n.gate.wrap(mux))
}

// createAtStart adds the services of the command line that do not exist.
func (n *network) createAtStart(ctx context.Context) error {
	for _, spec := range n.cfg.Services {
		if _, err := n.names.Named(spec.Name); err == nil {
			continue
		}
		r, err := n.newRecord(spec.Name, 0, "", spec.Policy, names.Access{})
		if err != nil {
			return err
		}
		if err := n.saver.now(ctx, store.PutService(r)); err != nil {
			return fmt.Errorf("create service %s: %w", r.Name, err)
		}
		n.addService(r)
	}
	return nil
}
