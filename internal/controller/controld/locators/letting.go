package locators

import (
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// LetIn keeps a place that its host has left open for what it sent from there, and lets the host send from the locator
// elsewhere: until its peers know better, and for as long as nobody else may have the locator. Where it was is not stored:
// after a restart only the locator counts, wherever the host is by then.
func (x *Locators) LetIn(p store.Place, host string) {
	if host == "" {
		return
	}
	x.Plan.SetHeld(p.Locator, host, p.Router, p.Port)
	x.lets++
	this := x.lets
	x.letting[p.Locator] = this
	x.shutLater(x.Quarantine, p.Locator, host, this)
}

func (x *Locators) shutLater(after time.Duration, l sid.Locator, host string, this uint64) {
	x.Loop.After(after, func() {
		if x.letting[l] != this {
			return
		}
		if left := x.Hosts.CertifiedFor(l, host); left > 0 {
			x.shutLater(left, l, host, this)
			return
		}
		delete(x.letting, l)
		if x.Plan.HeldBy(l) == host {
			x.Plan.SetHeld(l, "", "", "")
		}
	})
}
