package oftables

import "iter"

// A book says of one kind of thing what the switch should hold and what it was told, by key. Only what is dirty
// can differ.
type book[K comparable, V any] struct {
	cells map[K]*cell[K, V]
	dirty []*cell[K, V]
	same  func(V, V) bool

	wants int // how many are wanted
}

// A cell is what a book says of one key.
type cell[K comparable, V any] struct {
	key                  K
	want, told           V
	wanted, had, isDirty bool
}

func newBook[K comparable, V any](same func(V, V) bool) book[K, V] {
	return book[K, V]{cells: map[K]*cell[K, V]{}, same: same}
}

func (b *book[K, V]) cell(k K) *cell[K, V] {
	c := b.cells[k]
	if c == nil {
		c = &cell[K, V]{key: k}
		b.cells[k] = c
	}
	return c
}

func (b *book[K, V]) touch(c *cell[K, V]) {
	if !c.isDirty {
		c.isDirty = true
		b.dirty = append(b.dirty, c)
	}
}

func (b *book[K, V]) set(k K, v V) {
	c := b.cell(k)
	if c.wanted && b.same(c.want, v) {
		return
	}
	if !c.wanted {
		b.wants++
	}
	c.want, c.wanted = v, true
	b.touch(c)
}

func (b *book[K, V]) unset(k K) {
	if c := b.cells[k]; c != nil && c.wanted {
		var none V
		c.want, c.wanted = none, false
		b.wants--
		b.touch(c)
	}
}

func (b *book[K, V]) isWanted(k K) bool {
	c := b.cells[k]
	return c != nil && c.wanted
}

// found is something that the switch has besides.
func (b *book[K, V]) found(k K, v V) {
	c := b.cell(k)
	if !c.had {
		c.told, c.had = v, true
	}
	b.touch(c)
}

// lost is something that the switch no longer has, if it was told so and is says so of what it was told.
func (b *book[K, V]) lost(k K, is func(V) bool) bool {
	c := b.cells[k]
	if c == nil || !c.had || !is(c.told) {
		return false
	}
	var none V
	c.told, c.had = none, false
	b.touch(c)
	return true
}

// taken reports whether a key is in use, or still so at the switch for something else than v.
func (b *book[K, V]) taken(k K, v V) bool {
	c := b.cells[k]
	return c != nil && (c.wanted || c.had && !b.same(c.told, v))
}

// wanted is what the switch should hold.
func (b *book[K, V]) wanted() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, c := range b.cells {
			if c.wanted && !yield(k, c.want) {
				return
			}
		}
	}
}

// told is what the switch was told.
func (b *book[K, V]) told() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, c := range b.cells {
			if c.had && !yield(k, c.told) {
				return
			}
		}
	}
}

// learn replaces what the switch was told.
func (b *book[K, V]) learn(told map[K]V) {
	for k, c := range b.cells {
		if _, has := told[k]; c.had && !has {
			var none V
			c.told, c.had = none, false
		}
		b.touch(c)
	}
	for k, v := range told {
		c := b.cell(k)
		c.told, c.had = v, true
		b.touch(c)
	}
}

// A change is one key's: what to tell the switch of it.
type change[K comparable, V any] struct {
	key   K
	value V    // of gone: what was told
	had   bool // the switch has another value
	gone  bool
}

// drain is what is to be told, which counts as told from here on; what skip says has to wait.
func (b *book[K, V]) drain(skip func(K) bool) (changes []change[K, V]) {
	dirty := b.dirty
	b.dirty = nil
	for _, c := range dirty {
		c.isDirty = false
		switch {
		case c.wanted && c.had && b.same(c.want, c.told):
		case c.wanted && !c.had && skip != nil && skip(c.key):
			b.touch(c)
		case c.wanted:
			changes = append(changes, change[K, V]{key: c.key, value: c.want, had: c.had})
			c.told, c.had = c.want, true
		case c.had:
			changes = append(changes, change[K, V]{key: c.key, value: c.told, gone: true})
			c.had = false
		}
		if !c.wanted && !c.had {
			delete(b.cells, c.key)
		}
	}
	return changes
}
