package fib

// Marks are a set of routes by number.
type marks []uint64

// fit makes room for so many routes.
func (m marks) fit(routes int) marks {
	if words := (routes + 63) / 64; words > len(m) {
		return append(m, make(marks, words-len(m))...)
	}
	return m
}

func (m marks) has(i uint32) bool { return m[i>>6]>>(i&63)&1 != 0 }
func (m marks) add(i uint32)      { m[i>>6] |= 1 << (i & 63) }
func (m marks) drop(i uint32)     { m[i>>6] &^= 1 << (i & 63) }
