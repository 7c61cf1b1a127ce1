package controld

import (
	"context"
	"log/slog"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/access"
	"scaffold.dev/scaffold/internal/controller/controld/boost"
	"scaffold.dev/scaffold/internal/controller/controld/certificates"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/controllers"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/explain"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/grace"
	"scaffold.dev/scaffold/internal/controller/controld/links"
	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/controller/controld/loop"
	"scaffold.dev/scaffold/internal/controller/controld/members"
	"scaffold.dev/scaffold/internal/controller/controld/notes"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/controld/overrides"
	"scaffold.dev/scaffold/internal/controller/controld/places"
	"scaffold.dev/scaffold/internal/controller/controld/pledges"
	"scaffold.dev/scaffold/internal/controller/controld/pushes"
	"scaffold.dev/scaffold/internal/controller/controld/redirects"
	"scaffold.dev/scaffold/internal/controller/controld/registrations"
	"scaffold.dev/scaffold/internal/controller/controld/routers"
	"scaffold.dev/scaffold/internal/controller/controld/saving"
	"scaffold.dev/scaffold/internal/controller/controld/services"
	"scaffold.dev/scaffold/internal/controller/controld/silences"
	"scaffold.dev/scaffold/internal/controller/controld/tunnels"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A network is all that the controller knows. The loop owns it; fields of the first group are for
// every goroutine.
type network struct {
	cfg     config.Config
	log     *slog.Logger
	loop    *loop.Loop
	saver   *saving.Saver
	metrics metrics
	census  census
	process *process
	resign  func(error) // ends the term: another one begins with what is stored

	id            string // tells networks of one name apart
	controllers   *controllers.Controllers
	orders        *orders.Orders
	gate          *gate.Gate // nil where it is open; for every goroutine
	members       *members.Members
	epoch         uint64
	started       time.Time
	names         *names.Table
	plan          *plan.Plan
	hosts         map[string]*host
	places        *places.Places
	redirects     *redirects.Redirects
	routers       *routers.Routers
	pushes        *pushes.Pushes   // to routers
	identities    map[uint64]*host // who had it last
	locators      *locators.Locators
	pledges       *pledges.Pledges
	certificates  *certificates.Certificates
	overrides     *overrides.Overrides
	access        *access.Lists
	registrations *registrations.Registrations
	services      *services.Services
	explain       *explain.Network
	switchFlows   map[switchFlowKey]store.SwitchFlow // that operators want switches to have
	notes         *notes.Notes
	silences      *silences.Silences // of hosts
	links         *links.Links
	tunnels       *tunnels.Tunnels
	boost         *boost.Boost
	events        *events.History
	// changedHands: since the last flush an instance became ready, or a host fell silent or came back.
	changedHands bool
	unrecorded   bool // the store may lack what hosts serve
	grace        *grace.Grace
	fullTold     map[string]time.Time       // when, by what is full
	notSaved     error                      // what is wrong with the store
	notSince     time.Time                  // since when
	restored     *store.Restored            // nil unless the state is that of a backup, of which not all may be true any more
	unknown      map[sid.ServiceID]struct{} // that hosts serve and the backup does not know
}

func newNetwork(c *process, s *saving.Saver, log *slog.Logger) *network {
	n := &network{
		cfg: c.cfg, log: log, loop: loop.New(), saver: s, process: c, gate: c.Gate, metrics: c.metrics,
		started:     time.Now(),
		names:       names.NewTable(c.cfg.Domain),
		plan:        plan.New(c.cfg.Space),
		hosts:       make(map[string]*host),
		identities:  make(map[uint64]*host),
		pledges:     pledges.New(time.Now),
		fullTold:    make(map[string]time.Time),
		switchFlows: make(map[switchFlowKey]store.SwitchFlow),
	}
	n.events = events.NewHistory(n.loop, s, n.metrics.events, log)
	n.notes = notes.New(n.events, n.names, n.metrics.refusedEvents)
	n.pushes = newPushes(n)
	n.links = links.New(n.plan, s, n.events, n.metrics.refusedLinks)
	n.redirects = redirects.New(n.plan, ways{n}, s, n.loop, c.cfg.RedirectFor)
	n.controllers = controllers.New(c.cfg.Name, s, n.events, n.tellControllers)
	n.locators = newLocators(n)
	n.overrides = newOverrides(n)
	n.silences = silences.New(n.plan, n.names, silenced{n}, n.loop)
	n.access = access.New(n.names, accessHosts{n}, n.events, func(id sid.ServiceID) { n.registrations.Changed(id) })
	n.registrations = newRegistrations(n)
	n.services = newServices(n)
	n.explain = newExplain(n)
	n.places = newPlaces(n)
	n.tunnels = tunnels.New(tunnelEnds{n}, n.loop, n.events)
	n.orders = orders.New(orders.Config{
		Controller: c.cfg.Name, Loop: n.loop, Saver: s, History: n.events, Flush: n.flush, Saved: n.saved, Resign: func(err error) { n.resign(err) },
	})
	n.members = members.New(members.Config{
		Network: c.cfg.Network, Domain: c.cfg.Domain, Name: c.cfg.Name, Trust: c.cfg.Trust, CredentialFor: c.cfg.CredentialFor,
		CertifyFor: c.cfg.CertifyFor, KeyOverlap: c.cfg.KeyOverlap, Announce: c.cfg.Announce,
	}, members.Surroundings{
		Gate: c.Gate, Network: membership{n}, Orders: orderly{n.orders, n.pushes}, Loop: n.loop, Saver: s, Events: n.events, Refused: n.metrics.refusedTokens, Log: log,
	})
	n.grace = newGrace(n)
	n.routers = newRouters(n)
	n.certificates = newCertificates(n)
	n.boost = newBoost(n)
	n.resign = func(error) {}
	n.export(n.metrics.registry)
	return n
}

// restore takes up what the store holds. It runs before the loop does.
func (n *network) restore(ctx context.Context, state store.State) error {
	n.epoch = state.Epoch
	n.pushes.Begin(state.Epoch)
	n.id = state.ID
	n.events.Restore(state)
	n.controllers.Restore(state.Controllers)
	if err := n.takeKey(ctx, state); err != nil {
		return err
	}
	n.members.Restore(state)
	for _, r := range state.Services {
		if err := n.services.Restore(r); err != nil {
			return err
		}
		if n.services.Holdable(r.Policy) != nil {
			n.events.Tell("service.policy", r.Name, "its failover=continue cannot hold in an open network: flows are reset")
		}
	}
	for _, s := range state.Served {
		n.registrations.Restore(s.Service)
	}
	for _, o := range state.Overrides {
		n.overrides.Set(o)
	}
	for _, r := range state.Routers {
		n.routers.Restore(r)
	}
	for _, l := range state.Links {
		n.links.Restore(l)
	}
	n.restored = state.Restored
	for _, h := range state.Hosts {
		n.remember(h)
	}
	n.certificates.Restore(state, n.cfg.Trust == config.TrustKeys)
	for _, q := range state.Quarantines {
		n.locators.Hold(q.Locator, q.Host)
		n.locators.LetIn(store.Place{Locator: q.Locator}, q.Host)
		n.plan.SetLeft(q.Locator, true)
	}
	for _, f := range state.SwitchFlows {
		n.switchFlows[switchFlowKey{f.Switch, f.Number}] = f
	}
	for _, r := range state.Redirects {
		n.redirects.Restore(r)
	}
	n.boost.Restore(state.Boost, state.Epoch)
	kind, text := "controller.start", "controller started"
	if n.process.store.Elected() {
		kind, text = "controller.lead", "controller leads"
	}
	n.events.Tell(kind, n.cfg.Name, text, "epoch", events.Number(n.epoch),
		"services", events.Number(uint64(len(state.Services))), "hosts", events.Number(uint64(len(state.Hosts))))
	if d := config.Shadows(n.cfg.Domain); d != "" {
		n.log.Warn("names of this public domain are hidden from the network's hosts; a subdomain of it would hide none", "domain", d)
	}
	n.afterRestore()
	n.members.Watch()
	n.grace.Begin(n.recall(state))
	n.tunnels.Watch()
	return n.createAtStart(ctx)
}

// flush sends what follows from the changes since the last time. The loop calls it after each batch.
func (n *network) flush() {
	n.access.Move()
	n.registrations.Flush()
	n.boost.Flush()
	if !n.grace.Over() {
		return
	}
	n.record()
	n.pushes.Push(n.plan.Drain())
	if n.changedHands {
		n.changedHands = false
		n.silences.Look()
	}
	n.routers.Each(func(r routers.Router, _ *routers.Session) {
		if r.Reported { // without its links it would lose its routes
			n.pushes.Complete(r.Name)
		}
	})
	if n.redirects.Lead() {
		n.pushes.Push(n.plan.Drain())
	}
	n.pushes.Wake()
	n.overrides.Flush()
}

// remember puts a host of before the restart back in its place.
func (n *network) remember(stored store.Host) {
	h := &host{Host: places.Host{Host: stored, Doubted: n.restored != nil && stored.Here}}
	n.hosts[h.Name] = h
	n.places.Own(&h.Host)
	if h.Here {
		n.identify(h)
		n.places.Remember(&h.Host)
	}
}

func (n *network) space() *apiv1.Space {
	s := n.cfg.Space
	return &apiv1.Space{Services: s.Services.String(), As: s.AS.String(), Identities: s.Identities.String()}
}
