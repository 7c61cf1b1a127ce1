package switchd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofconn"
)

// conditions of switches outlive their connections.
type records struct {
	mu  sync.Mutex
	all map[string]condition
}

// maxRecords bounds how many switches are remembered that have gone.
const maxRecords = 10000

// came begins the record of a connection and returns what was counted before it.
func (r *records) came(name string, now time.Time) condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) > maxRecords {
		r.all = map[string]condition{}
	}
	c := r.all[name]
	c.PacketIns = maps.Clone(c.PacketIns)
	if c.PacketIns == nil {
		c.PacketIns = map[owner]uint64{}
	}
	c.Connects++
	c.Since = now
	r.all[name] = c
	return c
}

func (r *records) keep(name string, c condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[name] = c
}

// conditions implements plane.
func (d *daemon) conditions() []condition {
	for _, m := range d.registry.members() {
		m.call(func() { d.records.keep(m.spec.Name, m.condition()) })
	}
	d.records.mu.Lock()
	defer d.records.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.records.all), func(a, b condition) int { return cmp.Compare(a.Name, b.Name) })
}

// condition is how the switch is now.
func (m *member) condition() condition {
	c := m.counted
	c.Switch = *m.view.Load()
	c.Generation = m.writer.generation
	c.Address = m.conn.RemoteAddr().String()
	c.PacketIns = maps.Clone(c.PacketIns)
	c.Dropped += m.conn.Counts().Dropped
	c.Trouble = m.writer.said
	if m.tables != nil {
		c.Flows, c.Groups, c.Meters = m.tables.Count()
	}
	return c
}

// ask implements plane.
func (d *daemon) ask(ctx context.Context, at string, f func(*ofconn.Conn) error) error {
	m := d.registry.member(at)
	if m == nil {
		return fmt.Errorf("switch %s is not connected", at)
	}
	return f(m.conn)
}

// shares implements plane.
func (d *daemon) shares(at string) []share {
	m := d.registry.member(at)
	if m == nil {
		return nil
	}
	var list []share
	if !m.call(func() {
		if m.tables != nil {
			list = sharesOf(m.tables)
		}
	}) {
		return nil
	}
	return list
}
