package oftables

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSlotsFollowWeights(t *testing.T) {
	for _, c := range []struct {
		weights []uint32
		group   bool // can be one
		of      uint32
		exact   bool
	}{
		{[]uint32{1, 1}, true, 16, true},
		{[]uint32{100, 100, 100, 100}, true, 16, true},
		{[]uint32{1, 2, 5}, true, 16, true},
		{[]uint32{1, 2, 3}, true, 256, false},
		{[]uint32{1, 255}, true, 256, true},
		{[]uint32{1, 1000}, false, 256, false},
		{[]uint32{1, 65535}, false, 256, false},
		{ones(20), false, 256, false},
	} {
		for i := range c.weights {
			c.weights[i] = max(c.weights[i], 1)
		}
		if d, ok := divide(c.weights, leastSlots, groupSlots); ok != c.group || d.of != c.of || exact(d, c.weights) != c.exact {
			t.Errorf("%v: %+v, in a group %v, exact %v; want %d slots, %v, %v", c.weights, d, ok, exact(d, c.weights), c.of, c.group, c.exact)
		}
	}
}

// TestSlotsAreAllGivenOut: to each target about what it is due and at least one; the pieces of the table choose take
// each source exactly once, and each target has as many as it has slots.
func TestSlotsAreAllGivenOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Range(1, 65535), 2, 40).Draw(t, "weights")
		d, _ := divide(weights, 2, mostSlots)
		got, pieces := make([]uint32, len(weights)), d.pieces()
		for _, p := range pieces {
			got[p.target] += 1 << p.size
		}
		for _, source := range rapid.SliceOfN(rapid.Uint64(), 200, 200).Draw(t, "sources") {
			found := 0
			for _, p := range pieces {
				if value, mask := d.bits(p); source&mask == value {
					found++
				}
			}
			if found != 1 {
				t.Fatalf("source %#x meets %d of %+v", source, found, pieces)
			}
		}
		var sum uint64
		for _, w := range weights {
			sum += uint64(w)
		}
		for i, w := range weights {
			due := float64(w) / float64(sum) * float64(d.of)
			if got[i] != d.slots[i] || got[i] < 1 || float64(got[i]) > due+1 || float64(got[i]) < due-float64(len(weights)) {
				t.Fatalf("target %d has %d slots, by pieces %d, and is due %.1f of %d", i, d.slots[i], got[i], due, d.of)
			}
		}
	})
}

// exact reports whether each target has just what it is due.
func exact(d division, weights []uint32) bool {
	for i := range weights {
		if !d.due(weights, i) {
			return false
		}
	}
	return true
}
