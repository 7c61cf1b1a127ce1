package controld

import (
	"time"

	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/sid"
)

// newLocators are those of the network, and what they need of the other rooms.
func newLocators(n *network) *locators.Locators {
	return locators.New(locators.Config{
		Quarantine: n.cfg.Quarantine, CertifyFor: n.cfg.CertifyFor, Plan: n.plan, Saver: n.saver, Loop: n.loop, Hosts: stays{n},
		Touch: func(host string) { n.access.TouchHost(host) },
	})
}

// stays tell locators who is where.
type stays struct{ n *network }

// At is who has a locator now.
func (s stays) At(l sid.Locator) (host string, doubted, here bool) {
	at, here := s.n.places.At(l)
	return at.Host, at.Doubted, here
}

func (s stays) Evict(l sid.Locator, by string)        { s.n.places.Evict(l, by) }
func (s stays) Certified(l sid.Locator) (host string) { return s.n.pledges.Holder(l) }
func (s stays) CertifiedFor(l sid.Locator, host string) time.Duration {
	return s.n.pledges.Left(l, host)
}
func (s stays) Restored() bool { return s.n.restored != nil }
