package stripe

// A queue is first in, first out; it keeps its memory.
type queue[T any] struct {
	all  []T
	head int
}

func (q *queue[T]) len() int    { return len(q.all) - q.head }
func (q *queue[T]) at(i int) *T { return &q.all[q.head+i] }

func (q *queue[T]) push(v T) {
	if q.head > 32 && q.head > len(q.all)/2 && len(q.all) == cap(q.all) { // half is past: no need to grow
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
	q.all = append(q.all, v)
}

func (q *queue[T]) pop() (v T) {
	var zero T
	v, q.all[q.head] = q.all[q.head], zero
	if q.head++; q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
	return v
}
