package switchd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
)

// A holding is what a switch has.
type holding struct {
	flows  []ofp.Flow
	groups []ofp.GroupDesc
	meters []ofp.Meter
}

// readTimeout bounds the reading of all that a switch has.
const readTimeout = 30 * time.Second

// read asks the switch for its rules; those of others among them are passed over by whoever looks.
func (m *member) read() (h holding, err error) {
	ctx, cancel := context.WithTimeout(m.ctx, readTimeout)
	defer cancel()
	ours, mask := oftables.Cookies()
	asks := []ofp.Ask{
		ofp.AskFlows{FlowFilter: ofp.FlowFilter{Table: ofp.AllTables, Cookie: ours, CookieMask: mask}},
		ofp.AskGroups{}, ofp.AskMeters{},
	}
	for _, ask := range asks {
		parts, err := m.conn.Collect(ctx, ask)
		if err != nil {
			return h, fmt.Errorf("read back what it has: %w", err)
		}
		for _, part := range parts {
			switch part := part.(type) {
			case ofp.Flows:
				h.flows = append(h.flows, part...)
			case ofp.Groups:
				h.groups = append(h.groups, part...)
			case ofp.Meters:
				h.meters = append(h.meters, part...)
			}
		}
	}
	return h, nil
}

// relearn takes what the switch has for what it was told, after a while.
func (m *member) relearn(after time.Duration) {
	m.writer.learned = false
	tables, changes := m.tables, m.writer.changes
	time.AfterFunc(after, func() {
		h, err := m.read()
		m.post(func() {
			switch {
			case m.tables != tables || m.writer.changes != changes: // it was overtaken, and somebody else will look
			case err != nil:
				m.log.Warn("the switch does not tell what it has", "error", err)
				m.relearn(retryFirst)
			default:
				m.tables.Learn(h.flows, h.groups, h.meters)
				m.writer.learned = true
			}
		})
	})
}

// check compares what the switch has with what it was told.
func (m *member) check(first bool) {
	changes, generation := m.writer.changes, m.writer.generation
	go func() { // ends with the connection
		h, err := m.read()
		if err == nil {
			m.post(func() { m.checked(h, changes, generation, first) })
		}
	}()
}

func (m *member) checked(h holding, changes, generation uint64, first bool) {
	if changes != m.writer.changes || !m.writer.learned {
		if first {
			m.check(first)
		}
		return
	}
	wrong := m.tables.Verify(h.flows, h.groups, h.meters)
	m.tally.looked(len(wrong) > 0)
	if first {
		m.counted.Reconciled = time.Since(m.writer.since)
		ms := float64(m.counted.Reconciled.Microseconds()) / 1e3
		m.d.notes.event("switch.reconciled", m.spec.Name, fmt.Sprintf("switch %s has its %d flows, %d groups and %d meters (generation %d), %.0f ms after it came",
			m.spec.Name, len(h.flows), len(h.groups), len(h.meters), generation, ms), "ms", fmt.Sprintf("%.1f", ms))
	}
	if unheld := strings.Join(m.tables.Unheld(), "; "); unheld != m.writer.unheld {
		m.writer.unheld = unheld
		m.d.report("switch.error", m.spec.Name, fmt.Sprintf("switch %s cannot hold all of its rules: %s", m.spec.Name, cmp.Or(unheld, "now it can")))
	}
	if len(wrong) > 0 {
		m.d.report("switch.repair", m.spec.Name, fmt.Sprintf("switch %s has not what it was told, %d differences, the first: %s", m.spec.Name, len(wrong), wrong[0]))
		m.tables.Learn(h.flows, h.groups, h.meters)
	}
}
