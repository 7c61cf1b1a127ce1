package routerd

import (
	"fmt"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/liveness"
	"scaffold.dev/scaffold/sid"
)

// TestFirstPacketsPassASilentHostByWithoutAController: nobody but this router knows that its host does not answer, and the
// controller says nothing.
func TestFirstPacketsPassASilentHostByWithoutAController(t *testing.T) {
	s := newSite(t)
	start(t, s.router, s.cfg)
	// A test's host that was not run for 30 ms would be suspect and, with its late answer, up again: in the middle of what
	// follows.
	c := s.controller.acceptWith(t, own, 100, 3600_000)
	rules := s.rules(1, web)
	rules.Services[0].Instances = 2
	rules.Resolutions[0].Targets = append(rules.Resolutions[0].Targets, &apiv1.Target{Locator: uint64(client), Weight: 1})
	c.snapshot(1, rules)
	c.state(server, liveness.Up, "probes")
	s.resolves(web, 1) // a hundred to one
	s.silent.Store(true)
	c.state(server, liveness.Suspect, "probes")
	for n := range uint64(20) {
		s.passes(web, 10+n)
	}
	s.silent.Store(false)
	c.state(server, liveness.Up, "probes")
	s.resolves(web, 1)
}

// passes checks that a SYN to the service comes to the client's own host.
func (s *site) passes(id sid.ServiceID, n uint64) {
	s.t.Helper()
	at := s.client.Frames(s.t, "up")
	src := s.syn(at, id, 80, n)
	at.Next(s.t, fmt.Sprintf("SYN from %v to %v", src, client), func(f []byte) bool {
		if len(f) < 54 || f[12] != 0x86 || f[20] != bpftest.TCP {
			return false
		}
		from, to := bpftest.Addrs(f[14:])
		return from == src && to == client.Addr(uint64(id.Suffix)) && bpftest.ChecksumOK(f[14:])
	})
}
