package oftables

import (
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// Change puts some entries of an owner in, or in the place of those with the same table, priority and match, and takes out
// some; instructions of the latter do not count. Its others stay, and cost nothing. Entries that punt are Own's.
func (t *Tables) Change(owner uint16, set, unset []Flow) {
	o := t.owners[owner]
	if o == nil {
		o = newOwned()
		t.owners[owner] = o
	}
	for _, f := range unset {
		key, _ := t.ownFlow(o, owner, f)
		t.without(o, key)
	}
	for _, f := range set {
		key, e := t.ownFlow(o, owner, f)
		if !t.sayable(key, e) {
			t.without(o, key)
			o.unsaid[key] = struct{}{}
			continue
		}
		delete(o.unsaid, key)
		o.flows[key] = struct{}{}
		t.flows.set(key, e)
	}
	if len(o.flows)+len(o.meters)+len(o.unsaid)+o.uncopied == 0 {
		delete(t.owners, owner)
	}
}

func (t *Tables) without(o *owned, key flowKey) {
	if _, has := o.flows[key]; has {
		t.flows.unset(key)
		delete(o.flows, key)
	}
	delete(o.unsaid, key)
}

// Canonical is the same text for matches that mean the same to a switch, however they are written.
func Canonical(m ofp.Match) string { return text(canonical(m)) }

// SameInstructions reports whether entries of the same match do the same.
func SameInstructions(a, b []ofp.Instruction) bool { return slices.EqualFunc(a, b, sameInstruction) }
