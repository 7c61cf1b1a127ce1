package switchd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scaffold.dev/scaffold/controller"
)

// defaultRate is how many packets a second a switch punts for a subscription that does not say.
const defaultRate = 1000

// maxSubscriptions is how many a module may have.
const maxSubscriptions = 256

// A subscriber is one module's wish to see packets.
type subscriber struct {
	controller.Subscription
	of     owner
	module *module
	to     func(controller.Packet)
}

func (s *subscriber) wants(at string) bool { return s.Switch == "" || s.Switch == at }

// A punt is one rule that punts, for all who asked for the same: a switch has only one of a match. It belongs
// to the one of the lowest owner, at each switch.
type punt struct {
	id    uint32
	key   string
	match controller.Match
	first bool
	subs  []*subscriber // by owner
}

// subscribe adds a wish, or replaces the module's of the same name.
func (t *flowTable) subscribe(s *subscriber) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[s.of]
	if h.gone {
		return controller.ErrStopped
	}
	if len(s.Match) == 0 {
		return fmt.Errorf("subscription %q: it needs a match", s.Name)
	}
	if err := sayable(controller.Flow{Match: s.Match}); err != nil {
		return fmt.Errorf("subscription %q, %v: %w", s.Name, s.Match, err)
	}
	if t.count(s.of) >= maxSubscriptions {
		return fmt.Errorf("subscription %q: a module may have at most %d", s.Name, maxSubscriptions)
	}
	changed := t.drop(func(have *subscriber) bool { return have.of == s.of && have.Name == s.Name })
	p := t.puntFor(s)
	p.subs = append(slices.Clone(p.subs), s)
	slices.SortStableFunc(p.subs, func(x, y *subscriber) int { return cmp.Compare(x.of, y.of) })
	changed[s.of] = true
	for _, have := range p.subs {
		changed[have.of] = true
	}
	t.index()
	return t.pushAll(changed)
}

func (t *flowTable) count(of owner) (n int) {
	for _, p := range t.punts {
		for _, s := range p.subs {
			if s.of == of {
				n++
			}
		}
	}
	return n
}

func (t *flowTable) puntFor(s *subscriber) *punt {
	key := fmt.Sprint(s.First, " ", canonical(s.Match))
	for _, p := range t.punts {
		if p.key == key {
			return p
		}
	}
	t.lastPunt++
	p := &punt{id: t.lastPunt, key: key, match: s.Match, first: s.First}
	t.punts = append(t.punts, p)
	return p
}

// drop removes subscribers and returns the owners whose rules change by that: theirs, and those who inherit.
func (t *flowTable) drop(is func(*subscriber) bool) map[owner]bool {
	changed := make(map[owner]bool)
	for _, p := range t.punts {
		if !slices.ContainsFunc(p.subs, is) {
			continue
		}
		for _, s := range p.subs {
			changed[s.of] = true
		}
		p.subs = slices.DeleteFunc(slices.Clone(p.subs), is)
	}
	t.punts = slices.DeleteFunc(t.punts, func(p *punt) bool { return len(p.subs) == 0 })
	return changed
}

// unsubscribe removes all wishes of an owner and returns the others whose rules change by that.
func (t *flowTable) unsubscribe(of owner) map[owner]bool {
	heirs := t.drop(func(s *subscriber) bool { return s.of == of })
	delete(heirs, of)
	t.index()
	return heirs
}

func (t *flowTable) pushAll(owners map[owner]bool) error {
	var errs []error
	for at := range t.switches {
		for of := range owners {
			errs = append(errs, t.push(of, at))
		}
	}
	return errors.Join(errs...)
}

// puntsOf are the rules that punt and belong to an owner at a switch: those of which it is the first there.
func (t *flowTable) puntsOf(of owner, at string) (flows []ownFlow) {
	for _, p := range t.punts {
		here := slices.DeleteFunc(slices.Clone(p.subs), func(s *subscriber) bool { return !s.wants(at) })
		if len(here) == 0 || here[0].of != of {
			continue
		}
		f := ownFlow{ID: p.id, Punt: true, Copy: true}
		f.First, f.Match, f.Priority = p.first, p.match, controller.MaxPriority+1+uint16(min(len(p.match), 255))
		for _, s := range here {
			f.Copy = f.Copy && s.Copy
			rate := s.Rate
			if rate == 0 {
				rate = defaultRate
			}
			f.Rate = max(f.Rate, rate)
		}
		flows = append(flows, f)
	}
	return flows
}

// index makes what packets are handed out by.
func (t *flowTable) index() {
	byID := make(map[uint32][]*subscriber, len(t.punts))
	for _, p := range t.punts {
		byID[p.id] = slices.Clone(p.subs)
	}
	t.byID.Store(&byID)
}

// subscribers are those who hear of a packet. It takes no lock: switches call it for each packet.
func (t *flowTable) subscribers(id uint32, at string) []*subscriber {
	all := (*t.byID.Load())[id]
	elsewhere := func(s *subscriber) bool { return !s.wants(at) }
	if slices.ContainsFunc(all, elsewhere) {
		all = slices.DeleteFunc(slices.Clone(all), elsewhere)
	}
	return all
}

// canonical is the same for matches that mean the same: their fields' order does not matter.
func canonical(m controller.Match) string {
	parts := make([]string, len(m))
	for i, o := range m {
		parts[i] = fmt.Sprintf("%x=%x/%x", uint64(o.Field), o.Value(), o.Mask())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
