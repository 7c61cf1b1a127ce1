package emu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A Link joins two nodes, with parameters for each direction.
type Link struct {
	net   *Net
	nodes [2]Node
	ports [2]*Port
	ways  [2]*way // ways[0] from nodes[0]
}

// A way is one direction of a link.
type way struct {
	net     *Net
	line    *Line
	plain   bool // nothing to emulate: packets pass at once
	to      taker
	router  *Router // to, if it is one
	port    uint16  // of to
	near    *shard  // that sends, and owns the line
	far     *shard  // that receives, and owns what follows
	down    atomic.Bool
	lost    atomic.Uint64 // packets that met the way down
	starved uint64        // for lack of memory or room at the near side
	counted uint64        // packets at the last measurement
	since   time.Duration // when counting began: the parameters were set, or somebody wished it
	before  Counters      // then
	starve0 uint64        // starved then

	timer    timer
	arrivals schedule // what came from another shard
	refused  uint64
	missed   uint64 // for lack of memory at the far side
	miss0    uint64 // missed when counting began
	late     Lateness
	rate     meter
	trace    uint64
	watch    []*watcher
}

// A taker is where a way leads.
type taker interface {
	take(s *shard, batch []Packet)
}

// Link joins two nodes, or one with itself. Params[0] hold from a to b.
func (n *Net) Link(a, b Node, p [2]Params) (*Link, error) {
	if n.running {
		return nil, ErrRunning
	}
	l := &Link{net: n, nodes: [2]Node{a, b}}
	for i := range p {
		if err := p[i].Validate(); err != nil {
			return nil, fmt.Errorf("link from %s to %s: %w", l.nodes[i].Name(), l.nodes[1-i].Name(), err)
		}
		w := &way{net: n, line: NewLine(p[i]), plain: p[i].plain()}
		w.rate.reset(p[i].Jitter)
		w.timer = timer{way: w, rank: uint64(2*len(n.links) + i), slot: idle}
		l.ways[i] = w
	}
	for i, node := range l.nodes {
		port, err := node.attach(l.ways[i])
		if err != nil {
			return nil, err
		}
		port.Link, port.side, port.in = l, i, l.ways[1-i]
		l.ports[i] = port
		l.ways[1-i].to, l.ways[1-i].port = node.(taker), uint16(port.Number)
		l.ways[1-i].router, _ = node.(*Router)
	}
	n.links = append(n.links, l)
	return l, nil
}

// Ends are the nodes that the link joins.
func (l *Link) Ends() [2]Node { return l.nodes }

// Ports are the ports where the link ends, Ports[i] of Ends[i].
func (l *Link) Ports() [2]*Port { return l.ports }

// Set changes the parameters for the packets to come.
func (l *Link) Set(p [2]Params) error {
	for i := range p {
		if err := p[i].Validate(); err != nil {
			return err
		}
	}
	var errs [2]error
	for i, w := range l.ways {
		if w.crosses() && l.net.opt.Virtual && p[i].latency() == 0 {
			return fmt.Errorf("link from %s to %s joins two shards: in virtual time it needs a delay that is longer than its jitter",
				l.nodes[i].Name(), l.nodes[1-i].Name())
		}
	}
	for i, w := range l.ways {
		errs[i] = errors.Join(w.near.ask(func() {
			w.line.Set(p[i])
			w.plain = p[i].plain() && !w.crosses() && w.timer.slot == idle // else what is on its way goes first
			w.nearAnew()
		}), w.far.ask(func() {
			w.farAnew()
			w.rate.reset(p[i].Jitter)
		}))
	}
	return errors.Join(errs[:]...)
}

// SetUp lets packets pass in the directions from Ends[0] and from Ends[1], or loses them all. It returns when the
// programs at the ends know of it ([Linked]), and so is not to be called inside [Net.Do].
func (l *Link) SetUp(up [2]bool) {
	for i, w := range l.ways {
		w.down.Store(!up[i])
	}
	l.tell()
}

// Up reports which directions packets pass.
func (l *Link) Up() (up [2]bool) {
	for i, w := range l.ways {
		up[i] = !w.down.Load()
	}
	return up
}

// latency is the least time that a packet takes.
func (p Params) latency() time.Duration { return p.Delay - p.Jitter }

// plain parameters leave packets as they are.
func (p Params) plain() bool {
	p.Seed, p.Queue, p.Burst, p.ReorderBy, p.Unordered = 0, 0, 0, 0, false
	return p == Params{}
}

// enter takes what reached an interface at a moment that has passed: its time on the link began then. So lateness counts
// from there, also where nobody read the interface for a while.
func (w *way) enter(s *shard, run []Packet, at time.Duration) {
	if w.plain && !w.down.Load() { // it leaves now, and not by flush
		w.late.Add(s.now-at, packets(run))
	}
	w.sendAt(s, run, at)
}

// send takes packets that one node sends.
func (w *way) send(s *shard, run []Packet) { w.sendAt(s, run, s.now) }

// sendAt takes packets that one node sent at a moment.
func (w *way) sendAt(s *shard, run []Packet, at time.Duration) {
	switch {
	case w.down.Load():
		w.lose(s, run)
	case w.plain:
		t := s.arena.tally(run, w.port)
		w.line.skip(t.packets, t.bytes)
		w.hand(s, run, t)
	default:
		for i := range run {
			w.enqueue(s, run[i], at)
		}
		if w.crosses() {
			w.cross(s)
			return
		}
		w.arm(s)
	}
}

// enqueue gives a packet to the line.
func (w *way) enqueue(s *shard, p Packet, at time.Duration) {
	parts := w.line.Send(at, s.arena.frame(&p), p)
	if s.arena.refs[p.slot] += int32(parts) - 1; s.arena.refs[p.slot] == 0 {
		s.arena.give(p.slot)
	}
}

// queue holds what is on its way.
func (w *way) queue() *schedule {
	if w.crosses() {
		return &w.arrivals
	}
	return &w.line.waiting
}

// arm sets the timer to the first part that is due.
func (w *way) arm(s *shard) {
	if due, ok := w.queue().due(); ok && (w.timer.slot == idle || due < w.timer.due) {
		s.wheel.set(&w.timer, due)
	}
}

// flush delivers what is due.
func (w *way) flush(s *shard) {
	queue := w.queue()
	for w.part(s, queue) {
	}
	if _, more := queue.due(); more {
		w.arm(s)
	} else if !w.crosses() {
		w.plain = w.line.p.plain()
	}
}

// few is how many parts are delivered before the clock is read again: each that leaves by an edge takes a microsecond
// or two.
const few = 8

// part delivers some of what is due.
func (w *way) part(s *shard, queue *schedule) (more bool) {
	run := s.due[:0]
	for len(run) < few {
		if due, ok := queue.due(); !ok || due > s.now {
			break
		}
		p := queue.pop()
		w.late.Add(s.now-p.Due, uint64(p.count))
		w.rate.add(s.now, s.arena.span(&p.Packet), p.flags&flagFirst != 0)
		p.flags &^= flagFirst
		run = append(run, p.Packet)
	}
	s.due = run
	if len(run) == 0 {
		return false
	}
	if w.down.Load() {
		w.lose(s, run)
	} else {
		w.deliver(s, run)
	}
	if len(run) < few {
		return false
	}
	s.now = s.clock()
	return true
}

func (w *way) deliver(s *shard, run []Packet) { w.hand(s, run, s.arena.tally(run, w.port)) }

// hand gives packets that were counted to where the way leads.
func (w *way) hand(s *shard, run []Packet, t tally) {
	if s.tracing {
		w.note(s, run)
	}
	for _, see := range w.watch {
		for _, p := range run {
			see.show(s, p)
		}
	}
	if w.router != nil {
		w.router.arrive(s, run, t)
	} else {
		w.to.take(s, run)
	}
}

func (w *way) lose(s *shard, run []Packet) {
	w.lost.Add(packets(run))
	for i := range run {
		s.arena.release(run[i].slot)
	}
}
