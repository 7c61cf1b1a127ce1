package emu

import "time"

// A schedule holds parts by due time: those that keep their order in a ring, as they come, and the
// few that do not in a heap. Neither allocates once it is large enough.
type schedule struct {
	ring   []Part // length is a power of two, or 0
	head   uint64 // of the ring, counted without end
	tail   uint64
	heap   []Part
	pushed uint64
}

// pushLast adds a part that is due no earlier than all that pushLast added before.
func (s *schedule) pushLast(p Part) {
	if s.tail-s.head == uint64(len(s.ring)) {
		s.grow()
	}
	p.order = s.pushed
	s.pushed++
	s.ring[s.tail&uint64(len(s.ring)-1)] = p
	s.tail++
}

func (s *schedule) grow() {
	larger := make([]Part, max(1024, 2*len(s.ring)))
	for i := s.head; i != s.tail; i++ {
		larger[i&uint64(len(larger)-1)] = s.ring[i&uint64(len(s.ring)-1)]
	}
	s.ring = larger
}

// pushAny adds a part with any due time.
func (s *schedule) pushAny(p Part) {
	p.order = s.pushed
	s.pushed++
	s.heap = append(s.heap, p)
	for i := len(s.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.heap[i].before(&s.heap[up]) {
			return
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

func (p *Part) before(q *Part) bool {
	return p.Due < q.Due || p.Due == q.Due && p.order < q.order
}

// first is the part due next, and whether it is in the ring; nil for none.
func (s *schedule) first() (p *Part, ring bool) {
	if s.head != s.tail {
		p, ring = &s.ring[s.head&uint64(len(s.ring)-1)], true
	}
	if len(s.heap) > 0 && (p == nil || s.heap[0].before(p)) {
		return &s.heap[0], false
	}
	return p, ring
}

func (s *schedule) due() (time.Duration, bool) {
	p, _ := s.first()
	if p == nil {
		return 0, false
	}
	return p.Due, true
}

// pop takes the part due next; there must be one.
func (s *schedule) pop() Part {
	p, ring := s.first()
	taken := *p
	if ring {
		s.head++
		return taken
	}
	n := len(s.heap) - 1
	s.heap[0] = s.heap[n]
	s.heap = s.heap[:n]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if s.heap[c].before(&s.heap[least]) {
				least = c
			}
		}
		if least == i {
			return taken
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
}
