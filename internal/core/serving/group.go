package serving

import (
	"cmp"
	"slices"
	"time"
)

// A Length is how full one listener's accept queue is, and what its program did.
type Length struct {
	Queue   uint32 // connections that wait
	Backlog uint32 // the most that may
	Program Program
}

// A Group judges all listeners of one triple, which share its connections by SO_REUSEPORT. The kernel
// tells the length of each one's queue, but not whose a waiting connection is.
type Group struct {
	whole   Queue
	members map[uint64]*member // by cookie of the listener
	waits   map[uint64]int     // by cookie of the connection: looks in a row that found it waiting
	usual   time.Duration      // the pace of the slowest member lately
}

// A member is what is known of one listener.
type member struct {
	pace
	lengths [StuckAfter - 1]uint32 // of its queue at the last looks, the oldest first
}

// note takes the length of the queue at another look.
func (m *member) note(queue uint32) {
	copy(m.lengths[:], m.lengths[1:])
	m.lengths[len(m.lengths)-1] = queue
}

// shorter reports whether a queue that is so long now has lost one.
func (m *member) shorter(queue uint32) bool { return queue < m.lengths[len(m.lengths)-1] }

// late judges a listener; nil is one at which nothing waits.
func (m *member) late(p Program) (late, slow bool) {
	if m == nil {
		return false, false
	}
	return m.pace.late(p)
}

// Curious reports whether the next look must name the waiting connections, and say what the programs did.
func (g *Group) Curious() bool { return g.whole.Curious() }

// Look takes a sample of each listener, that long after the last one, and the names of what waits at all of them (as in
// Look). It returns why no listener's program accepts, or how many listeners still work: an instance is weighed by these.
func (g *Group) Look(elapsed time.Duration, each map[uint64]Length, waiting map[uint64]bool) Verdict {
	sum := Look{Elapsed: elapsed, Waiting: waiting, Program: Program{Known: true, Stopped: true}}
	for _, l := range each {
		sum.Queue, sum.Backlog = sum.Queue+l.Queue, sum.Backlog+l.Backlog
		sum.Program.join(l.Program)
	}
	whole := g.whole.Look(sum)
	if len(each) < 2 || sum.Queue == 0 {
		g.members, g.waits = nil, nil
		return whole
	}
	g.follow(elapsed, each, waiting)
	stuck, slow := g.stuck(each, whole.Reason != "")
	switch {
	case whole.Reason == queueFull:
		return whole
	case stuck == 0:
		return Verdict{}
	case stuck == len(each):
		return Verdict{Reason: queueStands, Slow: slow}
	}
	return Verdict{Slow: slow, Working: len(each) - stuck, Listeners: len(each)}
}

// join makes one program of two, of which any may accept. That a part of it is stopped tells nothing of the whole then.
func (p *Program) join(o Program) {
	p.Known = p.Known && o.Known
	p.Stopped = p.Stopped && o.Stopped
	p.Starved = max(p.Starved, o.Starved)
}

// stuck counts the listeners that do not accept: those whose queue has not become shorter for longer than their programs
// take, if all that waited there can be waiting still. none: nobody has accepted anything, so that needs no names. Beside
// such a listener those count whose program is stopped, before it shows in their queues. slow: all of them run.
func (g *Group) stuck(each map[uint64]Length, none bool) (n int, slow bool) {
	var all []owed
	var late, stopped int
	slow = true
	for cookie, l := range each {
		m := g.members[cookie]
		is, only := m.late(l.Program)
		switch {
		case is:
			late, slow = late+1, slow && only
		case l.Program.Known && l.Program.Stopped:
			stopped++
		}
		if m != nil {
			all = append(all, owed{m.lengths[0], is})
		}
	}
	if n = late; !none {
		n = most(all, g.same())
	}
	if n == 0 {
		return 0, false
	}
	return n + stopped, slow && stopped == 0
}

// An owed is what waited a while ago at a listener, 0 where less is known of it, and whether that one is late.
type owed struct {
	waited uint32
	late   bool
}

// most is how many listeners are late and can be those at which what waits is the same as a while ago, of which there are
// so many connections. A busy listener's queue may keep its length by chance, but what waits there does not. Whose the
// connections are is not known: with the longest queues first they are never too many, for those that are stuck have as
// many. One that is stuck and not late yet has its part of them, too: without it in the row, they would be taken for those
// of others.
func most(all []owed, same uint32) (n int) {
	slices.SortFunc(all, func(a, b owed) int { return cmp.Compare(b.waited, a.waited) })
	for _, o := range all {
		if o.waited > same {
			break
		}
		same -= o.waited
		if o.late {
			n++
		}
	}
	return n
}

// same counts the connections that have been named as often as a member has lengths.
func (g *Group) same() (n uint32) {
	for _, looks := range g.waits {
		if looks >= StuckAfter-1 {
			n++
		}
	}
	return n
}

// follow brings what is known of listeners and connections up to a sample.
func (g *Group) follow(elapsed time.Duration, each map[uint64]Length, waiting map[uint64]bool) {
	members, waits := map[uint64]*member{}, map[uint64]int{}
	for cookie, l := range each {
		m := g.members[cookie]
		if m != nil && m.shorter(l.Queue) {
			m.accept()
			g.usual = max(m.usual, g.usual)
			m = nil
		}
		if l.Queue == 0 {
			continue
		}
		if m == nil {
			m = &member{pace: pace{usual: g.usual}}
		}
		m.note(l.Queue)
		m.wait(elapsed, l.Program)
		members[cookie] = m
	}
	for cookie := range waiting {
		waits[cookie] = g.waits[cookie] + 1
	}
	g.members, g.waits = members, waits
	g.usual -= g.usual / 256
}
