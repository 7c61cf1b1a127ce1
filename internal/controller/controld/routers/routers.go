package routers

import (
	"context"
	"maps"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/pushes"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// A Session is a router's stream.
type Session = session.Session[apiv1.RouterOrder]

// A Plan makes rules for routers.
type Plan interface {
	SetRouter(plan.Router)
	RemoveRouter(name string)
}

// Links are what routers report of each other.
type Links interface {
	Know(router string)
	Joined(router string)
	Left(router string)
	Forgotten(router string)
	Report(router string, m *apiv1.Neighbours)
	AnyTo(router string) bool // a neighbour hears it
}

// Pushes are the rules that routers are told.
type Pushes interface {
	Know(router string, service bool)
	Joined(router string, s pushes.Session)
	Left(router string)
	Forget(router string)
	Applied(router string, a *apiv1.Applied)
}

// Tunnels are those that routers offer to hosts.
type Tunnels interface {
	Joined(router string, j *apiv1.RouterJoin)
	Made(router string, m *apiv1.TunnelsMade)
	Forgotten(router string)
}

// Places are those of the hosts at a router.
type Places interface {
	Joined(router string)
	Said(router string, states []*apiv1.HostState)
	Unreachable(router string)
}

// Members are those of a network with keys.
type Members interface {
	Member(role trust.Role, name string) (store.Member, bool)
	Succeeded(role trust.Role, name string, key []byte) bool
	Fresh(gate.Peer) *apiv1.Credential // nil: there is no need
	RenewLater(session context.Context, p gate.Peer, send func(*apiv1.Credential))
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// A Loop runs what is to be done later in the goroutine that owns the routers.
type Loop interface {
	After(time.Duration, func())
}

// A Counter counts.
type Counter interface {
	Inc(values ...string)
}

// A Config is what routers need of others.
type Config struct {
	Network string
	Space   sid.Space
	Lease   time.Duration // how long a router that is away is trusted
	Plan    Plan
	Links   Links
	Pushes  Pushes
	Tunnels Tunnels
	Places  Places
	Members Members
	Events  Events
	Saver   Saver
	Loop    Loop
	Dropped Counter                         // streams that did not read
	Waits   func() bool                     // it is not known yet which blocks others have
	Full    func(network string, err error) // no block is left
	Accept  func() *apiv1.RouterJoined      // what each is told that joins
}

// Routers are those of one network. The loop owns them.
type Routers struct {
	Config
	all    map[string]*router
	blocks map[uint8]string // whose they are
}

// A Router is one that ever joined; its block is its for life.
type Router struct {
	store.Router
	Here     bool   // its stream stands; else it forwards by what it knows
	Reported bool   // the session has told its links
	Version  string // of its daemon
	Protocol uint32 // version of its stream
	Counters *apiv1.RouterCounters
	Away     time.Time     // when its stream ended
	Ahead    time.Duration // of its clock, before ours
}

type router struct {
	Router
	session  *Session
	bootID   string
	absences uint64 // ends of streams
}

// New knows of none.
func New(cfg Config) *Routers {
	return &Routers{Config: cfg, all: make(map[string]*router), blocks: make(map[uint8]string)}
}

// Restore takes up a router of before, which is not here.
func (x *Routers) Restore(r store.Router) { x.know(r) }

func (x *Routers) know(r store.Router) *router {
	have := &router{Router: Router{Router: r}}
	x.all[r.Name] = have
	x.Links.Know(r.Name)
	x.Pushes.Know(r.Name, r.Service)
	x.blocks[r.Block] = r.Name
	x.Plan.SetRouter(x.planned(r))
	return have
}

func (x *Routers) planned(r store.Router) plan.Router {
	return plan.Router{Name: r.Name, Service: r.Service, Locator: x.locator(r.Block)}
}

// locator is a block's first one: the router's own.
func (x *Routers) locator(block uint8) sid.Locator { return x.Space.Locator(uint16(block) << 8) }

// Of is a router; false where there is none of the name.
func (x *Routers) Of(name string) (Router, bool) {
	r := x.all[name]
	if r == nil {
		return Router{}, false
	}
	return r.Router, true
}

// Here reports whether a router's stream stands.
func (x *Routers) Here(name string) bool { return x.all[name] != nil && x.all[name].Here }

// Block is the first locator of a router's block, its own; false where there is no such router.
func (x *Routers) Block(name string) (sid.Locator, bool) {
	r := x.all[name]
	if r == nil {
		return 0, false
	}
	return x.locator(r.Block), true
}

// Names are those of all.
func (x *Routers) Names() []string { return slices.Sorted(maps.Keys(x.all)) }

// Connected is how many are here.
func (x *Routers) Connected() (count int) {
	for _, r := range x.all {
		if r.Here {
			count++
		}
	}
	return count
}

// Each calls f for each that is here, with its session.
func (x *Routers) Each(f func(Router, *Session)) {
	for _, r := range x.all {
		if r.Here {
			f(r.Router, r.session)
		}
	}
}

// Order sends a router something that is here.
func (x *Routers) Order(name string, o *apiv1.RouterOrder) { x.all[name].session.Send(o) }
