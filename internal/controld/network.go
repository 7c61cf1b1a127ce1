package controld

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// A network is all that the controller knows. The loop owns it; fields of the first group are for
// every goroutine.
type network struct {
	cfg     Config
	log     *slog.Logger
	loop    *loop
	saver   *saver
	health  *obs.Health
	metrics metrics
	census  census
	seat    *seat
	resign  func(error) // ends the term: another one begins with what is stored

	id          string // tells networks of one name apart
	controllers map[string]store.Controller
	running     map[string]store.Candidate // nil until it is known
	key         ed25519.PrivateKey         // the network's; nil where it is open
	authority   *trust.Authority           // of the key
	gate        *gate                      // nil where it is open; for every goroutine
	members     map[memberName]store.Member
	tokens      map[string]store.Token // by id
	strangers   meter                  // of what is told of those who were refused
	epoch       uint64
	generation  uint64 // of the rules: epoch<<32 and a count, so that it grows over restarts too
	started     time.Time
	names       *names.Table
	plan        *plan.Plan
	hosts       map[string]*host
	places      map[sid.Locator]*attachment // of hosts that are here
	redirects   map[sid.Locator]*redirect   // by the locator that was left
	routers     map[string]*router
	blocks      map[uint8]string     // router names
	owned       map[sid.Locator]int  // hosts that are known for the place, here or not
	identities  map[uint64]*host     // who had it last
	quarantine  map[sid.Locator]held // only who had it may have it again
	holds       uint64               // quarantines begun
	overrides   map[overrideKey]store.Override
	guards      guards
	switchFlows map[switchFlowKey]store.SwitchFlow // that operators want switches to have
	notes       meter
	tunnels     tunnels
	news        map[*host][]*apiv1.ServicePolicy // for hosts, since the last flush
	events      *history
	waits       map[*wait]struct{}
	ordering    map[overrideKey]*orderWait // drains that hosts are not told of yet
	// changedHands: since the last flush an instance became ready, or a host fell silent or came back.
	changedHands bool
	grace        *grace                     // nil once rules are sent
	second       store.Authority            // the network's second key, while there is one
	keysEdition  uint64                     // of the network's keys
	admin        *adminAPI                  // by which the network orders itself what must be saved first
	fullTold     map[string]time.Time       // when, by what is full
	notSaved     error                      // what is wrong with the store
	restored     *store.Restored            // nil unless the state is that of a backup, of which not all may be true any more
	unknown      map[sid.ServiceID]struct{} // that hosts serve and the backup does not know
}

type overrideKey struct {
	service sid.ServiceID
	host    string
}

func newNetwork(c *seat, s *saver, log *slog.Logger) *network {
	n := &network{
		cfg: c.cfg, log: log, loop: newLoop(), saver: s, seat: c, gate: c.gate, health: c.health, metrics: c.metrics,
		controllers: make(map[string]store.Controller),
		started:     time.Now(),
		names:       names.NewTable(c.cfg.Domain),
		plan:        plan.New(c.cfg.Space),
		hosts:       make(map[string]*host),
		places:      make(map[sid.Locator]*attachment),
		redirects:   make(map[sid.Locator]*redirect),
		routers:     make(map[string]*router),
		blocks:      make(map[uint8]string),
		owned:       make(map[sid.Locator]int),
		identities:  make(map[uint64]*host),
		quarantine:  make(map[sid.Locator]held),
		fullTold:    make(map[string]time.Time),
		overrides:   make(map[overrideKey]store.Override),
		guards:      newGuards(),
		switchFlows: make(map[switchFlowKey]store.SwitchFlow),
		waits:       make(map[*wait]struct{}),
		ordering:    make(map[overrideKey]*orderWait),
		news:        make(map[*host][]*apiv1.ServicePolicy),
		members:     make(map[memberName]store.Member),
		tokens:      make(map[string]store.Token),
		events:      newHistory(),
		tunnels:     tunnels{all: make(map[uint32]*tunnel), waits: make(map[*tunnelWait]struct{})},
	}
	n.admin = &adminAPI{n: n}
	n.export(n.metrics.registry)
	return n
}

// restore takes up what the store holds. It runs before the loop does.
func (n *network) restore(ctx context.Context, state store.State) error {
	n.epoch = state.Epoch
	n.generation = state.Epoch << 32
	n.id = state.ID
	for _, c := range state.Controllers {
		n.controllers[c.Name] = c
	}
	if err := n.takeKey(ctx, state.Key, state.Second); err != nil {
		return err
	}
	n.restoreMembers(state)
	for _, r := range state.Services {
		if err := n.names.Add(r); err != nil {
			return err
		}
		n.plan.SetService(r.ID, planPolicy(r))
		n.watchGuard(r)
		if n.holdable(r.Policy) != nil {
			n.event("service.policy", r.Name, "its failover=continue cannot hold in an open network: flows are reset")
		}
	}
	for _, o := range state.Overrides {
		n.setOverride(o)
	}
	for _, r := range state.Routers {
		n.knowRouter(r)
	}
	for _, l := range state.Links {
		n.rememberLinks(l)
	}
	n.restored = state.Restored
	for _, h := range state.Hosts {
		n.remember(h)
	}
	for _, q := range state.Quarantines {
		n.hold(q.Locator, q.Host)
		n.plan.SetLeft(q.Locator, true)
	}
	for _, f := range state.SwitchFlows {
		n.switchFlows[switchFlowKey{f.Switch, f.Number}] = f
	}
	for _, r := range state.Redirects {
		n.takeUp(r)
	}
	kind, text := "controller.start", "controller started"
	if n.seat.store.Elected() {
		kind, text = "controller.lead", "controller leads"
	}
	n.event(kind, n.cfg.Name, text, "epoch", uitoa(n.epoch),
		"services", uitoa(uint64(len(state.Services))), "hosts", uitoa(uint64(len(state.Hosts))))
	if d := shadows(n.cfg.Domain); d != "" {
		n.log.Warn("names of this public domain are hidden from the network's hosts; a subdomain of it would hide none", "domain", d)
	}
	n.afterRestore()
	n.watchAuthority()
	n.beginGrace()
	n.loop.after(tunnelSweep, n.sweepTunnels)
	return n.createAtStart(ctx)
}

// flush sends what follows from the changes since the last time. The loop calls it after each batch.
func (n *network) flush() {
	n.moveGuards()
	n.tellNews()
	if n.grace != nil && !n.grace.over(n) {
		return
	}
	n.push(n.plan.Drain())
	if n.changedHands {
		n.changedHands = false
		n.replaced()
	}
	for _, r := range n.routers {
		if r.session != nil && r.reported && !r.synced { // without its links it would lose its routes
			n.snapshot(r)
		}
	}
	if n.lead() {
		n.push(n.plan.Drain())
	}
	n.wake()
	n.orders()
}

// remember puts a host of before the restart back in its place; what it serves it tells itself.
func (n *network) remember(stored store.Host) {
	h := &host{Host: stored, doubted: n.restored != nil && stored.Here}
	n.hosts[h.Name] = h
	n.own(h)
	if !h.Here {
		return
	}
	n.identify(h)
	n.settleHost(h)
	for _, at := range n.at(h) {
		at.answered = true
	}
}

func (n *network) setOverride(o store.Override) {
	key := overrideKey{o.Service, o.Host}
	n.overrides[key] = o
	if !o.Set && !o.Drain {
		delete(n.overrides, key)
	}
	n.plan.SetOverride(o.Service, o.Host, plan.Override{Weight: o.Weight, Set: o.Set, Drain: o.Drain})
}

// saved is told by the saver whether writing works. It runs outside the loop.
func (n *network) saved(err error) {
	n.health.Set("store", err)
	n.loop.post(func() { n.noteSaved(err) })
}

func (n *network) noteSaved(err error) {
	was := n.notSaved
	n.notSaved = err
	switch {
	case err != nil && was == nil:
		n.metrics.storeErrors.Inc()
		n.event("store.failing", n.cfg.Name, "state is not saved, the network goes on from memory and saving is tried again: "+err.Error())
	case err == nil && was != nil:
		n.event("store.back", n.cfg.Name, "state is saved again")
	}
}

func (n *network) space() *apiv1.Space {
	s := n.cfg.Space
	return &apiv1.Space{Services: s.Services.String(), As: s.AS.String(), Identities: s.Identities.String()}
}
