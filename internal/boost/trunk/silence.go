package trunk

import "time"

// A listening is since when nothing comes from the other agent's machine, though it should.
type listening struct {
	heard   uint64    // segments so far, of the connections that there are
	at      time.Time // when that number changed last
	waiting time.Time // since when bytes wait to be acknowledged; zero: none do
}

// Silent reports whether the other agent's machine says nothing for so long, and a few round trips: there is no connection to
// it, or bytes are on their way and not one segment comes, on any connection. The kernel there acknowledges whatever its agent
// does, so that one which stands still, or an end host that does not read, is no silence. It is to be asked some times in each
// limit.
func (t *Trunk) Silent(now time.Time, limit time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reached() == 0 {
		return !t.lonely.IsZero() && now.Sub(t.lonely) >= limit
	}
	l, segments, out, path := &t.listens, uint64(0), false, time.Duration(0)
	for _, c := range t.conns {
		i, err := info(c.conn)
		if err != nil {
			continue
		}
		segments += uint64(i.Segs_in)
		out = out || i.Unacked > 0
		path = max(path, c.shortest)
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
	limit += 2 * path
	return out && now.Sub(l.at) >= limit && now.Sub(l.waiting) >= limit
}
