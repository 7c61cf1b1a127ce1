package fib

import "slices"

// A pool hands out blocks of 1 to 64 neighbouring items. Freed blocks are used again for their own size; they are
// chained through the link of their first item. Block 0 is never handed out.
type pool[T any, P linked[T]] struct {
	items []T
	heads [65]uint32
}

type linked[T any] interface {
	*T
	link() *uint32
}

func (n *node) link() *uint32 { return &n.child }
func (l *leaf) link() *uint32 { return (*uint32)(l) }

// take returns the first of n items, whatever they hold.
func (p *pool[T, P]) take(n int) uint32 {
	if n == 0 {
		return 0
	}
	if i := p.heads[n]; i != 0 {
		p.heads[n] = *P(&p.items[i]).link()
		return i
	}
	i := len(p.items)
	p.items = slices.Grow(p.items, n)[:i+n]
	return uint32(i)
}

func (p *pool[T, P]) give(i uint32, n int) {
	if n == 0 {
		return
	}
	*P(&p.items[i]).link() = p.heads[n]
	p.heads[n] = i
}

// fit gives back memory that is not used.
func (p *pool[T, P]) fit() { p.items = fit(p.items) }

func fit[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }
