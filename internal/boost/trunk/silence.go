package trunk

import "time"

// A listening is since when nothing comes over a path from the other agent's machine, though it should.
type listening struct {
	heard   uint64        // segments so far, of the connections that there are
	at      time.Time     // when that number changed last
	waiting time.Time     // since when bytes wait to be acknowledged; zero: none do
	rtt     time.Duration // the longest of the shortest round trips of its connections
	idle    *connection   // one that the other agent is at, and that has nothing left to send; nil: there is none
}

// doubts is the part of its limit after which a path that hears nothing has the others asked.
const doubts = 4

// Silent reports whether the other agent's machine says nothing for so long, and a few round trips: there is no connection to
// it, or bytes are on their way over each path, and not one segment comes by any. The kernel there acknowledges whatever its
// agent does, so that one which stands still, or an end host that does not read, is no silence. Nor is it where one path is lost
// and another one idle: where one hears nothing for a quarter of the limit the idle ones are asked. It is to be asked some times
// in each limit.
func (t *Trunk) Silent(now time.Time, limit time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reached() == 0 {
		return !t.lonely.IsZero() && now.Sub(t.lonely) >= limit
	}
	silent, doubt := true, false
	for _, p := range t.paths {
		p.listen(now)
		if p.reached() > 0 {
			silent = silent && p.hushed(now, limit)
			doubt = doubt || p.hushed(now, limit/doubts)
		}
	}
	for _, p := range t.paths {
		if doubt && now.Sub(p.listens.at) >= limit/doubts {
			p.ask()
		}
	}
	return silent
}

// listen asks the kernel what has come over the path, and what is to be acknowledged.
func (p *Path) listen(now time.Time) {
	l, segments, out := &p.listens, uint64(0), false
	l.rtt, l.idle = 0, nil
	for _, c := range p.conns() {
		i, err := info(c.conn)
		if err != nil {
			continue
		}
		segments += uint64(i.Segs_in)
		out = out || i.Unacked > 0
		l.rtt = max(l.rtt, c.shortest)
		if c.met && !c.retires && i.Notsent_bytes == 0 {
			l.idle = c
		}
	}
	if segments != l.heard {
		l.heard, l.at = segments, now
	}
	switch {
	case !out:
		l.waiting = time.Time{}
	case l.waiting.IsZero():
		l.waiting = now
	}
}

// hushed reports whether bytes are on their way over the path, and nothing comes for so long and two round trips.
func (p *Path) hushed(now time.Time, limit time.Duration) bool {
	l := &p.listens
	limit += 2 * l.rtt
	return !l.waiting.IsZero() && now.Sub(l.at) >= limit && now.Sub(l.waiting) >= limit
}

// ask sends something over the path, if nothing is on its way, for the other agent's kernel to acknowledge: a PING, which means
// nothing on a data connection, to an agent of before neither.
func (p *Path) ask() {
	l := &p.listens
	if l.waiting.IsZero() && l.idle != nil {
		l.idle.asks = true
		wake(l.idle.work)
	}
}
