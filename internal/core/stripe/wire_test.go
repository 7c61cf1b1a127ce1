package stripe

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// A packet is a frame under way, in either direction.
type packet struct {
	of      frame.Type
	header  frame.Header
	payload []byte // of DATA
	cause   frame.Cause
	state   frame.State
	resume  frame.Resume
}

func (p *packet) size() int { return frame.HeaderLen + len(p.payload) + 16*len(p.state.Ranges) }

// A link is what a connection of the simulated trunk is like.
type link struct {
	rate  float64       // bytes a second
	delay time.Duration // one way
	loss  float64       // of a frame: it, and all behind it, come a round trip later, as after a retransmission
}

// A wire is one connection. What goes one way stays in order.
type wire struct {
	link
	id        Conn
	window    int // bytes that its kernel lets be under way
	dead      bool
	ways      [2]way // to the receiver, to the sender
	delivered int    // bytes of DATA
}

type way struct {
	busy, last time.Time // until when it sends; when its last frame arrives
	inflight   int       // bytes
}

func newWire(l link, id Conn) *wire {
	return &wire{link: l, id: id, window: int(max(4*l.rate*l.delay.Seconds(), 64<<10))}
}

// room reports whether the sender's kernel takes more: with less than 2 ms unsent, and a window of two round trips.
func (c *wire) room(now time.Time) bool {
	w := &c.ways[0]
	return !c.dead && w.busy.Sub(now) < 2*time.Millisecond && w.inflight < c.window
}

// An event is what happens at a time.
type event struct {
	at     time.Time
	number int // so that what happens at one time happens in the order in which it was planned
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// A clock is virtual time and what is to happen.
type clock struct {
	now    time.Time
	plan   events
	number int
	still  int // events that happened at this time
	random *rand.Rand
}

func newClock(seed uint64) clock {
	return clock{now: time.Unix(0, 0), random: rand.New(rand.NewPCG(seed, 1))}
}

func (c *clock) after(d time.Duration, do func()) {
	c.number++
	heap.Push(&c.plan, event{c.now.Add(d), c.number, do})
}

// step lets the next thing happen; false: nothing is left to happen.
func (c *clock) step() bool {
	if len(c.plan) == 0 {
		return false
	}
	e := heap.Pop(&c.plan).(event)
	if c.still++; !e.at.Equal(c.now) {
		c.still = 0
	}
	c.now = e.at
	e.do()
	return true
}

// carry puts a packet on a connection, one way, and has it handed over when it arrives, unless the connection dies.
func (c *clock) carry(on *wire, direction int, p packet, arrive func(packet)) {
	w := &on.ways[direction]
	p.payload = slices.Clone(p.payload)
	p.state.Ranges = slices.Clone(p.state.Ranges)
	n := p.size()
	if w.busy.Before(c.now) {
		w.busy = c.now
	}
	w.busy = w.busy.Add(time.Duration(float64(n) / on.rate * float64(time.Second)))
	at := w.busy.Add(on.delay)
	if on.loss > 0 && c.random.Float64() < on.loss {
		at = at.Add(2 * on.delay)
	}
	if at.Before(w.last) {
		at = w.last
	}
	w.last = at
	w.inflight += n
	c.after(at.Sub(c.now), func() {
		w.inflight -= n
		if !on.dead {
			arrive(p)
		}
	})
}
