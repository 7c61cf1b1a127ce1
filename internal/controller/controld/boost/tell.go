package boost

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A lane changes hands without a gap: its far agents hear of it first, and its near one once they have it; a near agent that
// gives one up has heard so before its far ones do. Else connections of the time between would be refused by a far agent that
// does not know the lane, and pass unboosted for as long as they live.

// farPatience is how long a near agent waits for its far ones to have a lane. One that does not answer is asked in vain, and
// the next one then.
const farPatience = time.Second

// tell tells an agent that is here what it does not know yet.
func (x *Boost) tell(a *agent, held []heldBy) {
	if a.session == nil {
		return
	}
	now, early := x.orderFor(a, held)
	if !early {
		a.late = time.Time{}
	} else if a.late.IsZero() {
		a.late = x.clock()
		x.Loop.After(farPatience, func() { x.untold = true })
	}
	if early && a.told == nil {
		return // it may have lanes of before: they are better than a part of what it is to have
	}
	if a.told != nil {
		now.Generation = a.told.Generation
		if proto.Equal(now, a.told) {
			return
		}
	}
	x.generation++
	now.Generation = x.generation
	a.told, a.toldAt, a.toldAs = now, x.clock(), x.siteOf(a.Name)
	if len(a.holds) > 0 {
		x.Loop.After(x.Patience, func() { x.untold = true }) // then it holds nothing any more but what it was told
	}
	a.session.Send(&apiv1.BoostOrder{Order: &apiv1.BoostOrder_Lanes{Lanes: now}})
}

// orderFor is all that an agent is to know now; early says that there is more once others have heard of it. Agents of other
// sites are among it whether they are here or not, and whether a lane names them or not: a trunk ends with its agent's
// mention, and with the trunk what it carries.
func (x *Boost) orderFor(a *agent, held []heldBy) (all *apiv1.BoostLanes, early bool) {
	all = &apiv1.BoostLanes{Draining: a.Draining}
	site := x.siteOf(a.Name)
	if site == "" {
		return all, false
	}
	for _, name := range slices.Sorted(maps.Keys(x.agents)) {
		if other := x.siteOf(name); other != "" && other != site {
			o := x.agents[name]
			all.Agents = append(all.Agents, &apiv1.BoostPeer{Name: name, Door: o.Door, Key: o.Key, Doors: o.Doors})
		}
	}
	before := nearLanes(a.told, a.Name)
	far := map[uint64]*apiv1.BoostLane{}
	for _, planned := range slices.Concat(x.lanes, x.named) {
		if planned.Near != a.Name && !slices.Contains(planned.Far, a.Name) {
			continue
		}
		l := apiLane(&planned)
		switch {
		case x.unanswered(l): // nobody may open a connection yet whose answers would go elsewhere
			early = early || a.told == nil && !x.late(a)
			if was := before[l.Number]; was != nil && was.Far[0] == l.Far[0] {
				all.Lanes = append(all.Lanes, was)
			}
		case l.Near == a.Name && (proto.Equal(l, before[l.Number]) || x.ready(a, l)):
			all.Lanes = append(all.Lanes, l)
		case l.Near == a.Name:
			early = true
			if was := before[l.Number]; was != nil {
				all.Lanes = append(all.Lanes, was)
			}
		default:
			all.Lanes = append(all.Lanes, l)
			far[l.Number] = l
		}
	}
	formerly(all, far, held)
	return all, early
}

// nearLanes are those of an order in which the agent of the name is near.
func nearLanes(of *apiv1.BoostLanes, name string) map[uint64]*apiv1.BoostLane {
	lanes := map[uint64]*apiv1.BoostLane{}
	for _, l := range of.GetLanes() {
		if l.Near == name {
			lanes[l.Number] = l
		}
	}
	return lanes
}

// late reports whether an agent has waited long enough for others.
func (x *Boost) late(a *agent) bool {
	return !a.late.IsZero() && x.clock().Sub(a.late) >= farPatience
}

// ready reports whether the far agents of a lane have it, or have had the time.
func (x *Boost) ready(near *agent, l *apiv1.BoostLane) bool {
	if x.late(near) {
		return true
	}
	for _, name := range l.Far {
		f := x.agents[name]
		if f == nil || f.session == nil || f.trouble != "" {
			continue // it is asked in vain
		}
		has := f.told != nil && f.applied == f.told.Generation && slices.ContainsFunc(f.told.Lanes, func(k *apiv1.BoostLane) bool {
			return k.Number == l.Number && k.Near == near.Name && slices.Contains(k.Far, name)
		})
		if !has {
			return false
		}
	}
	return true
}

// A heldBy is a lane that a near agent still has, by what it was told or has applied.
type heldBy struct {
	near string
	*apiv1.BoostLane
}

// former are the lanes that near agents still have, by their far agents, in order.
func (x *Boost) former() map[string][]heldBy {
	all := map[string][]heldBy{}
	for _, name := range slices.Sorted(maps.Keys(x.agents)) {
		n := x.agents[name]
		if n.session == nil || x.siteOf(name) != n.toldAs { // an operator has taken the site away from it
			continue
		}
		had := []map[uint64]*apiv1.BoostLane{nearLanes(n.told, name), n.holds}
		if x.clock().Sub(n.toldAt) >= x.Patience { // who does not say that it has taken its order gains nothing by that
			had = had[:1]
		}
		for _, of := range had {
			for _, number := range slices.Sorted(maps.Keys(of)) {
				for _, far := range of[number].Far {
					all[far] = append(all[far], heldBy{name, of[number]})
				}
			}
		}
	}
	return all
}

// formerly adds to a far agent's lanes those that near ones still have.
func formerly(all *apiv1.BoostLanes, far map[uint64]*apiv1.BoostLane, held []heldBy) {
	for _, l := range held {
		switch now := far[l.Number]; {
		case now != nil && (now.Near == l.near || slices.Contains(now.AlsoNear, l.near)):
		case now != nil:
			now.AlsoNear = append(now.AlsoNear, l.near)
		default:
			old := proto.CloneOf(l.BoostLane)
			all.Lanes = append(all.Lanes, old)
			far[l.Number] = old
		}
	}
}
