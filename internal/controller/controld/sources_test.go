package controld

import (
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/sid"
)

// lets waits until the router lets packets from a locator in at a port, or not.
func (r *fakeRouter) lets(port string, l sid.Locator, want bool) {
	r.t.Helper()
	await(r.t, "packets from "+l.String()+" pass at "+port+", or not", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.held.sources[source{port, l}] == want && r.held.filters
	})
}

// A host that moves sends from its former locator at its new port, and what it sent at the old one may still be under way:
// both are let in until nobody can hold a certificate for it, and no longer.
func TestAMoveShutsNobodyOut(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Quarantine: 300 * time.Millisecond})
	r1, r2 := c.router("r1"), c.router("r2")
	h := c.host("s1", "r1")
	was := h.locator()
	r1.lets("to-s1", was, true)
	r2.lets("to-s1", was, false)
	moved := join("s1", "r2")
	moved.Attachment.Port = "elsewhere"
	again := c.joinHost(moved)
	again.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	now := again.locator()
	r2.lets("elsewhere", now, true)
	r2.lets("elsewhere", was, true)
	r1.lets("to-s1", was, true)
	r1.lets("to-s1", was, false) // in the end
	r2.lets("elsewhere", was, false)
	r2.lets("elsewhere", now, true)
}
