package fib

import "math/bits"

// A window is some bits of an address that lie together in one of its words.
type window struct {
	begin int // number of the first bit
	width int
	mask  uint64
	shift uint8 // of the word, to have the bits at the right
	low   bool  // they are bits of the low word
}

// windowAt has a bit and as many of those that follow as are in the same word.
func windowAt(bit, width int) window {
	begin := min(bit&63, 64-width)
	return window{begin: begin + bit&64, width: width, mask: 1<<width - 1, shift: uint8(64 - width - begin), low: bit >= 64}
}

// end is the number of the bit after the last.
func (w *window) end() int { return w.begin + w.width }

// value is what a key has in these bits.
func (w *window) value(k key) int {
	word := k.hi
	if w.low {
		word = k.lo
	}
	return int(word >> w.shift & w.mask)
}

// stride is how many bits a node looks at.
const stride = 6

func (n *node) window() window {
	begin := 64 - stride - int(n.shift)
	if n.low {
		begin += 64
	}
	return windowAt(begin, stride)
}

// Of the root: there are about four values for each route, so that most have at most one.
const (
	minRoot = 2
	maxRoot = 18
)

func rootWidth(routes int) int { return min(max(minRoot, bits.Len(uint(routes))+2), maxRoot) }
