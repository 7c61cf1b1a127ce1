package switchd

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
)

// A ruleKey is what OpenFlow tells rules of one table by.
type ruleKey struct {
	table    uint8
	first    bool
	priority uint16
	match    string
}

func keyOf(f controller.Flow) ruleKey {
	return ruleKey{f.Table, f.First, f.Priority, canonical(f.Match)}
}

// canonical is the same for matches that mean the same: their fields' order does not matter.
func canonical(m controller.Match) string { return oftables.Canonical(m) }

// longest is the longest time that a switch can be told, in seconds.
const longest = 65535

// ownRules are one owner's flows at one switch.
type ownRules struct {
	all   map[ruleKey]ownFlow
	timed map[uint32]ruleKey // those that may expire, by their ID: a generation
}

func newOwnRules() *ownRules {
	return &ownRules{all: make(map[ruleKey]ownFlow), timed: make(map[uint32]ruleKey)}
}

// put puts a rule in. One that may expire has a number of its own in its cookie, given by next, each time that it is put in:
// the news that it has expired may be on their way while it is put in anew, and must not count for the new one. Where it is
// there as it is wanted, and not wanted anew, it keeps its number.
func (r *ownRules) put(key ruleKey, f ownFlow, anew bool, next func() uint32) ownFlow {
	have, has := r.all[key]
	if f.Idle > 0 {
		if !anew && has && have.Idle == f.Idle && oftables.SameInstructions(have.Instructions, f.Instructions) {
			f.ID = have.ID
		} else {
			f.ID = next()
		}
	}
	r.drop(key)
	r.all[key] = f
	if f.Idle > 0 {
		r.timed[f.ID] = key
	}
	return f
}

func (r *ownRules) drop(key ruleKey) bool {
	have, has := r.all[key]
	if has && have.Idle > 0 {
		delete(r.timed, have.ID)
	}
	delete(r.all, key)
	return has
}

// checkFlow says what an owner's flow may not be.
func (t *flowTable) checkFlow(of owner, f controller.Flow) error {
	switch {
	case f.Priority > controller.MaxPriority:
		return fmt.Errorf("priority %d: at most %d", f.Priority, controller.MaxPriority)
	case f.Table != 0 && t.tables[f.Table] != of:
		return fmt.Errorf("table %d: want 0 or one that Tables gave", f.Table)
	case f.Table != 0 && f.First:
		return fmt.Errorf("first, in table %d: only rules of table 0 can be before Scaffold's", f.Table)
	case f.Idle < 0 || f.Idle%time.Second != 0 || f.Idle > longest*time.Second:
		return fmt.Errorf("idle %v: want whole seconds, 1 to %d, or 0 for a rule that stays", f.Idle, longest)
	}
	for _, i := range f.Instructions {
		if err := t.checkInstruction(of, f, i); err != nil {
			return err
		}
	}
	return sayable(f)
}

// sayable says what the codec would not write in any version.
func sayable(f controller.Flow) error {
	mod := ofp.FlowMod{Match: f.Match, Instructions: f.Instructions}
	_, err := ofp.Message{Version: ofp.V15, Body: mod}.Append(nil)
	return err
}
