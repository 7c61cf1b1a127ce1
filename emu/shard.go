package emu

import (
	"errors"
	"sync/atomic"
	"time"
)

// A shard is one thread with its own routers, ways, edges and memory. Packets go through it to completion: from an
// edge or a line through as many routers as there are until the next line or edge.
type shard struct {
	net     *Net
	number  int
	base    time.Time
	now     time.Duration // as last read, or as virtual time has it
	arena   *arena
	spare   uint32 // large slot to read into
	wheel   wheel
	ready   []*Router // with packets that wait
	routers []*Router
	edges   []*Edge
	due     []Packet // that a way delivers; kept for its memory
	one     [1]Packet
	head    [maxHead]byte // of a part that is cut out of a train
	tracing bool
	out, in []*ring      // to and from each other shard
	asleep  atomic.Int64 // until when the thread sleeps; 0 while it is awake

	poll    poller
	pace    pace
	turns   Lateness // how long interfaces were not looked at
	pauses  uint64
	asked   chan func()
	gone    chan struct{} // closed when the thread has ended
	started bool
	stop    bool
}

func newShard(n *Net, number int) (*shard, error) {
	a, err := newArena(n.opt.Memory)
	if err != nil {
		return nil, err
	}
	s := &shard{net: n, number: number, arena: a, asked: make(chan func(), 16), gone: make(chan struct{}), tracing: n.tracing,
		ready: make([]*Router, 0, 1024), due: make([]Packet, 0, 1024)}
	s.spare, _ = a.take(1)
	if n.opt.Virtual {
		return s, nil
	}
	if err := s.poll.open(); err != nil {
		a.close()
		return nil, err
	}
	return s, nil
}

// begin wakes all timed programs once.
func (s *shard) begin() {
	for _, r := range s.routers {
		r.begin()
	}
}

// run lets everything happen that is due, and returns when the next is.
func (s *shard) run() (next time.Duration) {
	for {
		s.settle()
		t := s.wheel.pop(s.now)
		if t == nil {
			if !s.net.opt.Virtual && s.catchUp() {
				continue
			}
			break
		}
		s.now = s.clock()
		switch {
		case t.way != nil:
			t.way.flush(s)
		case t.router != nil:
			t.router.wake(s)
		default:
			t.player.play(s)
		}
	}
	if t := s.wheel.first(); t != nil {
		return t.due
	}
	s.wheel.advance(s.now)
	return Never
}

// catchUp reads the clock again: work takes time, and more may be due.
func (s *shard) catchUp() bool {
	t := s.wheel.first()
	if t == nil {
		return false
	}
	s.now = s.clock()
	return t.due <= s.now
}

// settle lets routers process what waits until nothing does.
func (s *shard) settle() {
	for i := 0; i < len(s.ready); i++ {
		s.ready[i].process(s)
	}
	s.ready = s.ready[:0]
}

// clock is the present time.
func (s *shard) clock() time.Duration {
	if s.net.opt.Virtual {
		return s.now
	}
	return time.Since(s.base)
}

// ErrClosed is returned by the methods of a network that has ended.
var ErrClosed = errors.New("the emulated network has ended")

// ask has the shard's thread call f, and returns afterwards. What f made to happen goes on before the next packets.
func (s *shard) ask(f func()) error {
	if s == nil || !s.started { // nothing runs yet, or time is virtual
		f()
		return nil
	}
	done := make(chan struct{})
	select {
	case s.asked <- func() { f(); close(done) }:
	case <-s.gone:
		return ErrClosed
	}
	s.poll.wake()
	select {
	case <-done:
		return nil
	case <-s.gone:
		return ErrClosed
	}
}

// answer calls what was asked for.
func (s *shard) answer() {
	for {
		select {
		case f := <-s.asked:
			f()
		default:
			return
		}
	}
}

// end stops the thread.
func (s *shard) end() {
	if s.started && s.ask(func() { s.stop = true }) == nil {
		<-s.gone
	}
}

func (s *shard) free() {
	if !s.net.opt.Virtual {
		s.poll.close()
	}
	s.arena.close()
}
