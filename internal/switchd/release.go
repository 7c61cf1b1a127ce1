package switchd

import (
	"fmt"
	"sync"
)

// release takes all of ours out of the switches that are connected, and nothing else.
func (d *daemon) release() {
	var all sync.WaitGroup
	for _, m := range d.registry.members() {
		all.Go(func() {
			if err := m.release(); err != nil {
				d.log.Error("rules are left behind in a switch", "switch", m.spec.Name, "error", err)
			}
		})
	}
	all.Wait()
}

// release ends the member's writing, and removes what it wrote.
func (m *member) release() (err error) {
	m.call(func() {
		if m.tables == nil {
			err = fmt.Errorf("it was not known yet what the switch has")
			return
		}
		m.writer.busy = true // for good
		err = m.deliver(m.tables.Removal())
	})
	return err
}
