package switchd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"scaffold.dev/scaffold/controller"
)

// defaultRate is how many packets a second a switch punts for a subscription that does not say.
const defaultRate = 1000

// shortestLease leaves time to renew it.
const shortestLease = 2 * time.Second

// maxSubscriptions is how many a module may have at one switch, and as many to all.
const maxSubscriptions = 256

// A subscriber is one module's wish to see packets.
type subscriber struct {
	controller.Subscription
	of     owner
	module *module
	to     func(controller.Packet)
}

// A punt is one rule that punts, for all who asked for the same: a switch has only one of a match. At each
// switch it belongs to the one of the lowest owner.
type punt struct {
	id    uint32
	key   string
	match controller.Match
	first bool
	subs  map[string][]*subscriber // by switch, "": of all; never changed, only replaced
}

// here are those who want the packets of a switch, by owner.
func (p *punt) here(at string) []*subscriber {
	if len(p.subs[""]) == 0 {
		return p.subs[at]
	}
	if len(p.subs[at]) == 0 {
		return p.subs[""]
	}
	return slices.SortedStableFunc(slices.Values(slices.Concat(p.subs[at], p.subs[""])), byOwner)
}

func byOwner(x, y *subscriber) int { return cmp.Compare(x.of, y.of) }

// subscribe adds a wish, or replaces the module's of the same name and switch; one without a match takes it back.
func (t *flowTable) subscribe(s *subscriber) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owners[s.of].gone {
		return controller.ErrStopped
	}
	if err := t.checkSubscription(s); err != nil {
		return fmt.Errorf("subscription %q, %v: %w", s.Name, s.Match, err)
	}
	changed := t.dropSubs(s.Switch, func(have *subscriber) bool { return have.of == s.of && have.Name == s.Name })
	if len(s.Match) == 0 {
		return t.pushAll(s.Switch, changed)
	}
	p := t.puntFor(s)
	t.replace(p, s.Switch, slices.SortedStableFunc(slices.Values(append(slices.Clone(p.subs[s.Switch]), s)), byOwner))
	changed.add(p)
	return t.pushAll(s.Switch, changed)
}

func (t *flowTable) checkSubscription(s *subscriber) error {
	n := 0
	for p := range t.wanted[s.Switch] {
		for _, have := range p.subs[s.Switch] {
			if have.of == s.of && have.Name != s.Name {
				n++
			}
		}
	}
	switch _, known := t.wanted[s.Switch]; {
	case len(s.Match) == 0:
		return nil
	case n >= maxSubscriptions:
		return fmt.Errorf("a module may have at most %d at a switch", maxSubscriptions)
	case !known && len(t.wanted) > maxOwnSwitches:
		return fmt.Errorf("subscriptions for more than %d switches, known or not", maxOwnSwitches)
	case s.Lease != 0 && (s.Lease < shortestLease || s.Lease%time.Second != 0 || s.Lease > longest*time.Second):
		return fmt.Errorf("lease %v: want whole seconds, %v to %d s, or 0 for one that stays", s.Lease, shortestLease, longest)
	}
	return sayable(controller.Flow{Match: s.Match})
}

func (t *flowTable) puntFor(s *subscriber) *punt {
	key := fmt.Sprint(s.First, " ", canonical(s.Match))
	p, ok := t.punts[key]
	if !ok {
		t.lastPunt++
		p = &punt{id: t.lastPunt, key: key, match: s.Match, first: s.First, subs: make(map[string][]*subscriber)}
		t.punts[key] = p
	}
	return p
}

// replace sets who wants the packets of a switch, which packets on their way see at once.
func (t *flowTable) replace(p *punt, at string, subs []*subscriber) {
	t.hand.Lock()
	defer t.hand.Unlock()
	p.subs[at] = subs
	t.byID[p.id] = p
	if t.wanted[at] == nil {
		t.wanted[at] = make(map[*punt]bool)
	}
	t.wanted[at][p] = true
	if len(subs) > 0 {
		return
	}
	delete(p.subs, at)
	delete(t.wanted[at], p)
	if len(t.wanted[at]) == 0 {
		delete(t.wanted, at)
	}
	if len(p.subs) == 0 {
		delete(t.punts, p.key)
		delete(t.byID, p.id)
	}
}

// dropSubs removes wishes of one switch, and returns the owners whose rules change by that.
func (t *flowTable) dropSubs(at string, is func(*subscriber) bool) ownersOf {
	changed := make(ownersOf)
	for p := range t.wanted[at] {
		if slices.ContainsFunc(p.subs[at], is) {
			changed.add(p)
			t.replace(p, at, slices.DeleteFunc(slices.Clone(p.subs[at]), is))
		}
	}
	return changed
}

// ownersOf are those whom a change concerns.
type ownersOf map[owner]bool

func (o ownersOf) add(p *punt) {
	for _, subs := range p.subs {
		for _, s := range subs {
			o[s.of] = true
		}
	}
}

// unsubscribe removes all wishes of an owner and returns, by switch, the owners whose rules change by that.
func (t *flowTable) unsubscribe(of owner) map[string]ownersOf {
	changed := make(map[string]ownersOf)
	for at := range t.wanted {
		if list := t.dropSubs(at, func(s *subscriber) bool { return s.of == of }); len(list) > 0 {
			changed[at] = list
		}
	}
	return changed
}

// pushAll tells a switch, or all, what owners want now.
func (t *flowTable) pushAll(at string, owners ownersOf) error {
	where := []string{at}
	if at == "" {
		where = where[:0]
		for name := range t.switches {
			where = append(where, name)
		}
	}
	var errs []error
	for _, name := range where {
		for of := range owners {
			errs = append(errs, t.push(of, name))
		}
	}
	return errors.Join(errs...)
}

// puntsOf are the rules that punt and belong to an owner at a switch: those of which it is the first there.
func (t *flowTable) puntsOf(of owner, at string) (flows []ownFlow) {
	for _, scope := range []string{"", at} {
		for p := range t.wanted[scope] {
			here := p.here(at)
			if here[0].of == of && (scope == "" || len(p.subs[""]) == 0) { // once
				flows = append(flows, p.flow(here))
			}
		}
	}
	slices.SortFunc(flows, func(a, b ownFlow) int { return cmp.Compare(a.ID, b.ID) })
	return flows
}

// flow is the rule for all of subs together. It may go by itself where all of them let it.
func (p *punt) flow(subs []*subscriber) ownFlow {
	f := ownFlow{ID: p.id, Punt: true, Copy: true}
	stays := false
	f.First, f.Match, f.Priority = p.first, p.match, controller.MaxPriority+1+uint16(min(len(p.match), 255))
	for _, s := range subs {
		f.Copy = f.Copy && s.Copy
		f.Rate = max(f.Rate, cmp.Or(s.Rate, defaultRate))
		f.Lease = max(f.Lease, s.Lease)
		stays = stays || s.Lease == 0
	}
	if stays {
		f.Lease = 0
	}
	return f
}

// subscribers are those who hear of a packet. Switches call it for each, so it does not wait for the plane.
func (t *flowTable) subscribers(id uint32, at string) []*subscriber {
	t.hand.RLock()
	defer t.hand.RUnlock()
	if p := t.byID[id]; p != nil {
		return p.here(at)
	}
	return nil
}
