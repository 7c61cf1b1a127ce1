package lead

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// elections are a store in which somebody leads once wins has something.
type elections struct {
	alone    bool
	wins     chan *leadership
	fails    error // to campaign
	learned  chan []string
	tells    func([]store.Candidate, error) // who runs; set once somebody asks
	asked    chan struct{}                  // closed then
	campaign atomic.Int64                   // how often somebody did
}

// newElections are those of several controllers.
func newElections() *elections {
	return &elections{wins: make(chan *leadership, 9), learned: make(chan []string, 9), asked: make(chan struct{})}
}

func (e *elections) Elected() bool { return !e.alone }

func (e *elections) Campaign(ctx context.Context, _ store.Candidate) (Leadership, error) {
	e.campaign.Add(1)
	if e.fails != nil {
		return nil, e.fails
	}
	select {
	case m := <-e.wins:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *elections) Begin(context.Context, string) (store.State, error) {
	return store.State{ID: "n1"}, nil
}

func (e *elections) Candidates(ctx context.Context, f func([]store.Candidate, error)) {
	e.tells = f
	close(e.asked)
	<-ctx.Done()
}

func (e *elections) Trust(ctx context.Context, _ func(store.State, error)) { <-ctx.Done() }

func (e *elections) Promote(context.Context) ([]string, error) {
	select {
	case names := <-e.learned:
		return names, nil
	default:
		return nil, errors.New("nobody to promote")
	}
}

func (e *elections) String() string                { return "the store" }
func (e *elections) Peers() []store.Peer           { return nil }
func (e *elections) Disk() (uint64, uint64, bool)  { return 0, 0, false }
func (e *elections) Capacity() uint64              { return 0 }
func (e *elections) Broken() string                { return "" }
func (e *elections) Damaged() string               { return "" }
func (e *elections) Applied() uint64               { return 0 }
func (e *elections) leads(list ...store.Candidate) { <-e.asked; e.tells(list, nil) }

// A leadership is over when over is closed.
type leadership struct {
	over    chan struct{}
	resigns atomic.Int64
}

func newLeadership() *leadership { return &leadership{over: make(chan struct{})} }

func (m *leadership) Done() <-chan struct{} { return m.over }
func (m *leadership) Resign()               { m.resigns.Add(1) }

// A fakeTerm tells what becomes of it.
type fakeTerm struct {
	began, ended chan error // nil when it runs; why it ended
	state        store.State
	end          func(error)
	told         chan string
}

func newTerm() *fakeTerm {
	return &fakeTerm{began: make(chan error, 9), ended: make(chan error, 9), told: make(chan string, 9)}
}

func (t *fakeTerm) Run(ctx context.Context) error {
	t.began <- nil
	<-ctx.Done()
	t.ended <- context.Cause(ctx)
	return nil
}

func (t *fakeTerm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stream" {
		<-r.Context().Done()
		_, _ = w.Write([]byte(context.Cause(r.Context()).Error()))
		return
	}
	_, _ = w.Write([]byte("the term's answer"))
}

func (t *fakeTerm) Runs(list []store.Candidate) {
	for _, c := range list {
		t.told <- c.Name + " runs"
	}
}

func (t *fakeTerm) Promoted(name string)                                { t.told <- name + " has a vote" }
func (t *fakeTerm) RefusedCall(_ context.Context, path string, _ error) { t.told <- path + " refused" }
func (t *fakeTerm) Describe(context.Context) health.Snapshot {
	return health.Snapshot{Restored: "by the term"}
}
func (t *fakeTerm) Known(context.Context) (map[string]store.Controller, error) {
	return map[string]store.Controller{"c9": {Name: "c9"}}, nil
}

// A figure is a gauge or a counter.
type figure struct{ value atomic.Int64 }

func (f *figure) Set(v float64, _ ...string) { f.value.Store(int64(v)) }
func (f *figure) Inc(...string)              { f.value.Add(1) }

// process is controller c1 of that store; t is its term.
func process(e *elections, t *fakeTerm) *Process {
	return New(Config{
		Config: config.Config{Name: "c1"}, Store: e, Log: slog.New(slog.DiscardHandler), Registry: obs.NewMetrics("controld"),
		Leads: new(figure), Terms: new(figure), Refused: new(figure),
		Begin: func(_ context.Context, state store.State, end func(error)) (Term, error) {
			t.state, t.end = state, end
			return t, nil
		},
	})
}
