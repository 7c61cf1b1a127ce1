package lane

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// slotBits is how finely an entry's connections are divided where there is a choice of agents: an agent that drains or
// dies moves an eighth at a time, and a switch has 32 rules for an entry.
const slotBits = 3

// alike is how much longer a round trip may be than the shortest for load to decide.
const alike = 1.2

// Plan makes lanes of a state whose entries and sites have been checked.
func Plan(s State) Result {
	var r Result
	p := planner{State: &s, before: map[slot]*Lane{}, taken: map[uint64]bool{}, given: map[string]float64{}}
	for i := range s.Before {
		l := &s.Before[i]
		p.before[slot{l.Entry, l.Slot, l.Bits}] = l
	}
	for _, e := range slices.SortedFunc(slices.Values(s.Entries), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) }) {
		r.Next = sooner(r.Next, e.next(s.Now))
		if !e.At(s.Now) {
			continue
		}
		lanes, why := p.entry(&e)
		if why != "" {
			r.Unserved = append(r.Unserved, Unserved{e.Name, why})
		}
		r.Lanes = append(r.Lanes, lanes...)
	}
	return r
}

// next is when the entry begins or ends; zero: it did, or never does.
func (e *Entry) next(now time.Time) time.Time {
	switch {
	case now.Before(e.From):
		return e.From
	case !e.Until.IsZero() && now.Before(e.Until):
		return e.Until
	}
	return time.Time{}
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// A slot is a part of an entry's connections.
type slot struct {
	entry string
	slot  uint16
	bits  uint8
}

type planner struct {
	*State
	before map[slot]*Lane
	taken  map[uint64]bool
	given  map[string]float64 // slots to each agent so far, in parts of an entry
}

// at are the agents of a site, by name, and those of them that lanes are for: where none is here, those that have only lost
// their controller, and go on without one. What is rewritten needs the controller. By the machine of an agent at a switch
// what is not carried has to go on; where no switch sends it there it comes that way whatever is planned.
func (p *planner) at(site *Site, e *Entry) (all, usable []*Agent) {
	var away []*Agent
	family := FamilyOf(e.Client.Addr())
	for i := range p.Agents {
		if a := &p.Agents[i]; a.Site == site.Name {
			all = append(all, a)
			if e.Rewrite && a.Rewrites&family == 0 || !e.Rewrite && site.Switched && !a.Seen {
				continue // no packet would come to it
			}
			if !e.Rewrite && site.Switched && a.Stops&family != 0 {
				continue // and none would go on
			}
			if a.usable() {
				usable = append(usable, a)
			} else if !a.Draining {
				away = append(away, a)
			}
		}
	}
	if len(usable) == 0 && !e.Rewrite {
		usable = away
	}
	byName := func(a, b *Agent) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(all, byName)
	slices.SortFunc(usable, byName)
	return all, usable
}

// stopping are the agents of a site that would take an entry's connections if their machines forwarded them; "": there are none.
func (p *planner) stopping(site *Site, e *Entry) string {
	var names []string
	for i := range p.Agents {
		if a := &p.Agents[i]; a.Site == site.Name && a.usable() && a.Seen && site.Switched && a.Stops&FamilyOf(e.Client.Addr()) != 0 {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// entry makes the lanes of one entry.
func (p *planner) entry(e *Entry) (lanes []Lane, why string) {
	near, far := siteOf(p.Sites, e.Client), siteOf(p.Sites, e.Server)
	allNear, nears := p.at(near, e)
	allFar, fars := p.at(far, e)
	for _, end := range []struct {
		site   *Site
		usable []*Agent
	}{{near, nears}, {far, fars}} {
		family, stopping := FamilyOf(e.Client.Addr()), p.stopping(end.site, e)
		switch {
		case len(end.usable) == 0 && e.Rewrite:
			return nil, fmt.Sprintf("site %q has no agent with an address of %v that takes connections and can have them rewritten", end.site.Name, family)
		case len(end.usable) == 0 && stopping != "":
			return nil, fmt.Sprintf("site %q has no agent that takes connections and whose machine forwards %v; at %s: %s", end.site.Name, family, stopping, family.Forwarding())
		case len(end.usable) == 0 && end.site.Switched:
			return nil, fmt.Sprintf("site %q has no agent that takes connections and is seen at a port of its switches", end.site.Name)
		case len(end.usable) == 0:
			return nil, fmt.Sprintf("site %q has no agent that takes connections", end.site.Name)
		}
	}
	bits := uint8(0)
	if len(allNear)*len(allFar) > 1 { // whether they are here or not: lanes do not change their shape with that
		bits = slotBits
	}
	for n := range uint16(1) << bits {
		l := p.lane(e, slot{e.Name, n, bits}, nears, fars)
		if far.Switched && !e.Rewrite {
			l.Far = l.Far[:1] // the switch sends what the server answers to one agent
		}
		lanes = append(lanes, l)
	}
	return lanes, ""
}

// lane makes one lane. It stays with its agents as long as these can be used.
func (p *planner) lane(e *Entry, s slot, nears, fars []*Agent) Lane {
	was := p.before[s]
	near := was.keptNear(nears)
	if near == nil {
		near = p.best(nears, func(a *Agent) time.Duration { return p.nearest(a, fars) })
	}
	order := p.order(near, fars)
	_, measured := p.RTT[[2]string{near.Name, order[0].Name}]
	if far := was.keptFar(fars, measured); far != nil {
		measured = was.Measured
		order = append([]*Agent{far}, slices.DeleteFunc(order, func(a *Agent) bool { return a == far })...)
	}
	l := Lane{Number: p.number(s), Entry: e.Name, Slot: s.slot, Bits: s.bits, Client: e.Client, Server: e.Server, Port: e.Port, Near: near.Name, Measured: measured, AtOnce: e.AtOnce, Rewrite: e.Rewrite}
	for _, a := range order {
		l.Far = append(l.Far, a.Name)
	}
	part := 1 / float64(uint(1)<<s.bits)
	p.given[near.Name] += part
	p.given[order[0].Name] += part
	return l
}

// keptNear is the near agent of before, if it may still be that: it can be used, and is of the site.
func (l *Lane) keptNear(nears []*Agent) *Agent {
	if l == nil {
		return nil
	}
	return named(nears, l.Near)
}

// keptFar is the far agent of before that was asked first, if it may still be that. A choice that was made before anybody
// had measured the way is none once it has been measured.
func (l *Lane) keptFar(fars []*Agent, measured bool) *Agent {
	if l == nil || len(l.Far) == 0 || measured && !l.Measured {
		return nil
	}
	return named(fars, l.Far[0])
}

func named(agents []*Agent, name string) *Agent {
	if i := slices.IndexFunc(agents, func(a *Agent) bool { return a.Name == name }); i >= 0 {
		return agents[i]
	}
	return nil
}

// unmeasured stands for the round trip between two agents that nobody has measured.
const unmeasured = time.Hour

func (p *planner) rtt(near, far *Agent) time.Duration {
	if d, ok := p.RTT[[2]string{near.Name, far.Name}]; ok {
		return d
	}
	return unmeasured
}

func (p *planner) nearest(near *Agent, fars []*Agent) time.Duration {
	best := unmeasured
	for _, f := range fars {
		best = min(best, p.rtt(near, f))
	}
	return best
}

// best is the agent with the shortest way; of those that are about as near, the one that has least to do.
func (p *planner) best(of []*Agent, way func(*Agent) time.Duration) *Agent {
	shortest := way(of[0])
	for _, a := range of {
		shortest = min(shortest, way(a))
	}
	var best *Agent
	for _, a := range of {
		if float64(way(a)) <= alike*float64(shortest) && (best == nil || p.busy(a) < p.busy(best)) {
			best = a
		}
	}
	return best
}

// busy is how much an agent has to do, and will have by what was planned so far.
func (p *planner) busy(a *Agent) float64 { return a.Load + p.given[a.Name] }

// order are the far agents as a near one is to ask them.
func (p *planner) order(near *Agent, fars []*Agent) (list []*Agent) {
	rest := slices.Clone(fars)
	for len(rest) > 0 {
		a := p.best(rest, func(f *Agent) time.Duration { return p.rtt(near, f) })
		list = append(list, a)
		rest = slices.DeleteFunc(rest, func(x *Agent) bool { return x == a })
	}
	return list
}

// number is a lane's own at every controller: that of its entry's name and its slot.
func (p *planner) number(s slot) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d/%d", s.entry, s.slot, s.bits)
	n := h.Sum64()
	for n == 0 || p.taken[n] {
		n++
	}
	p.taken[n] = true
	return n
}
