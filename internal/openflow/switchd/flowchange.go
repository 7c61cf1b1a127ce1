package switchd

import (
	"errors"
	"fmt"
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
