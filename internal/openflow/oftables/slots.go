package oftables

import (
	"cmp"
	"slices"
)

// A division gives each target of a list some of a number of slots, as many as its weight asks for; a flow meets
// each slot as likely as any other.
type division struct {
	of    uint32   // slots in all, a power of two
	slots []uint32 // of each target, at least 1
}

const (
	leastSlots = 16      // of a dp_hash group
	groupSlots = 256     // most of one
	mostSlots  = 1 << 16 // of the table choose
	// How far off shares may be, in terms of misfit: groups, which are cheaper, up to what a test could hardly
	// tell; where more slots do no harm, less.
	tolerable = 4
	near      = 0.25
)

// divide tries numbers of slots from least to most and takes the first whose shares are near what is due, else the most; ok
// reports whether its shares are tolerable.
func divide(weights []uint32, least, most uint32) (d division, ok bool) {
	for of := least; of <= most; of *= 2 {
		if int(of) < len(weights) {
			continue
		}
		d = division{of, apportion(weights, of)}
		if d.misfit(weights) <= near {
			return d, true
		}
	}
	return d, d.slots != nil && d.misfit(weights) <= tolerable
}

// misfit is how much the wrong shares add to the chi-square of 10,000 flows.
func (d division) misfit(weights []uint32) (sum float64) {
	const flows = 10000
	total := total(weights)
	for i, w := range weights {
		due := float64(w) / float64(total)
		off := float64(d.slots[i])/float64(d.of) - due
		sum += flows * off * off / due
	}
	return sum
}

// due reports whether target i has just what it is due.
func (d division) due(weights []uint32, i int) bool {
	return uint64(d.slots[i])*total(weights) == uint64(weights[i])*uint64(d.of)
}

// apportion gives each its share of the slots rounded down, but at least one, and the rest to the largest
// remainders. There are as many slots as weights or more.
func apportion(weights []uint32, of uint32) []uint32 {
	total := total(weights)
	slots := make([]uint32, len(weights))
	order := make([]int, len(weights))
	left := int64(of)
	rest := func(i int) int64 { // of what it is due, what it has not, in 1/total of a slot
		return int64(uint64(weights[i])*uint64(of)) - int64(uint64(slots[i])*total)
	}
	for i, w := range weights {
		slots[i] = uint32(max(uint64(w)*uint64(of)/total, 1))
		left -= int64(slots[i])
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest(b), rest(a)) })
	for n := 0; left > 0; n, left = n+1, left-1 {
		slots[order[n%len(order)]]++
	}
	for left < 0 { // those that were given one that they are not due: from who has most
		most := 0
		for i := range slots {
			if slots[i] > slots[most] {
				most = i
			}
		}
		slots[most]--
		left++
	}
	return slots
}

func total(weights []uint32) (sum uint64) {
	for _, w := range weights {
		sum += uint64(w)
	}
	return sum
}

// A piece is 1<<size slots from start on, for one target. It is aligned, so that the slots of it are those whose
// upper bits are its own.
type piece struct {
	target int
	start  uint32
	size   int
}

// pieces lays a division out: each target's slots in powers of two, the largest first, which aligns all of them.
func (d division) pieces() []piece {
	var all []piece
	for i, n := range d.slots {
		for size := range 17 {
			if n>>size&1 == 1 {
				all = append(all, piece{target: i, size: size})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b piece) int { return cmp.Compare(b.size, a.size) })
	var at uint32
	for i := range all {
		all[i].start = at
		at += 1 << all[i].size
	}
	return all
}

// bits are the lowest bits of a source that a piece asks for, and how they are to be. Slots are numbered by those
// bits in reverse, so that few slots look at few bits, and sources that count up take turns.
func (d division) bits(p piece) (value, mask uint64) {
	for n := range log2(d.of) - p.size {
		slot := p.start >> (log2(d.of) - 1 - n) & 1
		value |= uint64(slot) << n
		mask |= 1 << n
	}
	return value, mask
}

func log2(n uint32) (bits int) {
	for n > 1 {
		n >>= 1
		bits++
	}
	return bits
}
