package legs

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

const (
	// Most is how many a site has at most: each is two rules in each of its switches, beside those of lanes and pins.
	Most = 2048
	// LateSegments is how long the rules of a leg stay that is over: what its ends say last may have to be said again.
	LateSegments = 5 * time.Second
	// SwitchPatience is how long a leg waits for its switches: one that does not take its rules says nothing.
	SwitchPatience = 2 * time.Second
	// complainEach is how often it is told that connections of an agent are not rewritten.
	complainEach = time.Minute
)

// A Network is what is around legs: agents, sites, switches and who drives these.
type Network interface {
	Site(agent string) string  // that it serves; "": none
	At(host netip.Addr) string // the site that a host is of; "": none
	Switches(site string) []string
	Switch(name string) (up bool, has uint64)                              // of which generation it has the rules of legs
	Addresses(agent string) []netip.Addr                                   // its own
	Listens(agent string) bool                                             // it is here, and has said something of late
	MayHave(agent string, lane uint64, client, server netip.AddrPort) bool // it is at the far end of a lane of such connections

	Order(agent string, o *apiv1.BoostOrder) // to one that is here
	Driven() bool                            // somebody drives the switches
	Steer(o *apiv1.SteerOrder)               // to whoever does
	Generation() uint64                      // of what switches are told next
	Tell(agent, text string)                 // that something is wrong

	After(time.Duration, func())
	Now() time.Time
}

// Legs are what agents have ports of their own for. The loop owns it.
type Legs struct {
	in       Network
	patience time.Duration // within which an agent has to decide
	all      map[Key]*leg
	waiting  map[*leg]bool // whose switches do not have all of their rules yet
	firsts   firsts
	news     map[string]*apiv1.SteerLegs // by switch, what it is to be told at the end of the turn
	told     map[string]time.Time        // by agent, when it was last said what is wrong
}

// A Key is a connection at one of its ends.
type Key struct {
	Agent          string
	Far            bool
	Client, Server netip.AddrPort
}

type leg struct {
	Key
	site   string
	at     netip.AddrPort
	needs  map[string]uint64 // switches that are to have its rules, and since which generation
	number uint64            // of the agent's question; 0: it asks nothing
	syn    uint64            // number of the first packet that waits for it, by the switches' driver; 0: none
	newest uint64            // number of the newest first packet that it was set for
	before bool              // the agent has had it, when it joined: there may be a connection that goes by it
	over   bool
	silent map[string]bool // switches that have heard nothing of the agent for long
}

// New has none. An agent decides about a first packet within the patience.
func New(in Network, patience time.Duration) *Legs {
	return &Legs{in: in, patience: patience, all: map[Key]*leg{}, waiting: map[*leg]bool{}, firsts: newFirsts(), news: map[string]*apiv1.SteerLegs{}, told: map[string]time.Time{}}
}

// hosts are the end host of a leg, and the other one.
func (l *leg) hosts() (host, other netip.AddrPort) {
	if l.Far {
		return l.Server, l.Client
	}
	return l.Client, l.Server
}

// message is a leg as its switches are told.
func (l *leg) message() *apiv1.SteerLeg {
	host, other := l.hosts()
	return &apiv1.SteerLeg{Host: host.String(), Other: other.String(), Agent: l.at.String()}
}

// complain says what is wrong with an agent's connections, now and then: hosts may make many of them.
func (x *Legs) complain(agent, text string) {
	if last, is := x.told[agent]; !is || x.in.Now().Sub(last) >= complainEach {
		x.told[agent] = x.in.Now()
		x.in.Tell(agent, text)
	}
}

// atSite are how many connections of a site are rewritten, but for those that are over.
func (x *Legs) atSite(site string) (n int) {
	for _, l := range x.all {
		if l.site == site && !l.over {
			n++
		}
	}
	return n
}

// sharing is another leg that has the same port of an agent's towards the same end host: switches could not tell the two apart. The
// port of one that is over may have been given again.
func (x *Legs) sharing(l *leg) *leg {
	host, _ := l.hosts()
	for _, o := range x.all {
		if of, _ := o.hosts(); o.Key != l.Key && o.at == l.at && of == host {
			return o
		}
	}
	return nil
}

// set has the switches of a site rewrite a connection. One that nobody waits for is there already: those who drive switches hear
// of it whenever they come.
func (x *Legs) set(l *leg) error {
	was, switches := x.all[l.Key], x.in.Switches(l.site)
	isUp := func(name string) bool { up, _ := x.in.Switch(name); return up }
	other := x.sharing(l)
	switch waits := l.syn != 0 || l.number != 0; {
	case was == nil && x.atSite(l.site) >= Most:
		return fmt.Errorf("site %q has %d connections that are rewritten, as many as it may", l.site, Most)
	case other != nil && !other.over:
		return fmt.Errorf("the agent has a connection of %v to %v at %v already", other.Client, other.Server, l.at)
	case waits && !x.in.Driven():
		return fmt.Errorf("nobody drives the switches of site %q", l.site)
	case waits && !slices.ContainsFunc(switches, isUp):
		return fmt.Errorf("no switch of site %q is connected", l.site)
	}
	if other != nil {
		x.end(other)
	}
	if was != nil { // the first packet that waits for it goes by this one; of a client its switch has the newest
		l.syn, l.newest = max(l.syn, was.syn), max(l.newest, was.newest)
	}
	l.needs = map[string]uint64{}
	for _, name := range switches {
		l.needs[name] = x.tell(name, l.message(), nil)
	}
	delete(x.waiting, was)
	x.all[l.Key], x.waiting[l] = l, true
	x.SwitchesChanged()
	if x.waiting[l] && (l.syn != 0 || l.number != 0) {
		x.patient(l)
	}
	return nil
}

// patient gives switches a while to take a leg's rules.
func (x *Legs) patient(l *leg) { x.in.After(SwitchPatience, func() { x.giveUp(l) }) }

// giveUp lets a connection go on without its leg, whose rules a switch does not take. A leg that was there before stays.
func (x *Legs) giveUp(l *leg) {
	if !x.waiting[l] || l.syn == 0 && l.number == 0 {
		return
	}
	if l.before && l.number == 0 {
		x.Pass(l.syn)
		l.syn = 0
		return
	}
	x.complain(l.Agent, fmt.Sprintf("a connection of %v to %v is not rewritten: a switch of site %q does not take its rules", l.Client, l.Server, l.site))
	x.answer(l, "a switch does not take the rules")
	x.end(l)
}

// answer tells an agent that has asked for a leg that it is there, or why not.
func (x *Legs) answer(l *leg, refused string) {
	if l.number != 0 {
		x.in.Order(l.Agent, &apiv1.BoostOrder{Order: &apiv1.BoostOrder_LegReady{LegReady: &apiv1.BoostLegReady{Number: l.number, Refused: refused}}})
		l.number = 0
	}
}

// SwitchesChanged lets those go on whose switches have come to have their rules. Of a switch that is away nobody waits: what is at
// it does not get anywhere either.
func (x *Legs) SwitchesChanged() {
	for l := range x.waiting {
		if x.isHeld(l) {
			delete(x.waiting, l)
			if l.syn != 0 {
				x.decide(l.syn, apiv1.BoostVerdict_BOOST_VERDICT_ACCEPT)
				l.syn = 0
			}
			x.answer(l, "")
		}
	}
}

func (x *Legs) isHeld(l *leg) bool {
	some := false
	for name, generation := range l.needs {
		up, has := x.in.Switch(name)
		if !up {
			continue
		}
		if some = true; has < generation {
			return false
		}
	}
	return some
}

// end takes a leg's rules out of the switches. A first packet that waits for it goes on: whoever drives the switches keeps back what
// the client sends again until it is decided about the first.
func (x *Legs) end(l *leg) {
	if l.syn != 0 {
		x.Pass(l.syn)
		l.syn = 0
	}
	delete(x.all, l.Key)
	delete(x.waiting, l)
	for name := range l.needs {
		x.tell(name, nil, l.message())
	}
}

// Forget takes those of an agent out.
func (x *Legs) Forget(agent string) {
	x.Lost(agent)
	delete(x.told, agent)
	for key, l := range x.all {
		if key.Agent == agent {
			x.end(l)
		}
	}
}

// BySite counts legs, by the site whose switches rewrite.
func (x *Legs) BySite() map[string]int {
	n := map[string]int{}
	for _, l := range x.all {
		n[l.site]++
	}
	return n
}

// On are all that a switch is to have, in order.
func (x *Legs) On(name string) (list []*apiv1.SteerLeg) {
	for _, l := range x.all {
		if _, is := l.needs[name]; is {
			list = append(list, l.message())
		}
	}
	slices.SortFunc(list, func(a, b *apiv1.SteerLeg) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Other, b.Other))
	})
	return list
}
