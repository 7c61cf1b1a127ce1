package boost

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/boost/legs"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/trust"
)

// A Session is an agent's stream.
type Session = session.Session[apiv1.BoostOrder]

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

// A Loop runs what is to be done in the goroutine that owns the agents.
type Loop interface {
	After(time.Duration, func())
	Ask(context.Context, func()) error
}

// Orders carry out what operators order.
type Orders interface {
	Do(ctx context.Context, check func() (orders.Change, error)) error
}

// A Config is what agents need of others.
type Config struct {
	Trust    string        // "open", "keys"
	Patience time.Duration // how long an agent that is away keeps its lanes, and a new leader waits for those of before
	Members  Members
	Events   Events
	Saver    Saver
	Loop     Loop
	Orders   Orders
	Accept   func() *apiv1.BoostJoined // what each is told that joins
	Network  Network                   // in which names are served; nil: none are carried
}

// Patience is how long an agent may be away, by default: agents are asked one after the other, so that one which died costs a
// connection nothing, and one which only lost its controller should not lose its lanes.
const Patience = 10 * time.Second

// A Boost is the agents, sites and entries of one network. The loop owns it.
type Boost struct {
	Config
	sites   map[string]store.BoostSite
	entries map[string]store.BoostEntry
	agents  map[string]*agent

	generation uint64              // of what agents were told
	waits      map[string]bool     // agents of before that have not come yet; empty: nothing is waited for
	lanes      []lane.Lane         // as planned last
	named      []lane.Lane         // of names, the same
	names      []lane.Name         // that these were planned from
	hosts      map[string]string   // of agents that can serve names, by agent
	held       map[uint64]heldLane // by number, until this leader has planned
	unserved   map[string]lack     // by entry
	rtt        map[pair]time.Duration
	switches   switches
	legs       *legs.Legs
	untold     bool // agents may have to be told something
	stale      bool // something changed that lanes are made from
	kept       bool // an agent has lanes that it would not have with fewer connections (forwarding.go)
	clock      func() time.Time
	wake       time.Time // when an entry begins or ends next; zero: none does
	armed      time.Time // when a timer looks next whether it is time; zero: none runs
}

type pair [2]string // near, far

// A heldLane is one as an agent says that it has it, and how new that word is.
type heldLane struct {
	lane.Lane
	generation uint64
}

// A lack is why nobody carries an entry's connections, and since when.
type lack struct {
	why   string
	since time.Time
}

// An agent is one that ever joined.
type agent struct {
	store.BoostAgent
	session  *Session // nil: it is away
	bootID   string
	version  string
	since    time.Time        // of its coming or going
	load     *apiv1.BoostLoad // as it said last; of one that is away lanes are planned with it, and nobody is shown it
	told     *apiv1.BoostLanes
	toldAt   time.Time
	toldAs   string                      // of which site
	holds    map[uint64]*apiv1.BoostLane // of the last that it has applied, those at whose near end it is
	late     time.Time                   // since when it is to get lanes that far agents do not have yet; zero: it is not
	applied  uint64
	trouble  string      // why it has not applied what it was told
	names    bool        // it knows lanes that are named
	rewrites bool        // and those that are rewritten
	stops    lane.Family // of which its machine forwards nothing
	stopped  time.Time   // since when

	sessions map[sessionKey]carried // at whose near end it is; of one that is away those that it had
	waits    map[farKey]waitsFor    // of sessions at whose far end it is
	retold   bool                   // it has told them on this stream, all at first

	announceKey []byte    // proves what it announces at its ports; nil: it has none
	announced   uint64    // number of the last that counted
	heard       time.Time // last that it said anything here
	has         map[uint64]*apiv1.BoostLane
}

// New knows of none.
func New(cfg Config) *Boost {
	x := &Boost{
		Config: cfg, sites: map[string]store.BoostSite{}, entries: map[string]store.BoostEntry{}, agents: map[string]*agent{},
		waits: map[string]bool{}, unserved: map[string]lack{}, rtt: map[pair]time.Duration{}, held: map[uint64]heldLane{}, clock: time.Now,
		switches: newSwitches(),
	}
	x.legs = legs.New(around{x}, x.Patience)
	return x
}

// Restore takes up what is stored, and waits for the agents of before.
func (x *Boost) Restore(state store.Boost, epoch uint64) {
	x.generation = epoch << 32 // told by this leader: above all that was told by one before
	for _, s := range state.Sites {
		x.sites[s.Name] = s
		x.nameSwitches(s)
	}
	for _, e := range state.Entries {
		x.entries[e.Name] = e
	}
	for _, a := range state.Agents {
		x.agents[a.Name] = &agent{BoostAgent: a, since: x.clock()}
		x.waits[a.Name] = true
		if len(x.sites[x.siteOf(a.Name)].Switches) > 0 {
			x.switches.unseen[a.Name] = true
		}
	}
	x.stale = true
	if len(x.waits) > 0 {
		x.Loop.After(x.Patience, func() { // the flush after it plans
			clear(x.waits)
			clear(x.switches.unseen)
		})
	}
}

// Forget takes an agent out of the network: who has a trunk to it ends that.
func (x *Boost) Forget(name string) {
	a := x.agents[name]
	if a == nil {
		return
	}
	if a.session != nil {
		a.session.End(session.ErrRevoked)
	}
	delete(x.agents, name)
	delete(x.waits, name)
	delete(x.switches.unseen, name)
	x.unsee(name, "it is forgotten")
	x.legs.Forget(name)
	maps.DeleteFunc(x.rtt, func(p pair, _ time.Duration) bool { return p[0] == name || p[1] == name })
	x.Saver.Later(store.DeleteBoostAgent(name))
	x.stale = true
}

// Each calls f with the stream of each agent that is here.
func (x *Boost) Each(f func(*Session)) {
	for _, a := range x.agents {
		if a.session != nil {
			f(a.session)
		}
	}
}

// Known reports whether there is an agent of the name.
func (x *Boost) Known(name string) bool { return x.agents[name] != nil }

// siteOf is the site that an agent serves; "": none.
func (x *Boost) siteOf(agent string) string {
	for _, s := range x.sites {
		if slices.Contains(s.Agents, agent) {
			return s.Name
		}
	}
	return ""
}

// planned are sites as lanes are planned from them.
func planned(sites map[string]store.BoostSite) (list []lane.Site) {
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		s := lane.Site{Name: name, Agents: len(sites[name].Agents), Switched: len(sites[name].Switches) > 0}
		for _, p := range sites[name].Prefixes {
			s.Prefixes = append(s.Prefixes, netip.MustParsePrefix(p)) // looked at before it was stored
		}
		list = append(list, s)
	}
	return list
}

func plannedEntries(entries map[string]store.BoostEntry) (list []lane.Entry) {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		list = append(list, lane.Entry{
			Name: e.Name, Client: netip.MustParsePrefix(e.Client), Server: netip.MustParsePrefix(e.Server), Port: e.Port, From: e.From, Until: e.Until, AtOnce: e.AtOnce, Rewrite: e.Rewrite,
		})
	}
	return list
}
