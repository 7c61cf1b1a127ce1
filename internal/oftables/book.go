package oftables

// A book says of one kind of thing what the switch should hold and what it was told, by key. Only what is dirty
// can differ.
type book[K comparable, V any] struct {
	want, told map[K]V
	dirty      map[K]struct{}
	same       func(V, V) bool
}

func newBook[K comparable, V any](same func(V, V) bool) book[K, V] {
	return book[K, V]{want: map[K]V{}, told: map[K]V{}, dirty: map[K]struct{}{}, same: same}
}

func (b *book[K, V]) set(k K, v V) {
	if old, ok := b.want[k]; ok && b.same(old, v) {
		return
	}
	b.want[k] = v
	b.dirty[k] = struct{}{}
}

func (b *book[K, V]) unset(k K) {
	if _, ok := b.want[k]; ok {
		delete(b.want, k)
		b.dirty[k] = struct{}{}
	}
}

// taken reports whether a key is in use, or still so at the switch for something else than v.
func (b *book[K, V]) taken(k K, v V) bool {
	_, wanted := b.want[k]
	told, had := b.told[k]
	return wanted || had && !b.same(told, v)
}

// learn replaces what the switch was told.
func (b *book[K, V]) learn(told map[K]V) {
	b.told = told
	for k := range told {
		b.dirty[k] = struct{}{}
	}
	for k := range b.want {
		b.dirty[k] = struct{}{}
	}
}

// A change is one key's: what to tell the switch of it.
type change[K comparable, V any] struct {
	key     K
	value   V    // of gone: what was told
	had     bool // the switch has another value
	gone    bool
	skipped bool
}

// drain is what is to be told, which counts as told from here on.
func (b *book[K, V]) drain(skip func(K) bool) (changes []change[K, V]) {
	for k := range b.dirty {
		want, wanted := b.want[k]
		told, had := b.told[k]
		switch {
		case wanted && had && b.same(want, told):
		case wanted && !had && skip != nil && skip(k):
			continue // stays dirty
		case wanted:
			b.told[k] = want
			changes = append(changes, change[K, V]{key: k, value: want, had: had})
		case had:
			delete(b.told, k)
			changes = append(changes, change[K, V]{key: k, value: told, gone: true})
		}
		delete(b.dirty, k)
	}
	return changes
}
