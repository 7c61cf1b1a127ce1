package serving

import "fmt"

// A Length is how full one listener's accept queue is.
type Length struct {
	Queue   uint32 // connections that wait
	Backlog uint32 // the most that may
}

// A Group judges all listeners of one triple, which share its connections by SO_REUSEPORT. The kernel
// tells the length of each one's queue, but not whose a waiting connection is.
type Group struct {
	whole   Queue
	members map[uint64]*member // by cookie of the listener
	waits   map[uint64]int     // by cookie of the connection: looks in a row that found it waiting
}

// A member is what is known of one listener.
type member struct {
	first uint32 // how many waited when it last moved
	last  uint32
	same  int // looks in a row without a sign of an accept
}

// Curious reports whether the next look must name the waiting connections.
func (g *Group) Curious() bool { return g.whole.Curious() }

// Look takes a sample of each listener and the names of what waits at all of them (as in Look), and
// returns why one of their programs does not accept, or "".
func (g *Group) Look(each map[uint64]Length, waiting map[uint64]bool) string {
	var sum Look
	for _, l := range each {
		sum.Queue, sum.Backlog = sum.Queue+l.Queue, sum.Backlog+l.Backlog
	}
	sum.Waiting = waiting
	reason := g.whole.Look(sum)
	if len(each) < 2 || sum.Queue == 0 {
		g.members, g.waits = nil, nil
		return reason
	}
	stuck := g.stuck(each, waiting)
	if reason == "" && stuck > 0 {
		reason = fmt.Sprintf("accept queue of %d of %d listeners does not move", stuck, len(each))
	}
	return reason
}

// stuck counts the listeners that do not accept, though others do: those whose queue has not become
// shorter for some looks, if all that waited there at first can be waiting still. A busy listener's
// queue may keep its length by chance; then what waits in it is never the same for long.
func (g *Group) stuck(each map[uint64]Length, waiting map[uint64]bool) int {
	g.follow(each, waiting)
	var idle int
	var owed, same uint32
	for _, m := range g.members {
		if m.same >= StuckAfter {
			idle, owed = idle+1, owed+m.first
		}
	}
	for _, looks := range g.waits {
		if looks >= StuckAfter-1 { // the first look did not name them
			same++
		}
	}
	if owed > same {
		return 0
	}
	return idle
}

// follow brings what is known of listeners and connections up to a sample.
func (g *Group) follow(each map[uint64]Length, waiting map[uint64]bool) {
	members, waits := map[uint64]*member{}, map[uint64]int{}
	for cookie, l := range each {
		if l.Queue == 0 {
			continue
		}
		m := g.members[cookie]
		if m == nil || l.Queue < m.last {
			m = &member{first: l.Queue}
		}
		m.last, m.same = l.Queue, m.same+1
		members[cookie] = m
	}
	for cookie := range waiting {
		waits[cookie] = g.waits[cookie] + 1
	}
	g.members, g.waits = members, waits
}
