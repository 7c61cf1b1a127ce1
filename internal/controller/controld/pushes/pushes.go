package pushes

import (
	"context"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/core/plan"
)

// A Plan knows all the rules of a router.
type Plan interface {
	Snapshot(router string) plan.Rules
}

// A Session is a router's stream.
type Session interface {
	Send(*apiv1.RouterOrder) bool
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Loop runs what is asked of it in the goroutine that owns the pushes.
type Loop interface {
	Ask(context.Context, func()) error
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// A Histogram sorts seconds.
type Histogram interface {
	Observe(v float64, values ...string)
}

// A Config is what pushes need of others.
type Config struct {
	Plan      Plan
	Events    Events
	Loop      Loop
	Settling  func() bool // no rules are sent yet: it is not known who is here
	Filter    func() bool // routers are to filter by the sources that they are told: all are known
	Orders    Counter     // messages with rules
	Snapshots Counter
	Applying  Histogram // seconds from sending rules until they are applied
}

// Pushes are those to all routers of a network. The loop owns them.
type Pushes struct {
	Config
	generation uint64 // of the rules
	routers    map[string]*router
	waits      map[*wait]struct{}
}

// A router is one that ever joined.
type router struct {
	service  bool
	session  Session   // nil while it is away: it forwards by what it knows
	synced   bool      // the session has had its snapshot
	told     uint64    // generation of the last rules sent to it
	applied  uint64    // and of those that it has applied
	sendings []sending // that it has not applied
	failed   string    // why it could not apply the last rules
	failedAt time.Time
}

// New knows no router.
func New(cfg Config) *Pushes {
	return &Pushes{Config: cfg, routers: make(map[string]*router), waits: make(map[*wait]struct{})}
}

// Begin numbers the rules of an epoch: generations grow over restarts, too.
func (x *Pushes) Begin(epoch uint64) { x.generation = epoch << 32 }

// Generation is that of the rules that were sent last.
func (x *Pushes) Generation() uint64 { return x.generation }

// Know takes a router into account; service says that it resolves first packets.
func (x *Pushes) Know(name string, service bool) {
	if x.routers[name] == nil {
		x.routers[name] = new(router)
	}
	x.routers[name].service = service
}

// Forget is for a router that is none of the network's any more.
func (x *Pushes) Forget(name string) { delete(x.routers, name) }

// Joined is told that a session of a router that is known began: it has no rules of ours yet.
func (x *Pushes) Joined(name string, s Session) {
	r := x.routers[name]
	r.session, r.synced, r.failed = s, false, ""
}

// Left is told that a router's session ended.
func (x *Pushes) Left(name string) {
	r := x.routers[name]
	r.session, r.synced, r.sendings = nil, false, nil
}

// Applied takes a router's word of what it has applied.
func (x *Pushes) Applied(name string, a *apiv1.Applied) {
	r := x.routers[name]
	r.applied = a.GetGeneration()
	x.arrived(r)
	if r.failed = events.Shortened(a.GetError()); r.failed != "" {
		r.failedAt = time.Now()
	}
	if a.GetError() != "" {
		x.Events.Tell("router.error", name, events.Because("router could not apply its rules", a.Error), "generation", events.Number(a.Generation))
	}
}

// A Progress is how far a router is with its rules.
type Progress struct {
	Service  bool
	Synced   bool // it is here, and has had all rules once
	Told     uint64
	Applied  uint64
	Waiting  int       // changes on their way to it
	Since    time.Time // since when the first of these
	Failed   string    // why it could not apply the last rules
	FailedAt time.Time
}

// Of is a router's progress.
func (x *Pushes) Of(name string) Progress {
	r := x.routers[name]
	if r == nil {
		return Progress{}
	}
	p := Progress{Service: r.service, Synced: r.session != nil && r.synced, Told: r.told, Applied: r.applied, Waiting: len(r.sendings), Failed: r.failed, FailedAt: r.failedAt}
	if p.Waiting > 0 {
		p.Since = r.sendings[0].at
	}
	return p
}

// Lags are how many changes each router that is here has not applied yet.
func (x *Pushes) Lags() map[string]int {
	lags := make(map[string]int)
	for name, r := range x.routers {
		if r.session != nil {
			lags[name] = len(r.sendings)
		}
	}
	return lags
}
