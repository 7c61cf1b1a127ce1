// Package grace waits, after a controller began to lead, for the hosts and routers of before. What routers hold is right
// until somebody says otherwise, and what is stored may be older: hosts say what they serve by now and which locators they
// have, routers which links and hosts they see. So no rules are sent before all have reported, or have had time enough.
package grace

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/events"
)

// Hosts are those of the network.
type Hosts interface {
	Here() []string          // that are here, as far as is known
	Waited(host string) bool // it is here and has not reported
	Unclaimed() int          // locators at which somebody answers of whom nothing is known yet
	Missed(host string)      // it has not come back in time
}

// Routers are those of the network.
type Routers interface {
	Names() []string
	Waited(router string) bool // it is one, and has not told its links
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Loop runs what is to be done later in the goroutine that owns the grace.
type Loop interface {
	After(time.Duration, func())
}

// A Config is how long is waited, and for whom.
type Config struct {
	Controller string
	For        time.Duration // that hosts and routers have to come back
	Hosts      Hosts
	Routers    Routers
	Events     Events
	Loop       Loop
}

// A Grace is the time after a restart in which no rules are sent. The loop owns it.
type Grace struct {
	Config
	settling bool
	wait     time.Duration
	hosts    map[string]struct{} // that were here and have not reported yet
	routers  map[string]struct{}
	expired  bool
}

// New has not begun: nobody is waited for.
func New(cfg Config) *Grace { return &Grace{Config: cfg} }

// Begin waits for whom there was before, times as long as it would usually.
func (x *Grace) Begin(times time.Duration) {
	x.settling, x.hosts, x.routers = true, make(map[string]struct{}), make(map[string]struct{})
	for _, name := range x.Hosts.Here() {
		x.hosts[name] = struct{}{}
	}
	for _, name := range x.Routers.Names() {
		x.routers[name] = struct{}{}
	}
	if x.Over() {
		return // nobody is waited for
	}
	x.wait = x.For * times
	x.Loop.After(x.wait, func() { x.expired = true })
}

// Settling reports whether somebody is waited for, as far as was looked.
func (x *Grace) Settling() bool { return x.settling }

// Over reports whether all have reported or were waited for long enough, and ends the grace then.
func (x *Grace) Over() bool {
	if !x.settling {
		return true
	}
	for name := range x.hosts {
		if !x.Hosts.Waited(name) {
			delete(x.hosts, name)
		}
	}
	for name := range x.routers {
		if !x.Routers.Waited(name) {
			delete(x.routers, name)
		}
	}
	missing := len(x.hosts) + len(x.routers) + x.Hosts.Unclaimed()
	if missing > 0 && !x.expired {
		return false
	}
	x.settling = false
	if missing > 0 {
		x.Events.Tell("controller.settle", x.Controller, fmt.Sprintf("rules are sent although %s and %s of before the restart have not reported in %v", events.Counted(len(x.hosts), "host"), events.Counted(len(x.routers), "router"), x.wait))
		for name := range x.hosts {
			x.Hosts.Missed(name)
		}
	}
	return true
}
