package switchd

import (
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofconn"
)

// A switch that comes more than often times within a while has to wait, longer each time.
const (
	visitWindow = 10 * time.Second
	visitOften  = 5
	visitWait   = 100 * time.Millisecond
	visitLast   = 5 * time.Second
	maxVisitors = 4096
)

// visits are the times that a datapath came lately.
type visits struct {
	since time.Time
	count int
}

// visit counts one and returns how long it is to wait; first is true where it has not been told of.
func (r *registry) visit(id uint64, now time.Time) (wait time.Duration, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.visits == nil || len(r.visits) >= maxVisitors {
		r.visits = map[uint64]*visits{}
	}
	v := r.visits[id]
	if v == nil || now.Sub(v.since) > visitWindow {
		v = &visits{since: now}
		r.visits[id] = v
	}
	v.count++
	if v.count <= visitOften {
		return 0, false
	}
	return min(visitWait<<min(v.count-visitOften-1, 10), visitLast), v.count == visitOften+1
}

// wait holds a switch back that reconnects in a loop; false means that it has gone meanwhile.
func (d *daemon) wait(c *ofconn.Conn, id uint64) bool {
	wait, first := d.registry.visit(id, time.Now())
	if first {
		d.report("switch.refused", fmt.Sprintf("%016x", id), fmt.Sprintf("switch %016x at %v connects again and again: it is made to wait", id, c.RemoteAddr()))
	}
	if wait == 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.Done():
		return false
	case <-d.ctx.Done():
		return false
	}
}
