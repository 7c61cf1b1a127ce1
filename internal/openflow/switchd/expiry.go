package switchd

import (
	"scaffold.dev/scaffold/controller"
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

// expired forgets a flow that a switch has taken out by itself, and returns it; false where it was put in anew meanwhile, or
// is not wanted any more.
func (t *flowTable) expired(of owner, at string, id uint32) (controller.Flow, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.owners[of]
	if h == nil || h.flows[at] == nil {
		return controller.Flow{}, false
	}
	key, is := h.flows[at].timed[id]
	if !is {
		return controller.Flow{}, false
	}
	f := h.flows[at].all[key]
	t.drop(of, at, key)
	return f.Flow, t.plane.changeFlows(of, at, nil, []ownFlow{f}, h.calls[at]) == nil
}

// unwanted are those of flows that the owner does not want at a switch.
func (t *flowTable) unwanted(of owner, at string, flows []controller.Flow) (gone []controller.Flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have := t.owners[of].flows[at]
	for _, f := range flows {
		if have != nil {
			if _, has := have.all[keyOf(f)]; has {
				continue
			}
		}
		gone = append(gone, f)
	}
	return gone
}
