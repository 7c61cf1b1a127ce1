package switchd

import (
	"maps"
	"time"
)

// renewEvery is how often the loop looks whether leases are due: a few times in a third of the shortest.
const renewEvery = shortestLease / 8

// leases are when rules that go by themselves were renewed last, by how long they last, in seconds.
type leases struct {
	look bool // it is time to
	last map[uint16]time.Time
}

// renew has such rules last on, each third of their time. Nothing else may be on its way to the switch: so whatever takes a
// rule out is sent behind its renewal, and a rule that nobody wants any more does not come back. While one change follows the
// other it comes between them, since it is called before each.
func (m *member) renew(now time.Time) {
	l := &m.leases
	if !l.look || m.tables == nil || m.writer.busy || !m.writing.TryLock() {
		return
	}
	defer m.writing.Unlock()
	if m.writing.ended {
		return
	}
	l.look = false
	last := map[uint16]time.Time{}
	for _, lease := range m.tables.Leases() {
		last[lease] = l.last[lease]
		if now.Sub(last[lease]) < time.Duration(lease)*time.Second/3-renewEvery {
			continue // it is not late if it is done next time
		}
		last[lease] = now
		for _, body := range m.tables.Renew(lease) {
			if !m.conn.TrySend(body) { // it takes little just now
				last[lease] = l.last[lease]
			}
		}
	}
	maps.DeleteFunc(last, func(_ uint16, at time.Time) bool { return at.IsZero() })
	l.last = last
}
