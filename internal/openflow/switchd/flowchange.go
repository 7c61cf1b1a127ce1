package switchd

import (
	"errors"
	"fmt"

	"scaffold.dev/scaffold/controller"
)

// set makes these the owner's flows at a switch.
func (t *flowTable) set(of owner, at string, flows []ownFlow) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[of]
	if err := h.roomAt(at); err != nil {
		return err
	}
	wanted, err := t.check(of, at, flows)
	if err != nil {
		return fmt.Errorf("flows for switch %s: %w", at, err)
	}
	h.calls[at]++
	if have := h.flows[at]; have != nil {
		for key := range have.all {
			if _, stays := wanted[key]; !stays {
				t.drop(of, at, key)
			}
		}
	}
	for key, f := range wanted {
		t.put(of, at, key, f, false)
	}
	return t.push(of, at)
}

// errKept is what a Keeper gets that changes what nobody knows.
var errKept = errors.New("what a controller before left there is not known: call SetFlows first")

// change puts flows in at a switch, and takes others out. It costs nothing for the owner's others there.
func (t *flowTable) change(of owner, at string, set, unset []ownFlow) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[of]
	if err := h.roomAt(at); err != nil {
		return err
	}
	if h.keeps && h.calls[at] == 0 {
		return fmt.Errorf("change flows of switch %s: %w", at, errKept)
	}
	wanted, err := t.check(of, at, set)
	if err == nil {
		err = checkUnset(wanted, unset)
	}
	if err == nil {
		err = h.roomFor(at, wanted, unset)
	}
	if err != nil {
		return fmt.Errorf("change flows of switch %s: %w", at, err)
	}
	h.calls[at]++
	var gone []ownFlow
	for _, f := range unset {
		if t.drop(of, at, keyOf(f.Flow)) {
			gone = append(gone, f)
		}
	}
	put := make([]ownFlow, 0, len(wanted))
	for key, f := range wanted {
		put = append(put, t.put(of, at, key, f, true))
	}
	return t.plane.changeFlows(of, at, put, gone, h.calls[at])
}

// may says why an owner cannot want one flow more.
func (t *flowTable) may(of owner, at string, one ownFlow) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted, err := t.check(of, at, []ownFlow{one})
	if err != nil {
		return err
	}
	if have := t.owners[of].flows[at]; have != nil {
		if _, has := have.all[keyOf(one.Flow)]; has {
			return fmt.Errorf("flow %v: %w", one.Match, t.isTaken(of))
		}
	}
	return t.owners[of].roomFor(at, wanted, nil)
}

// expired forgets a flow that a switch has taken out by itself, and returns it; false where it was put in anew meanwhile, or
// is not wanted any more.
func (t *flowTable) expired(of owner, at string, id uint32) (controller.Flow, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[of]
	if h == nil || h.flows[at] == nil {
		return controller.Flow{}, false
	}
	key, is := h.flows[at].timed[id]
	if !is {
		return controller.Flow{}, false
	}
	f := h.flows[at].all[key]
	t.drop(of, at, key)
	return f.Flow, t.plane.changeFlows(of, at, nil, []ownFlow{f}, h.calls[at]) == nil
}

// unwanted are those of flows that the owner does not want at a switch.
func (t *flowTable) unwanted(of owner, at string, flows []controller.Flow) (gone []controller.Flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have := t.owners[of].flows[at]
	for _, f := range flows {
		if have != nil {
			if _, has := have.all[keyOf(f)]; has {
				continue
			}
		}
		gone = append(gone, f)
	}
	return gone
}

// roomAt says why an owner cannot want anything of a switch.
func (h *holdings) roomAt(at string) error {
	if h.gone {
		return controller.ErrStopped
	}
	if _, has := h.flows[at]; !has && len(h.flows) >= maxOwnSwitches {
		return fmt.Errorf("flows for more than %d switches, known or not", maxOwnSwitches)
	}
	return nil
}

// roomFor says why an owner cannot have some flows more.
func (h *holdings) roomFor(at string, set map[ruleKey]ownFlow, unset []ownFlow) error {
	have := h.flows[at]
	if have == nil {
		have = newOwnRules()
	}
	n, out := len(have.all), make(map[ruleKey]bool)
	for key := range set {
		if _, has := have.all[key]; !has {
			n++
		}
	}
	for _, f := range unset {
		key := keyOf(f.Flow)
		if _, has := have.all[key]; has && !out[key] {
			out[key] = true
			n--
		}
	}
	if n > maxOwnFlows {
		return fmt.Errorf("%d flows: at most %d", n, maxOwnFlows)
	}
	return nil
}

// check says what of the flows may not be, and finds their keys.
func (t *flowTable) check(of owner, at string, flows []ownFlow) (map[ruleKey]ownFlow, error) {
	if len(flows) > maxOwnFlows {
		return nil, fmt.Errorf("%d flows: at most %d", len(flows), maxOwnFlows)
	}
	wanted := make(map[ruleKey]ownFlow, len(flows))
	for i, f := range flows {
		err := t.checkFlow(of, f.Flow)
		if err == nil {
			key := keyOf(f.Flow)
			if other, is := t.taken[at][key]; is && other != of {
				err = t.isTaken(other)
			} else if _, twice := wanted[key]; twice {
				err = t.isTaken(of)
			}
			wanted[key] = f
		}
		if err != nil {
			return nil, fmt.Errorf("flow %d, %v: %w", i+1, f.Match, err)
		}
	}
	return wanted, nil
}

// checkUnset says what cannot be taken out.
func checkUnset(set map[ruleKey]ownFlow, unset []ownFlow) error {
	for i, f := range unset {
		err := sayable(controller.Flow{Match: f.Match})
		if err == nil {
			if _, is := set[keyOf(f.Flow)]; is {
				err = errors.New("it is to be put in and to be taken out")
			}
		}
		if err != nil {
			return fmt.Errorf("flow %d to take out, %v: %w", i+1, f.Match, err)
		}
	}
	return nil
}

func (t *flowTable) isTaken(by owner) error {
	return fmt.Errorf("%s has a rule of this priority and match already: choose another priority", t.owners[by].name)
}

// put notes a flow of an owner's; see ownRules.put.
func (t *flowTable) put(of owner, at string, key ruleKey, f ownFlow, anew bool) ownFlow {
	h := t.owners[of]
	if h.flows[at] == nil {
		h.flows[at] = newOwnRules()
	}
	if key.table == 0 {
		if t.taken[at] == nil {
			t.taken[at] = make(map[ruleKey]owner)
		}
		t.taken[at][key] = of
	}
	return h.flows[at].put(key, f, anew, func() uint32 { t.numbered++; return t.numbered })
}

// drop forgets a flow of an owner's, and reports whether it had it.
func (t *flowTable) drop(of owner, at string, key ruleKey) bool {
	h := t.owners[of]
	if h.flows[at] == nil || !h.flows[at].drop(key) {
		return false
	}
	if len(h.flows[at].all) == 0 {
		delete(h.flows, at)
	}
	if t.taken[at][key] == of {
		if delete(t.taken[at], key); len(t.taken[at]) == 0 {
			delete(t.taken, at)
		}
	}
	return true
}
