package places

import (
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/sid"
)

// A Plan makes rules of places.
type Plan interface {
	SetHost(plan.Host)
	RemoveHost(l sid.Locator)
	SetHostState(l sid.Locator, s plan.HostState) bool
	Prefer(l sid.Locator) bool
	SetHeld(l sid.Locator, host, router, port string)
	HeldBy(l sid.Locator) string
	SetLeft(l sid.Locator, left bool)
}

// Locators are given, left and kept.
type Locators interface {
	For(locators.Ask) (sid.Locator, error)
	Own(before []sid.Locator, now []store.Place) (counted []sid.Locator)
	Hold(l sid.Locator, host string)
	Held(l sid.Locator) (host string, kept bool)
	LetIn(p store.Place, host string)
	Reclaim(l sid.Locator)
}

// Redirects send what comes for a place that was left after its host.
type Redirects interface {
	Begin(host string, from, to sid.Locator)
	End(from sid.Locator)
	Abandon(from sid.Locator)
	Forget(host string)
}

// Silences are of hosts that do not answer anywhere.
type Silences interface {
	Since(host string) (_ time.Time, silent bool)
	Begin(host string)
	End(host string)
}

// Access follows hosts whose locators change.
type Access interface {
	TouchHost(host string)
}

// Routers are those that ever joined.
type Routers interface {
	Block(name string) (first sid.Locator, known bool) // the locator before the first of its hosts
	Here(name string) bool                             // it has a session
	Forgotten(name string) bool                        // it was one, and is none any more
}

// Hosts are told what a silence means for them, and for others.
type Hosts interface {
	Connected(host string) bool
	Lease(host string)                    // it is gone: whether it stays in the network is decided in a while
	Back(host string)                     // it answers again
	Gone(host string, locators ...uint64) // all others are told that its flows may have lost their peer
	Certificate(host string, key []byte, l sid.Locator) []byte
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// A Config is what places need of others.
type Config struct {
	Plan      Plan
	Locators  Locators
	Redirects Redirects
	Silences  Silences
	Access    Access
	Routers   Routers
	Hosts     Hosts
	Events    Events
	Saver     Saver
	Waits     func() bool                    // it is not known yet what hosts of before have
	Restored  func() bool                    // the state is that of a backup
	Full      func(router string, err error) // a router has no locator left
	Changed   func()                         // a host fell silent or came back
}

// Most is how many places a host may have: as many locators as its edge takes.
const Most = 16

// A Host is one that ever joined, as far as where it is.
type Host struct {
	store.Host
	Doubted bool          // only a restored backup says that it is here
	owns    []sid.Locator // as counted by the locators
}

// An attachment is a place of a host that is here, with what its router says of it.
type attachment struct {
	store.Place
	host     *Host
	state    plan.HostState
	answered bool // a probe, in this stay: silence before that is a host that sets itself up
}

// Places are those of all hosts of a network. The loop owns them.
type Places struct {
	Config
	all  map[sid.Locator]*attachment               // of hosts that are here
	said map[string]map[sid.Locator]plan.HostState // by routers, in their sessions of now or the last ones
	came map[string]time.Time                      // when these began
}

// New has no host anywhere.
func New(cfg Config) *Places {
	return &Places{Config: cfg, all: make(map[sid.Locator]*attachment), said: make(map[string]map[sid.Locator]plan.HostState), came: make(map[string]time.Time)}
}

// All are the host's places, the preferred one first; after it left, those that it had.
func (h *Host) All() []store.Place { return append([]store.Place{h.Place}, h.Others...) }

// Has reports whether a locator is of one of the host's places.
func (h *Host) Has(l sid.Locator) bool {
	return slices.ContainsFunc(h.All(), func(p store.Place) bool { return p.Locator == l })
}

// Locators are those of all places of the host.
func (h *Host) Locators() (list []uint64) {
	for _, p := range h.All() {
		list = append(list, uint64(p.Locator))
	}
	return list
}

// at are the attachments of a host that is here, the preferred one first.
func (x *Places) at(h *Host) (list []*attachment) {
	for _, p := range h.All() {
		if at := x.all[p.Locator]; at != nil && at.host == h {
			list = append(list, at)
		}
	}
	return list
}

// Save stores what is known of a host, soon. The saver reads it beside the loop, so it gets places of its own.
func (x *Places) Save(h *Host) {
	record := h.Host
	record.Others = slices.Clone(h.Others)
	x.Saver.Later(store.PutHost(record))
}

// Own counts the locators of a host whose places are other ones.
func (x *Places) Own(h *Host) { h.owns = x.Locators.Own(h.owns, h.All()) }

// Remember puts a host of before the restart back where it was: it has answered there.
func (x *Places) Remember(h *Host) {
	x.Settle(h)
	for _, at := range x.at(h) {
		at.answered = true
	}
}

// Settle puts a host into the plan at all its places.
func (x *Places) Settle(h *Host) {
	for _, p := range h.All() {
		x.settle(h, p)
	}
	x.Plan.Prefer(h.Locator)
}

// settle puts a place of a host into the plan as its router sees it.
func (x *Places) settle(h *Host, p store.Place) {
	at := x.all[p.Locator]
	if at == nil || at.host != h {
		at = &attachment{host: h}
		x.all[p.Locator] = at
	}
	if at.Port != "" && (at.Router != p.Router || at.Port != p.Port) {
		x.Locators.LetIn(at.Place, h.Name)
	} else if x.Plan.HeldBy(p.Locator) != h.Name {
		x.Plan.SetHeld(p.Locator, "", "", "")
	}
	at.Place, at.state = p, plan.HostUp
	if _, known := x.Routers.Block(p.Router); !known && !x.Restored() { // it was forgotten, before this controller led
		at.state = plan.HostGone
	}
	if s, ok := x.probed(at); ok {
		at.state = s
		at.answered = at.answered || s == plan.HostUp
	}
	x.Redirects.End(p.Locator)
	x.Locators.Reclaim(p.Locator)
	x.Access.TouchHost(h.Name)
	ll, _ := netip.ParseAddr(p.LinkLocal)
	x.Plan.SetHost(plan.Host{
		Name: h.Name, Locator: p.Locator, Router: p.Router, Port: p.Port, LinkLocal: ll.WithZone(""), MAC: mac(p.MAC), State: at.state,
	})
}

func mac(b []byte) (m [6]byte) {
	if len(b) == len(m) {
		copy(m[:], b)
	}
	return m
}

// vacate takes a place out of the plan.
func (x *Places) vacate(p store.Place) {
	x.Plan.RemoveHost(p.Locator)
	delete(x.all, p.Locator)
	delete(x.said[p.Router], p.Locator)
}

// Quit is what happens to a place that its host has left while it is at others: its locator is kept for it
// for a while, and what comes there is sent to the one that it prefers. follow is false for another machine
// that took over the name: it knows nothing of those flows.
func (x *Places) Quit(h *Host, p store.Place, follow bool) {
	_, kept := x.Locators.Held(p.Locator)
	if at := x.all[p.Locator]; at != nil && at.host != h || at == nil && !kept {
		return // it left long ago, and the locator is free or another host's
	}
	x.vacate(p)
	x.Locators.Hold(p.Locator, h.Name)
	x.Locators.LetIn(p, h.Name)
	if follow {
		x.Redirects.Begin(h.Name, p.Locator, h.Locator)
	} else {
		x.Plan.SetLeft(p.Locator, true)
	}
}

// Leave takes a host away from all its places.
func (x *Places) Leave(h *Host) {
	x.Redirects.Forget(h.Name)
	if !h.Here {
		return
	}
	for _, p := range h.All() {
		x.vacate(p)
		x.Locators.Hold(p.Locator, h.Name)
		x.Locators.LetIn(p, h.Name)
		x.Plan.SetLeft(p.Locator, true)
	}
}
