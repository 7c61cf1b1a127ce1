package switchd

import (
	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/openflow/oftables"
)

// removed takes the news that the switch has taken out a flow. One that has idled is no longer wanted, before the tables
// forget that the switch has it: else they would put it back. What somebody else took out is put back.
func (m *member) removed(r ofp.FlowRemoved) {
	of, id, ours := oftables.Punted(r.Cookie)
	if !ours {
		return
	}
	idled := r.Reason == ofp.RemovedIdle
	if idled {
		m.d.audience.expired(owner(of), m.spec.Name, id)
		m.ownFlows(owner(of))
	}
	// A repair that is on its way may put in just this flow, of which the news come late: so it counts as there, and is taken out.
	if m.tables == nil || idled && m.writer.busy || !m.tables.Removed(r) {
		return
	}
	if m.writer.learned {
		m.writer.changes++ // what is being read of the switch may have it still
	}
}
