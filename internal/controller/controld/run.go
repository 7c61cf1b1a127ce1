package controld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/controld/specs"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// compressFrom is the size from which compressing an answer takes less time than it saves. Streams of hosts and routers
// are not compressed: the same rules would be for each router, which took a quarter of the time of 10,000 joins.
const compressFrom = 64 << 10

// maxMessage bounds what one message of a host or router may take: far more than any snapshot.
const maxMessage = 64 << 20

// Run is the controller until ctx ends. It returns nil then, and an error where it cannot start or
// its API fails. The store is closed in good order, but nothing depends on that.
func Run(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	listeners, err := listen(cfg.Own()) // before the store, which may tell other controllers of this one
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, cfg.Store(log))
	if err != nil {
		return errors.Join(err, closeAll(listeners))
	}
	at, err := cfg.Settle(ctx, s, log)
	var more []net.Listener
	if err == nil {
		more, err = listen(at)
	}
	if listeners = append(listeners, more...); err != nil {
		return errors.Join(err, closeAll(listeners), s.Close())
	}
	err = run(ctx, cfg, s, append(listeners, cfg.Doors...), log)
	return errors.Join(err, s.Close())
}

func run(ctx context.Context, cfg config.Config, s *store.Store, listeners []net.Listener, log *slog.Logger) error {
	if len(cfg.Etcd) > 0 { // one that is not there is a mistake at the start, and is waited for later
		if _, err := s.Load(ctx); err != nil {
			return errors.Join(err, closeAll(listeners))
		}
	}
	cfg.WarnInTheClear(log)
	return newProcess(cfg, s, log).Run(ctx, listeners)
}

func listen(endpoints []string) ([]net.Listener, error) {
	var all []net.Listener
	for _, endpoint := range endpoints {
		l, err := api.Listen(endpoint)
		if err != nil {
			return nil, errors.Join(err, closeAll(all))
		}
		all = append(all, l)
	}
	return all, nil
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
	mux.Handle(apiv1connect.NewAdminHandler(&adminAPI{n: n}, limit, gate.OwnOnly(func(ctx context.Context, path string, err error) {
		n.orders.RefusedCall(gate.ActorOf(ctx, n.cfg.Name), path, err)
	})))
	mux.Handle(apiv1connect.NewTrustHandler(n.members.API(), limit))
	mux.Handle(apiv1connect.NewBoostHandler(n.boost.API(), limit))
	mux.Handle(apiv1connect.NewBoostStreamHandler(boostStream{n}, limit, connect.WithCompression("gzip", nil, nil)))
	mux.Handle(apiv1connect.NewBoostSteeringHandler(steerStream{n}, limit, connect.WithCompression("gzip", nil, nil)))
	mux.Handle(apiv1connect.NewAgentHandler(&agentAPI{n}, limit, connect.WithCompression("gzip", nil, nil)))
	for _, m := range n.cfg.Mounts {
		mux.Handle(m.Path, m.Handler)
	}
	mux.Handle("GET /healthz", n.process.Watch)
	mux.Handle("/", obs.Handler(n.metrics.registry, new(obs.Health), n.cfg.Profiles))
	if n.gate == nil {
		return session.WithDeadlines(gate.WithConnection(mux))
	}
	return session.WithDeadlines(gate.WithConnection(n.gate.Wrap(mux)))
}

// createAtStart adds the services of the command line that do not exist.
func (n *network) createAtStart(ctx context.Context) error {
	for _, spec := range n.cfg.Services {
		if _, err := n.names.Named(spec.Name); err == nil {
			continue
		}
		r, err := n.services.Make(spec.Name, 0, "", spec.Policy, names.Access{})
		if err != nil {
			return err
		}
		if err := n.saver.Now(ctx, store.PutService(r)); err != nil {
			return fmt.Errorf("create service %s: %w", r.Name, err)
		}
		n.services.Add(r)
		n.events.Happened(specs.Created(r, n.services.Address(r.ID)))
	}
	return nil
}
