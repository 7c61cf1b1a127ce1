// Package replica keeps what one side holds equal to what the other one tells it, by snapshots and by changes: a
// snapshot is a beginning, all that there is in any number of pieces, and an end, at which what it did not name goes.
package replica

import "iter"

// A Naming is the keys that a snapshot has named so far. The zero value is outside of a snapshot, where changes say
// themselves what goes.
//
// It has no copy of what is held: that is in the kernel's tables, a switch's or a map of the owner, may be older than
// this process, and is asked for at the end of the snapshot.
type Naming[K comparable] struct{ named map[K]struct{} }

// Begin begins a snapshot, and forgets one that has not ended.
func (n *Naming[K]) Begin() { n.named = map[K]struct{}{} }

// Drop forgets the snapshot that is under way: who told it is gone, and nothing that is held goes.
func (n *Naming[K]) Drop() { n.named = nil }

// Under reports whether a snapshot is under way.
func (n *Naming[K]) Under() bool { return n.named != nil }

// Name notes a key that is there. Outside of a snapshot it does nothing.
func (n *Naming[K]) Name(k K) {
	if n.named != nil {
		n.named[k] = struct{}{}
	}
}

// Commit ends the snapshot and returns what is held and was not named: it is to go. It has read all of held, nil for
// nothing, before it returns, so the caller may remove as he goes. Without a snapshot nothing goes.
func (n *Naming[K]) Commit(held iter.Seq[K]) (rest []K) {
	named := n.named
	n.named = nil
	if named == nil || held == nil {
		return nil
	}
	for k := range held {
		if _, ok := named[k]; !ok {
			rest = append(rest, k)
		}
	}
	return rest
}
