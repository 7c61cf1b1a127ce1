package controld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/internal/store"
)

// campaignAgain is the pause after an attempt to lead that failed.
const campaignAgain = 500 * time.Millisecond

// learnerEvery is how often the leader looks whether a new member of the cluster has caught up.
const learnerEvery = time.Second

// A seat is this process among the controllers of its network. It leads, which is a term, or stands by and hands on to
// the one that does. A controller that is alone leads from its start to its end.
type seat struct {
	cfg     Config
	store   *store.Store
	log     *slog.Logger
	health  *obs.Health
	metrics metrics
	began   time.Time
	term    atomic.Pointer[term] // nil while it stands by
	gate    *gate                // nil where the network is open
	peers   *peers               // who else runs, and who leads
	standby http.Handler
	leads   chan struct{} // closed when the first term has begun
	first   sync.Once
}

// A term is the time in which this controller leads: all that it knows and does belongs to it, and the next one begins
// with what is stored.
type term struct {
	ctx     context.Context
	handler http.Handler
}

// errTermOver is why streams and calls of a term end.
var errTermOver = errors.New("this controller does not lead any more")

func newSeat(cfg Config, s *store.Store, log *slog.Logger) *seat {
	c := &seat{cfg: cfg, store: s, log: log, health: new(obs.Health), metrics: newMetrics(cfg.Metrics),
		began: time.Now(), peers: newPeers(), leads: make(chan struct{})}
	if cfg.Trust == TrustKeys {
		c.gate = newGate(cfg.Name, strings.TrimPrefix(cfg.Socket, "unix:"), func(err error) {
			c.metrics.refusedCalls.Inc(connect.CodeOf(err).String())
		})
	}
	c.standby = c.standbyHandler()
	return c
}

// ServeHTTP is the API: of the term that runs, or of a standby.
func (c *seat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if t := c.term.Load(); t != nil {
		t.ServeHTTP(w, r)
		return
	}
	c.standby.ServeHTTP(w, r)
}

// ServeHTTP ends what it serves with the term.
func (t *term) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })()
	t.handler.ServeHTTP(w, r.WithContext(ctx))
}

// run leads whenever it can, until ctx ends or there is no sense in it any more.
func (c *seat) run(ctx context.Context) error {
	said := ""
	for {
		t, err := c.store.Campaign(ctx, c.candidate())
		if err == nil {
			said = ""
			err = c.lead(ctx, t)
			t.Resign()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, new(besideError)), !c.store.Elected(), errors.Is(err, store.ErrOut), errors.Is(err, store.ErrOtherNetwork), errors.Is(err, errState):
			return err
		case err != nil && !errors.Is(err, errTermOver) && err.Error() != said:
			said = err.Error()
			c.log.Warn("this controller stands by and cannot lead now; trying again", "error", err)
		}
		select {
		case <-time.After(campaignAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *seat) candidate() store.Candidate {
	return store.Candidate{Name: c.cfg.Name, API: c.cfg.Advertise, Version: obs.Version(), Since: c.began.UnixMilli()}
}

// seen takes who runs, as the store tells it.
func (c *seat) seen(running []store.Candidate, trouble error) {
	c.peers.set(running, trouble)
	if c.peers.leader() == nil {
		c.health.Set("leader", c.noLeader())
		return
	}
	c.health.Set("leader", nil)
}

// errState says that the stored state cannot be taken up: the next attempt would find the same.
var errState = errors.New("the stored state cannot be taken up")

// A besideError is of what runs beside the one that leads: it would fail again.
type besideError struct{ error }

func (e besideError) Unwrap() error { return e.error }

// lead is one term, from what is stored to its end. The first goroutine that fails ends all.
func (c *seat) lead(ctx context.Context, of *store.Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.store.Elected() {
		go func() { // ends with the term
			select {
			case <-of.Done():
				cancel(errTermOver)
			case <-ctx.Done():
			}
		}()
	}
	state, err := c.store.Begin(ctx)
	if err != nil {
		return err
	}
	n := newNetwork(c, newSaver(c.store), c.log)
	n.resign = cancel
	c.health.Set("store", nil)
	if err := n.restore(ctx, state); err != nil {
		if store.Doubtful(err) || errors.Is(err, store.ErrNotLeader) {
			return err
		}
		return fmt.Errorf("%w: %w", errState, err)
	}
	return c.reign(ctx, n)
}

// reign runs a term that has taken up the state.
func (c *seat) reign(ctx context.Context, n *network) error {
	over := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { n.loop.run(ctx, n.flush); return nil })
	group.Go(func() error { n.saver.run(ctx, n.saved); return nil })
	if c.store.Elected() {
		group.Go(func() error { c.peers.follow(ctx, n); return nil })
		group.Go(func() error { n.promote(ctx, c.store); return nil })
	}
	c.term.Store(&term{ctx: ctx, handler: n.handler()})
	c.first.Do(func() { close(c.leads) })
	c.metrics.leads.Set(1)
	c.metrics.terms.Inc()
	if c.cfg.Beside != nil {
		group.Go(func() error {
			if err := c.cfg.Beside(ctx); err != nil {
				return besideError{err}
			}
			return nil
		})
	}
	group.Go(func() error { // what runs beside ends by itself only with a reason
		<-ctx.Done()
		return nil
	})
	err := group.Wait()
	c.term.Store(nil)
	c.metrics.leads.Set(0)
	if err == nil && over.Err() != nil {
		err = context.Cause(over)
	}
	if errors.Is(err, errTermOver) || store.Doubtful(err) {
		c.log.Warn("this controller does not lead any more", "reason", err)
	}
	return err
}

// promote gives new members of the state's cluster a vote once they have caught up.
func (n *network) promote(ctx context.Context, s *store.Store) {
	tick := time.NewTicker(learnerEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		names, err := s.Promote(ctx)
		for _, name := range names {
			n.loop.post(func() {
				n.event("controller.join", name, "controller has learned the state: it counts in the cluster and may lead")
			})
		}
		if err != nil && ctx.Err() == nil {
			n.log.Debug("members of the cluster", "error", err)
		}
	}
}

// trustFailures is how many attempts in a row, half a second apart, are worth a line: etcd elects its own leader meanwhile.
const trustFailures = 10

// followTrust takes up the network's keys and what is revoked, as the controller that leads stores it: a standby speaks
// by TLS too, and lets nobody in who was forgotten. The one that leads knows by itself.
func (c *seat) followTrust(ctx context.Context) {
	failures := 0
	c.store.Trust(ctx, func(state store.State, err error) {
		if c.term.Load() != nil {
			return
		}
		if err == nil && len(state.Key) > 0 {
			_, err = c.gate.certify(state.Key, state.Second, c.cfg.Network)
		}
		for _, r := range state.Revoked {
			c.gate.revoke(r)
		}
		if err == nil {
			failures = 0
		} else if failures++; failures == trustFailures {
			c.log.Warn("this controller does not know what changed about the network's members; trying again", "error", err)
		}
	})
}
