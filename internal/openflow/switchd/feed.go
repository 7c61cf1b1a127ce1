package switchd

// A feed is news for one handler: of each name the latest, in the order in which they became news. What is not
// taken in time is overtaken, and never lost.
type feed[T any] struct {
	to     func(T)
	order  []string
	latest map[string]T
}

func newFeed[T any](to func(T)) *feed[T] { return &feed[T]{to: to, latest: make(map[string]T)} }

func (q *feed[T]) put(name string, v T) {
	if _, waits := q.latest[name]; !waits {
		q.order = append(q.order, name)
	}
	q.latest[name] = v
}

// take returns a call that tells the oldest news, nil if there are none.
func (q *feed[T]) take() func() {
	if len(q.order) == 0 {
		return nil
	}
	name := q.order[0]
	q.order = q.order[1:]
	v := q.latest[name]
	delete(q.latest, name)
	return func() { q.to(v) }
}
