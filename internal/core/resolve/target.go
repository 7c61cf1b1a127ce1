package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"scaffold.dev/scaffold/sid"
)

// MaxWeight is the largest weight of one target.
const MaxWeight = 65535

// A Target is an instance, by the locator of its host. Weight 0 is never chosen.
type Target struct {
	Locator sid.Locator
	Weight  uint32
}

// usable checks targets and returns those with a weight, sorted by locator.
func usable(targets []Target) ([]Target, error) {
	sorted := slices.SortedFunc(slices.Values(targets), func(a, b Target) int { return cmp.Compare(a.Locator, b.Locator) })
	for i, t := range sorted {
		if t.Weight > MaxWeight {
			return nil, fmt.Errorf("target %v: weight %d, at most %d", t.Locator, t.Weight, MaxWeight)
		}
		if i > 0 && sorted[i-1].Locator == t.Locator {
			return nil, fmt.Errorf("target %v is named twice", t.Locator)
		}
	}
	return slices.DeleteFunc(sorted, func(t Target) bool { return t.Weight == 0 }), nil
}
