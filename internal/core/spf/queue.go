package spf

// A queue is a heap with four children at a node. A node of the graph may be in it several times; who pops it sees
// by the cost which one is out of date.
type queue struct{ items []uint64 } // cost in the high half, node in the low

func (q *queue) len() int { return len(q.items) }

func (q *queue) push(cost uint32, node int32) {
	x := uint64(cost)<<32 | uint64(uint32(node))
	q.items = append(q.items, x)
	i := len(q.items) - 1
	for i > 0 && x < q.items[(i-1)/4] {
		q.items[i] = q.items[(i-1)/4]
		i = (i - 1) / 4
	}
	q.items[i] = x
}

func (q *queue) pop() (cost uint32, node int32) {
	top, last := q.items[0], len(q.items)-1
	x := q.items[last]
	q.items = q.items[:last]
	if last > 0 {
		q.sink(x)
	}
	return uint32(top >> 32), int32(uint32(top))
}

// sink puts an item where the top was, and then as far down as it belongs.
func (q *queue) sink(x uint64) {
	i, n := 0, len(q.items)
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		best := c
		for j := c + 1; j < min(c+4, n); j++ {
			if q.items[j] < q.items[best] {
				best = j
			}
		}
		if x <= q.items[best] {
			break
		}
		q.items[i] = q.items[best]
		i = best
	}
	q.items[i] = x
}
