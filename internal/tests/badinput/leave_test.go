package badinput

import (
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestDaemonsLeaveTheirNamespacesAsTheyWere(t *testing.T) {
	before := snap(t)
	t.Run("end", func(t *testing.T) { // its namespaces go with it
		s := newSite(t, "h1")
		s.hosts["h1"].LinkLocal(t, "eth0") // the picture of before holds it
		s.router.LinkLocal(t, "to-h1")
		s.router.LinkLocal(t, "mgmt")
		host, router := kernel(t, s.hosts["h1"]), kernel(t, s.router)
		c, r, h := s.controld(), s.routerd(), s.hostd("h1")
		h.WaitFor(t, joined)
		s.until("up", "host", "ls")
		for _, p := range []*nstest.Proc{h, r, c} {
			p.Signal(syscall.SIGTERM)
			if err := p.Wait(); err != nil {
				t.Errorf("SIGTERM: %v\n%s", err, p.Output())
			}
		}
		if after := kernel(t, s.hosts["h1"]); after != host {
			t.Errorf("host, before:\n%s\nafter:\n%s", host, after)
		}
		if after := kernel(t, s.router); after != router {
			t.Errorf("router, before:\n%s\nafter:\n%s", router, after)
		}
	})
	before.same(t, "SIGTERM to daemons run by hand")
}
