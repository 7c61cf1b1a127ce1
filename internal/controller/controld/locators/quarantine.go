package locators

import (
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// held is a locator in quarantine. count tells a second quarantine from the first one's timer.
type held struct {
	host  string
	count uint64
}

// Hold keeps a locator that was left from everybody else, longer than any packet or redirect to it
// may be under way. It counts by the monotonic clock, and anew after a restart.
func (x *Locators) Hold(l sid.Locator, host string) {
	x.holds++
	h := held{host, x.holds}
	x.quarantine[l] = h
	x.Touch(host)
	x.Saver.Later(store.PutQuarantine(store.Quarantine{Locator: l, Host: host}))
	x.Loop.After(x.Quarantine, func() { x.release(l, h) })
}

func (x *Locators) release(l sid.Locator, h held) {
	if x.quarantine[l] != h {
		return
	}
	delete(x.quarantine, l)
	x.Touch(h.host)
	x.Plan.SetLeft(l, false)
	x.Saver.Later(store.DeleteQuarantine(l))
}

// Held is who has left a locator that is in quarantine.
func (x *Locators) Held(l sid.Locator) (host string, kept bool) {
	h, kept := x.quarantine[l]
	return h.host, kept
}

// Left are all locators in quarantine, by the host that left them.
func (x *Locators) Left() map[string][]sid.Locator {
	kept := make(map[string][]sid.Locator)
	for l, h := range x.quarantine {
		kept[h.host] = append(kept[h.host], l)
	}
	return kept
}

// Reclaim makes a locator an ordinary one again.
func (x *Locators) Reclaim(l sid.Locator) {
	x.Plan.SetLeft(l, false)
	if _, held := x.quarantine[l]; held {
		delete(x.quarantine, l)
		x.Saver.Later(store.DeleteQuarantine(l))
	}
}
