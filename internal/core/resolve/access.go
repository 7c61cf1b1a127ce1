package resolve

import (
	"cmp"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// An AccessList is from where a service takes first packets: from locators under one of its prefixes. The nil
// AccessList is of a service that takes them from everywhere; an empty one takes none.
type AccessList []Prefix

// A Prefix is the first Bits bits of locators.
type Prefix struct {
	Locator sid.Locator // bits behind Bits are zero
	Bits    uint8       // 0 to 64
}

// NewPrefix clears the bits of l behind bits.
func NewPrefix(l sid.Locator, bits int) Prefix {
	bits = max(0, min(bits, sid.LocatorBits))
	return Prefix{l &^ (1<<(sid.LocatorBits-bits) - 1), uint8(bits)}
}

// Covers reports whether l is under the prefix.
func (p Prefix) Covers(l sid.Locator) bool { return NewPrefix(l, int(p.Bits)).Locator == p.Locator }

// Allows reports whether first packets from l are taken.
func (g AccessList) Allows(l sid.Locator) bool {
	return g == nil || slices.ContainsFunc(g, func(p Prefix) bool { return p.Covers(l) })
}

// NewAccessList sorts prefixes and leaves out those that are there twice. It is never nil.
func NewAccessList(prefixes []Prefix) AccessList {
	g := append(AccessList{}, prefixes...)
	slices.SortFunc(g, func(a, b Prefix) int { return cmp.Or(cmp.Compare(a.Locator, b.Locator), cmp.Compare(a.Bits, b.Bits)) })
	return slices.Compact(g)
}

// Bars reports whether l lost its right: before let it in, and g does not.
func (g AccessList) Bars(before AccessList, l sid.Locator) bool {
	return before.Allows(l) && !g.Allows(l)
}
