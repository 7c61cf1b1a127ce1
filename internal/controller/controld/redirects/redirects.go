// Package redirects sends what comes for a place that a host left to where it went. The loop owns what it knows.
package redirects

import (
	"maps"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// redirectPatience bounds how long a redirect waits for the new place's router to have its route.
const redirectPatience = time.Second

// A redirect sends what comes for a place that a host left to where it went. It begins once the way to the
// new place stands, and ends after a while, or when the locator is used again.
type redirect struct {
	store.Redirect
	leads   bool   // it is in the plan
	asked   bool   // after is known
	after   uint64 // generation of the rules that make the way
	overdue bool
}

// A Redirect is one as people are told of it.
type Redirect struct {
	store.Redirect
	Leads bool // the way to the new place stands: it is in the plan
}

// Redirects are all of a network, by the locator that was left.
type Redirects struct {
	all   map[sid.Locator]*redirect
	plan  Plan
	ways  Ways
	saver Saver
	loop  Loop
	lasts time.Duration
}

// A Plan makes rules of redirects.
type Plan interface {
	SetRedirect(from, to sid.Locator) // to 0: none
	SetLeft(from sid.Locator, left bool)
}

// Ways tell how far routers are with the rules that make the way to a locator.
type Ways interface {
	Way(to sid.Locator) Way
}

// A Way is that to a locator.
type Way struct {
	Known         bool   // somebody is there
	Waited        bool   // its router is here and says what it applies
	Told, Applied uint64 // generations of the router's rules
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// A Loop runs what is to be done later in the goroutine that owns the redirects.
type Loop interface {
	After(time.Duration, func())
}

// New makes the redirects of a network that has none; each lasts so long.
func New(plan Plan, ways Ways, saver Saver, loop Loop, lasts time.Duration) *Redirects {
	return &Redirects{all: make(map[sid.Locator]*redirect), plan: plan, ways: ways, saver: saver, loop: loop, lasts: lasts}
}

// Begin makes one for a host. Those that led to where the host was lead on with it.
func (x *Redirects) Begin(host string, from, to sid.Locator) {
	for _, r := range x.all {
		if r.To == from {
			r.To = to
			x.saver.Later(store.PutRedirect(r.Redirect))
		}
	}
	r := &redirect{Redirect: store.Redirect{From: from, To: to, Host: host}}
	x.all[from] = r
	x.saver.Later(store.PutRedirect(r.Redirect))
	x.loop.After(redirectPatience, func() { r.overdue = true })
	x.endLater(r)
}

// Restore puts a redirect of before the restart into the plan; its time begins anew.
func (x *Redirects) Restore(stored store.Redirect) {
	r := &redirect{Redirect: stored, leads: true}
	x.all[r.From] = r
	x.plan.SetRedirect(r.From, r.To)
	x.plan.SetLeft(r.From, true)
	x.endLater(r)
}

func (x *Redirects) endLater(r *redirect) {
	x.loop.After(x.lasts, func() {
		if x.all[r.From] == r {
			x.End(r.From)
			x.plan.SetLeft(r.From, true) // also where it never led
		}
	})
}

// End tells from now on that nobody is there, unless somebody is.
func (x *Redirects) End(from sid.Locator) {
	if _, ok := x.all[from]; !ok {
		return
	}
	delete(x.all, from)
	x.plan.SetRedirect(from, 0)
	x.saver.Later(store.DeleteRedirect(from))
}

// Forget ends all redirects to a host.
func (x *Redirects) Forget(host string) { x.endThose(func(r *redirect) bool { return r.Host == host }) }

// Abandon ends all redirects to a locator.
func (x *Redirects) Abandon(to sid.Locator) { x.endThose(func(r *redirect) bool { return r.To == to }) }

func (x *Redirects) endThose(which func(*redirect) bool) {
	for from, r := range x.all {
		if which(r) {
			x.End(from)
			x.plan.SetLeft(from, true)
		}
	}
}

// Lead puts into the plan the redirects whose new place has its route by now: sooner they would lead
// packets to where nobody takes them. It reports whether there were any.
func (x *Redirects) Lead() (any bool) {
	for _, r := range x.all {
		if !r.leads && x.stands(r) {
			r.leads, any = true, true
			x.plan.SetLeft(r.From, true)
			for from, other := range x.all { // those that led to where it began lead on
				if other.To == r.To && other.leads {
					x.plan.SetRedirect(from, r.To)
				}
			}
		}
	}
	return any
}

// stands reports whether the router of the new place has applied the rules that were sent last when the
// redirect began, or cannot be waited for.
func (x *Redirects) stands(r *redirect) bool {
	way := x.ways.Way(r.To)
	switch {
	case !way.Known:
		return false
	case !way.Waited || r.overdue:
		return true
	}
	if !r.asked {
		r.asked, r.after = true, way.Told
	}
	return way.Applied >= r.after
}

// All are the redirects that there are, by the locators that were left.
func (x *Redirects) All() (list []Redirect) {
	for _, from := range slices.Sorted(maps.Keys(x.all)) {
		r := x.all[from]
		list = append(list, Redirect{Redirect: r.Redirect, Leads: r.leads})
	}
	return list
}
