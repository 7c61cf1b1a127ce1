package switchd

import (
	"context"
	"fmt"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// lead asks the switch to let nobody else change it, where that is wanted. The controller's epoch, the upper half
// of its rules' generation, decides between several: a switch refuses one that began before its primary.
func (m *member) lead(generation uint64) {
	if !m.d.cfg.Primary {
		return
	}
	go func() { // ends with the connection
		ctx, cancel := context.WithTimeout(m.ctx, askTimeout)
		defer cancel()
		if _, err := m.conn.SetRole(ctx, ofp.RolePrimary, generation>>32); err != nil && m.ctx.Err() == nil {
			m.d.report("switch.error", m.spec.Name, fmt.Sprintf("switch %s does not take this controller as its primary: %v", m.spec.Name, err))
		}
	}()
}
