package controld

import (
	"context"
	"log/slog"
	"net/http"

	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/lead"
	"scaffold.dev/scaffold/internal/controller/controld/saving"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
)

// A process is what of a controller outlives its terms. Of each term that it leads the network is new.
type process struct {
	*lead.Process
	cfg     config.Config
	store   *store.Store
	log     *slog.Logger
	metrics metrics
}

func newProcess(cfg config.Config, s *store.Store, log *slog.Logger) *process {
	c := &process{cfg: cfg, store: s, log: log, metrics: newMetrics(cfg.Metrics)}
	c.Process = lead.New(lead.Config{
		Config: cfg, Store: elections{s}, Log: log, Registry: c.metrics.registry,
		Leads: c.metrics.leads, Terms: c.metrics.terms, Refused: c.metrics.refusedCalls, Begin: c.begin,
	})
	c.Watch.Export(c.metrics.registry)
	return c
}

// elections are the store's.
type elections struct{ *store.Store }

// Campaign waits until this controller leads.
func (e elections) Campaign(ctx context.Context, me store.Candidate) (lead.Leadership, error) {
	t, err := e.Store.Campaign(ctx, me)
	if err != nil {
		return nil, err // and no term, not even a nil one
	}
	return t, nil
}

// begin begins a term with what is stored.
func (c *process) begin(ctx context.Context, state store.State, end func(error)) (lead.Term, error) {
	n := newNetwork(c, saving.New(c.store), c.log)
	n.resign = end
	if err := n.restore(ctx, state); err != nil {
		return nil, err
	}
	return &term{n: n, handler: n.handler()}, nil
}

// A term is the time in which this controller leads, as those see it who watch over that.
type term struct {
	n       *network
	handler http.Handler
}

// Run turns the loop and saves, until ctx ends.
func (t *term) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { t.n.loop.Run(ctx, t.n.flush); return nil })
	group.Go(func() error { t.n.saver.Run(ctx, t.n.saved); return nil })
	_ = group.Wait()  // neither fails
	t.n.events.Save() // the loop has ended
	_ = t.n.saver.Save(context.WithoutCancel(ctx))
	return nil
}

// ServeHTTP is the API.
func (t *term) ServeHTTP(w http.ResponseWriter, r *http.Request) { t.handler.ServeHTTP(w, r) }

// Runs is told which controllers run.
func (t *term) Runs(running []store.Candidate) {
	t.n.loop.Post(func() { t.n.controllers.Run(running) })
}

// Promoted is told that a controller has a vote now.
func (t *term) Promoted(name string) {
	t.n.loop.Post(func() {
		t.n.events.Tell("controller.join", name, "controller has learned the state: it counts in the cluster and may lead")
	})
}

// RefusedCall tells of a call that the gate refused.
func (t *term) RefusedCall(ctx context.Context, path string, err error) {
	t.n.orders.RefusedCall(gate.ActorOf(ctx, t.n.cfg.Name), path, err)
}

// Known are the controllers that the network remembers.
func (t *term) Known(ctx context.Context) (map[string]store.Controller, error) { return t.n.known(ctx) }

// Describe is the network as it is.
func (t *term) Describe(ctx context.Context) health.Snapshot { return t.n.describe(ctx) }
