package switchd

import (
	"context"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// countEvery is how often a switch is asked how many entries its tables have. It knows without looking, where reading
// them takes 0.8 s of 50,000: so what others remove is back within a second, and what they change at the next audit.
const countEvery = 500 * time.Millisecond

// vainLast is the longest wait for the next reading where those before found nothing wrong: others may have entries in our
// tables that come and go.
const vainLast = time.Minute

// A tally is how many entries a switch has beside ours.
type tally struct {
	asked  bool             // how many it has
	others map[uint8]uint32 // by table, where ours are, when it was asked last
	vain   time.Duration    // to wait after a reading that found nothing wrong
	next   time.Time        // at the earliest
}

// count asks the switch, while nothing is on its way to it.
func (m *member) count() {
	if !m.quiet() || m.tally.asked {
		return
	}
	m.tally.asked = true
	changes := m.writer.changes
	go func() { // ends with the connection
		ctx, cancel := context.WithTimeout(m.ctx, askTimeout)
		defer cancel()
		parts, err := m.conn.Collect(ctx, ofp.AskTableStats{})
		m.post(func() {
			m.tally.asked = false
			if err == nil && changes == m.writer.changes && m.quiet() {
				m.tallied(parts)
			}
		})
	}()
}

// quiet reports whether the switch has what it was told, as far as we know.
func (m *member) quiet() bool {
	return m.tables != nil && !m.writer.busy && m.writer.learned && m.writer.checked
}

// tallied has the switch read where a table has lost entries, and it is not we who took them.
func (m *member) tallied(parts []ofp.Part) {
	t, ours, lost := &m.tally, m.tables.Told(), false
	others := map[uint8]uint32{}
	for _, part := range parts {
		stats, _ := part.(ofp.TablesStats)
		for _, s := range stats {
			if ours[s.Table] == 0 {
				continue
			}
			others[s.Table] = s.Active - ours[s.Table] // wraps where ours are missing, and is the less for it
			before, known := t.others[s.Table]
			lost = lost || int32(others[s.Table]) < 0 || known && int32(others[s.Table]) < int32(before)
		}
	}
	now := time.Now()
	if lost && now.Before(t.next) {
		return // as it was, so that it is seen again
	}
	t.others = others
	if lost {
		m.check(false)
	}
}

// looked notes whether a reading found anything wrong.
func (t *tally) looked(wrong bool) {
	t.vain = min(max(2*t.vain, countEvery), vainLast)
	if wrong {
		t.vain = 0
	}
	t.next = time.Now().Add(t.vain)
}
