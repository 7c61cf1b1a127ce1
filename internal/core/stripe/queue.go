package stripe

import "slices"

// A queue is first in, first out; it keeps its memory.
type queue[T any] struct {
	all  []T
	head int
}

func (q *queue[T]) len() int    { return len(q.all) - q.head }
func (q *queue[T]) at(i int) *T { return &q.all[q.head+i] }

func (q *queue[T]) push(v T) {
	q.makeRoom()
	q.all = append(q.all, v)
}

// insert puts one before that with an index.
func (q *queue[T]) insert(i int, v T) {
	q.makeRoom()
	q.all = slices.Insert(q.all, q.head+i, v)
}

// makeRoom forgets what is past where more would make the queue grow.
func (q *queue[T]) makeRoom() {
	if q.head > 32 && q.head > len(q.all)/2 && len(q.all) == cap(q.all) {
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
}

func (q *queue[T]) pop() (v T) {
	var zero T
	v, q.all[q.head] = q.all[q.head], zero
	if q.head++; q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
	return v
}
