package lead

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/controllers"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/internal/operate/verdict"
)

// A Store says who leads, and has what a term begins with.
type Store interface {
	Facts
	Elected() bool // there may be several controllers
	Campaign(context.Context, store.Candidate) (Leadership, error)
	Begin(ctx context.Context, trust string) (store.State, error)
	Candidates(context.Context, func([]store.Candidate, error))
	Trust(context.Context, func(store.State, error))
	Promote(context.Context) (names []string, err error)
}

// Facts are how the store of this controller is.
type Facts interface {
	fmt.Stringer
	Peers() []store.Peer
	Disk() (free, needed uint64, looked bool)
	Capacity() uint64
	Broken() string
	Damaged() string
	Applied() uint64
}

// A Leadership is the right to lead, from the store.
type Leadership interface {
	Done() <-chan struct{} // closed when it is over
	Resign()
}

// A Term is the time in which this controller leads: all that it knows and does belongs to it, and the next one begins
// with what is stored. Its methods are for every goroutine.
type Term interface {
	http.Handler                                                // the API
	Run(context.Context) error                                  // until the context ends; what waits to be saved is saved then
	Runs([]store.Candidate)                                     // these controllers run
	Promoted(controller string)                                 // it has caught up with the state's cluster, and has a vote
	RefusedCall(ctx context.Context, path string, err error)    // the gate refused it
	Known(context.Context) (map[string]store.Controller, error) // the controllers that the network remembers
	Describe(context.Context) health.Snapshot                   // the network; nothing where the term does not answer
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// A Gauge shows a value.
type Gauge interface {
	Set(float64, ...string)
}

// A Config is what a process needs of others.
type Config struct {
	config.Config
	Store    Store
	Log      *slog.Logger
	Registry *obs.Metrics
	Leads    Gauge   // 1 while it leads
	Terms    Counter // that began
	Refused  Counter // calls, by why
	// Begin begins a term: it takes up what is stored. The term ends itself by calling end with the reason.
	Begin func(ctx context.Context, state store.State, end func(error)) (Term, error)
}

// A Process is that of one controller among those of its network. A controller that is alone leads from its start to its
// end.
type Process struct {
	Watch *verdict.Watch     // what is wrong
	Gate  *gate.Gate         // nil where the network is open
	Peers *controllers.Peers // who else runs, and who leads

	cfg     Config
	store   Store
	log     *slog.Logger
	onward  *onward // calls of other controllers
	began   time.Time
	term    atomic.Pointer[term] // nil while it stands by
	standby http.Handler
	leads   chan struct{} // closed when the first term has begun
	first   sync.Once
}

// A term is one that runs, until its context ends.
type term struct {
	Term
	ctx context.Context
}

// New is a process that has not asked the store yet.
func New(cfg Config) *Process {
	c := &Process{cfg: cfg, store: cfg.Store, log: cfg.Log, began: time.Now(), Peers: controllers.NewPeers(), leads: make(chan struct{})}
	if cfg.Trust == config.TrustKeys {
		c.Gate = gate.New(cfg.Name, strings.TrimPrefix(cfg.Socket, "unix:"), c.refused)
	}
	c.onward = &onward{who: c.Gate.Client(), by: c.Gate.Certifying, clients: map[string]*http.Client{}}
	c.Watch = verdict.New(c.facts)
	c.standby = c.standbyHandler()
	return c
}

func (c *Process) refused(ctx context.Context, path string, err error) {
	c.cfg.Refused.Inc(connect.CodeOf(err).String())
	if t := c.term.Load(); t != nil {
		t.RefusedCall(ctx, path, err)
	}
}

// ServeHTTP is the API: of the term that runs, or of a standby.
func (c *Process) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	t.Term.ServeHTTP(w, r.WithContext(ctx))
}
