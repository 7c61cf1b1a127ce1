package emu

import (
	"math/bits"
	"time"
)

// A timing wheel (Varghese and Lauck 1987) finds what is due next among many lines and routers. A slot is
// 8.192 us, the wheel 134 ms; what is due later waits in the last slot and is put back when its turn comes. What is
// due in the present slot lies in a heap and comes out exactly in order, so that virtual time is exact.
const (
	slotShift  = 13
	wheelSlots = 1 << 14
)

// A timer is one thing that has a moment. It is part of what it wakes.
type timer struct {
	due        time.Duration
	rank       uint64 // order of those due at the same moment
	way        *way   // one of the three
	router     *Router
	player     *Player
	prev, next *timer
	slot       int32 // idle, inHeap, or the number of its slot
	at         int32 // its place in the heap
}

const (
	idle   = int32(-1)
	inHeap = int32(-2)
)

type wheel struct {
	cursor int64 // number of the last slot that lies in the heap
	slots  [wheelSlots]*timer
	filled [wheelSlots / 64]uint64
	queued int // timers in slots
	heap   []*timer
}

// set arms a timer, which may be armed already.
func (w *wheel) set(t *timer, due time.Duration) {
	if t.slot != idle {
		w.remove(t)
	}
	t.due = due
	w.insert(t)
}

func (w *wheel) insert(t *timer) {
	n := int64(t.due >> slotShift)
	if n <= w.cursor {
		w.push(t)
		return
	}
	n = min(n, w.cursor+wheelSlots-1) & (wheelSlots - 1)
	t.slot, t.prev, t.next = int32(n), nil, w.slots[n]
	if t.next != nil {
		t.next.prev = t
	}
	w.slots[n] = t
	w.filled[n>>6] |= 1 << (n & 63)
	w.queued++
}

// remove disarms a timer.
func (w *wheel) remove(t *timer) {
	switch {
	case t.slot == idle:
		return
	case t.slot == inHeap:
		w.drop(int(t.at))
	default:
		w.unlink(t)
	}
	t.slot = idle
}

func (w *wheel) unlink(t *timer) {
	if t.next != nil {
		t.next.prev = t.prev
	}
	if t.prev != nil {
		t.prev.next = t.next
	} else if w.slots[t.slot] = t.next; t.next == nil {
		w.filled[t.slot>>6] &^= 1 << (t.slot & 63)
	}
	t.prev, t.next = nil, nil
	w.queued--
}

// first is the timer that is due next, nil for none.
func (w *wheel) first() *timer {
	for len(w.heap) == 0 {
		if w.queued == 0 {
			return nil
		}
		w.turn(w.nextSlot())
	}
	return w.heap[0]
}

// pop takes the timer that is due next if that is not after now.
func (w *wheel) pop(now time.Duration) *timer {
	t := w.first()
	if t == nil || t.due > now {
		return nil
	}
	w.remove(t)
	return t
}

// nextSlot is the number of the first slot after the cursor that holds a timer; there is one.
func (w *wheel) nextSlot() int64 {
	for n := w.cursor + 1; ; {
		i := n & (wheelSlots - 1)
		if word := w.filled[i>>6] >> (i & 63); word != 0 {
			return n + int64(bits.TrailingZeros64(word))
		}
		n += 64 - i&63
	}
}

// turn moves the timers of a slot into the heap, those that are not due in it back into the wheel.
func (w *wheel) turn(n int64) {
	w.cursor = n
	for t := w.slots[n&(wheelSlots-1)]; t != nil; {
		next := t.next
		w.unlink(t)
		w.insert(t)
		t = next
	}
}

func (t *timer) before(u *timer) bool { return t.due < u.due || t.due == u.due && t.rank < u.rank }

func (w *wheel) push(t *timer) {
	t.slot = inHeap
	w.heap = append(w.heap, t)
	w.up(len(w.heap) - 1)
}

func (w *wheel) up(i int) {
	t := w.heap[i]
	for i > 0 && t.before(w.heap[(i-1)/2]) {
		w.place(i, w.heap[(i-1)/2])
		i = (i - 1) / 2
	}
	w.place(i, t)
}

func (w *wheel) down(i int) {
	t, n := w.heap[i], len(w.heap)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && w.heap[c+1].before(w.heap[c]) {
			c++
		}
		if !w.heap[c].before(t) {
			break
		}
		w.place(i, w.heap[c])
		i = c
	}
	w.place(i, t)
}

func (w *wheel) place(i int, t *timer) {
	w.heap[i] = t
	t.at = int32(i)
}

// drop takes a timer out of the heap.
func (w *wheel) drop(i int) {
	n := len(w.heap) - 1
	last := w.heap[n]
	w.heap[n] = nil
	w.heap = w.heap[:n]
	if i == n {
		return
	}
	w.place(i, last)
	w.up(i)
	w.down(int(last.at))
}

// advance lets an empty wheel keep up with the time.
func (w *wheel) advance(now time.Duration) {
	if w.queued == 0 && len(w.heap) == 0 {
		w.cursor = max(w.cursor, int64(now>>slotShift))
	}
}
