package switchd

import (
	"errors"
	"sync"

	"scaffold.dev/scaffold/internal/openflow/oftables"
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

// release ends the member's writing, and removes what the switch has of ours. It reads that first: a switch that has just
// come has groups and meters of an earlier run that no table here knows of yet.
func (m *member) release() error {
	m.writing.Lock() // what is on its way arrives before
	m.writing.ended = true
	m.writing.Unlock()
	h, err := m.read()
	if err != nil {
		return err
	}
	var tables *oftables.Tables
	if !m.call(func() { tables = m.newTables() }) {
		return errWent
	}
	tables.Learn(h.flows, h.groups, h.meters)
	return m.write(tables.Removal())
}

// A writing is taken while messages go into the switch.
type writing struct {
	sync.Mutex
	ended bool // the switch is released; nobody writes any more
}

var (
	errReleased = errors.New("the switch has been released")
	errWent     = errors.New("it went away before")
)
