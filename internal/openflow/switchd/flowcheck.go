package switchd

import (
	"errors"
	"fmt"

	"scaffold.dev/scaffold/controller"
)

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
