package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"scaffold.dev/scaffold/sid"
)

const (
	// Fanout is the number of entries of a node: sets up to it are one weighted rendezvous.
	Fanout = 16
	// MaxDepth bounds the number of nodes that one choice visits.
	MaxDepth = 8
	// weightBits keeps cost * weight below 2^64: a cost has at most 39 bits.
	weightBits = 25
)

// A Table holds the targets of one (serviceID, protocol, port).
//
// Up to Fanout targets are one node. More are a tree: an inner node divides its targets by the next
// four bits of mix(locator), an entry with several of them is a child whose weight is their sum. Both
// kinds choose by the same rendezvous. The tree follows from the set alone, whatever its history, so
// that one change rewrites one path of it and routers that know the same targets choose alike.
// (A table of slots would need 50 million of them to hold 1:65535 among 17 targets within 1 %.)
type Table struct {
	nodes []Node
}

// A Node is what the kernel holds under one key: entries sorted by ID.
type Node struct {
	ID      uint64 // 0: the root; else the bits that its targets share, and its depth in the low four
	Shift   uint8  // how far the weights of its entries were shifted right
	Entries []Entry
}

// An Entry is a target (ID is its locator) or a child node (ID is the node's).
type Entry struct {
	ID     uint64
	Weight uint32 // above 0
	Child  bool
}

// New lays out the table of targets; those of weight 0 are left out. An empty table is one without
// nodes.
func New(targets []Target) (Table, error) {
	sorted, err := usable(targets)
	if err != nil || len(sorted) == 0 {
		return Table{}, err
	}
	var t Table
	if err := t.grow(0, 0, sorted); err != nil {
		return Table{}, err
	}
	return t, nil
}

// grow appends the node of targets, then those below it.
func (t *Table) grow(id uint64, depth int, targets []Target) error {
	if depth == MaxDepth {
		return fmt.Errorf("%d targets do not come apart in %d levels", len(targets), MaxDepth)
	}
	at := len(t.nodes)
	t.nodes = append(t.nodes, Node{ID: id})
	if len(targets) <= Fanout {
		t.nodes[at].Entries = leaf(targets)
		return nil
	}
	groups := divide(targets, depth)
	t.nodes[at].Entries, t.nodes[at].Shift = inner(groups, depth+1)
	for _, g := range groups {
		if len(g) > 1 {
			if err := t.grow(childID(g[0].Locator, depth+1), depth+1, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// divide groups targets by the four bits of mix(locator) that stand for this depth.
func divide(targets []Target, depth int) [Fanout][]Target {
	var groups [Fanout][]Target
	for _, t := range targets {
		i := mix(uint64(t.Locator)) >> (60 - 4*depth) & (Fanout - 1)
		groups[i] = append(groups[i], t)
	}
	return groups
}

// childID names the node at this depth that the locator falls into.
func childID(l sid.Locator, depth int) uint64 {
	shift := 64 - 4*depth
	return mix(uint64(l))>>shift<<shift | uint64(depth)
}

func leaf(targets []Target) []Entry {
	entries := make([]Entry, len(targets))
	for i, t := range targets {
		entries[i] = Entry{ID: uint64(t.Locator), Weight: t.Weight}
	}
	return entries
}

func inner(groups [Fanout][]Target, depth int) (entries []Entry, shift uint8) {
	var sums []uint64
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		e := Entry{ID: uint64(g[0].Locator)}
		if len(g) > 1 {
			e = Entry{ID: childID(g[0].Locator, depth), Child: true}
		}
		entries, sums = append(entries, e), append(sums, weightOf(g))
	}
	shift = shiftFor(slices.Max(sums))
	for i := range entries {
		entries[i].Weight = uint32(max(1, sums[i]>>shift))
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return entries, shift
}

// shiftFor is how far weights are shifted right to fit weightBits: 0 up to 512 targets of MaxWeight.
func shiftFor(largest uint64) (shift uint8) {
	for largest>>shift >= 1<<weightBits {
		shift++
	}
	return shift
}

func weightOf(targets []Target) (sum uint64) {
	for _, t := range targets {
		sum += uint64(t.Weight)
	}
	return sum
}

// Empty reports whether there is nothing to choose.
func (t Table) Empty() bool { return len(t.nodes) == 0 }

// Nodes are the table's nodes, the root first and parents before children. They are not to be changed.
func (t Table) Nodes() []Node { return t.nodes }
