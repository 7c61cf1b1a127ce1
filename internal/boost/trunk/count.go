package trunk

import (
	"cmp"
	"errors"
	"time"
)

// How many data connections a path has decides the agent that dials, by what both want of it: each knows what brings more of
// what it sends (internal/core/tune).

// Wants is how many data connections this end wants for what it sends over the path, and Rethinks says when that has become
// another number. One goroutine listens.
func (p *Path) Wants() int {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	return p.wants()
}

func (p *Path) wants() int {
	first := max(p.t.Shape.First, 1)
	if p.t.Shape.Seeks() { // beside others fewer carry; the rest stay for when one dies
		return max(p.shaping.decision.Connections, first)
	}
	return first
}

// Rethinks has something when Wants has another answer than before.
func (p *Path) Rethinks() <-chan struct{} { return p.rethinks }

// Retire has all but so many connections of the path end, those that are doubted, and then those with the highest numbers: which
// carry nothing at either end where the two want no more. What is on its way on them arrives; nothing else goes out on them. Those on which the other agent has not
// answered are not counted, and stay. It returns how many are to end now that were not before: Serve says ErrRetired of each.
func (p *Path) Retire(all int) (retired int) {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := 0
	for _, c := range p.ranked() {
		if !c.met || c.retires {
			continue
		}
		if kept++; kept > max(all, 1) {
			c.retires = true
			retired++
			t.sender.Retire(c.id)
		}
	}
	p.rest()
	t.compare()
	t.changed()
	return retired
}

// ErrRetired says that a connection has ended that Retire had end, by itself or not.
var ErrRetired = errors.New("the connection was wanted no more")

func (t *Trunk) retires(c *connection) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.retires
}

// leave says FIN behind the last frame on a connection that retires. The other agent reads all that was before it, takes the
// connection away as one that has died, and by that closes it behind its own last frame. One that does not is not waited for.
func (c *connection) leave() {
	_ = c.conn.SetReadDeadline(time.Now().Add(silent)) // it has ended where one of these fails
	_ = c.conn.CloseWrite()
}

// usable is how many connections of the path take what is new: where some answer, those that are doubted do not.
func (p *Path) usable() (connections int) {
	doubted := 0
	for _, c := range p.conns() {
		switch {
		case c.retires:
		case c.doubted:
			doubted++
		default:
			connections++
		}
	}
	return cmp.Or(connections, doubted)
}
