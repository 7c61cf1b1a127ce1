package locators

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// A Config is what the locators of a network need of others.
type Config struct {
	Quarantine time.Duration // how long a locator that was left is kept from everybody else
	CertifyFor time.Duration // how long certificates are valid at most
	Plan       Plan
	Saver      Saver
	Loop       Loop
	Hosts      Hosts
	Touch      func(host string) // which locators count as the host's has changed
}

// A Plan makes rules of locators that were left.
type Plan interface {
	SetLeft(l sid.Locator, left bool)
	SetHeld(l sid.Locator, host, router, port string)
	HeldBy(l sid.Locator) string
}

// A Saver keeps records until they are stored.
type Saver interface {
	Later(...store.Change)
}

// A Loop runs what is to be done later in the goroutine that owns the locators.
type Loop interface {
	After(time.Duration, func())
}

// Hosts tell who is where, and what was certified to whom.
type Hosts interface {
	At(l sid.Locator) (host string, doubted, here bool) // doubted: only a restored backup says so
	Evict(l sid.Locator, by string)                     // takes it from a host that is doubted, for another one
	Certified(l sid.Locator) (host string)              // "": to nobody
	CertifiedFor(l sid.Locator, host string) time.Duration
	Restored() bool // the state is that of a backup
}

// Locators are all of a network. The loop owns them.
type Locators struct {
	Config
	owned      map[sid.Locator]int    // hosts that are known for the place, here or not
	quarantine map[sid.Locator]held   // only who had it may have it again
	holds      uint64                 // quarantines begun
	letting    map[sid.Locator]uint64 // that hosts left and may send from, by the count of the last time
	lets       uint64
}

// New has none that is in use or was.
func New(cfg Config) *Locators {
	return &Locators{Config: cfg, owned: make(map[sid.Locator]int), quarantine: make(map[sid.Locator]held), letting: make(map[sid.Locator]uint64)}
}

// An Ask is for a locator of a router's block.
type Ask struct {
	Host   string
	Router string
	Block  sid.Locator              // the one before the router's first
	Asked  sid.Locator              // that the host says it has, 0 for none
	Wishes []sid.Locator            // in the order in which the uplink would have them
	Has    func(l sid.Locator) bool // the host's record has it
	Taken  []store.Place            // of its other uplinks
	Waits  bool                     // it is not known yet what others have
}

// ErrWaiting is the answer to who is new where it is not known yet what others have.
var ErrWaiting = errors.New("this controller has just begun to lead and waits for the hosts and routers of before: new ones are let in then")

// ErrFull says that a router has no locator left.
var ErrFull = errors.New("all 255 locators of router")

// For finds a locator for an uplink: one that it wishes for, one that its host has kept, or a free one. Only the host
// itself gets one back that is in quarantine.
func (x *Locators) For(a Ask) (sid.Locator, error) {
	may := func(l sid.Locator, has bool) bool {
		return x.MayHave(a.Host, a.Block, l, has) && !slices.ContainsFunc(a.Taken, func(p store.Place) bool { return p.Locator == l })
	}
	list, restored := a.Wishes, x.Hosts.Restored()
	if restored && a.Asked != 0 {
		list = append([]sid.Locator{a.Asked}, list...) // the host knows better than a state of before
	}
	kept := x.kept(a.Host, a.Block)
	for _, l := range list {
		if more := !slices.Contains(kept, l) && !a.Has(l); more && len(kept) >= MostKept && !restored {
			continue
		}
		if may(l, l == a.Asked) {
			x.Hosts.Evict(l, a.Host)
			return l, nil
		}
	}
	if a.Waits {
		return 0, ErrWaiting
	}
	if len(kept) >= MostKept {
		for _, l := range kept {
			if _, _, here := x.Hosts.At(l); !here && may(l, false) {
				return l, nil
			}
		}
	}
	for i := sid.Locator(1); i <= 255; i++ { // nobody has or had it
		l := a.Block + i
		if restored {
			l = a.Block + 256 - i // what was given since the backup was made begins at the other end
		}
		if x.owned[l] == 0 && may(l, false) {
			return l, nil
		}
	}
	for i := sid.Locator(1); i <= 255; i++ { // whoever had it is away
		if may(a.Block+i, false) {
			return a.Block + i, nil
		}
	}
	return 0, fmt.Errorf("%w %s are taken, left too recently, or certified to hosts that left (for up to %v): give some of its hosts another router", ErrFull, a.Router, x.CertifyFor)
}

// In reports whether a locator is of the block.
func In(block, l sid.Locator) bool { return l > block && l <= block+255 }

// MayHave reports whether nothing is against a locator of a block for a host; has says that the host claims to have it
// now.
func (x *Locators) MayHave(name string, block, l sid.Locator, has bool) bool {
	if !In(block, l) {
		return false
	}
	if host, doubted, here := x.Hosts.At(l); here && host != name && !(has && doubted) {
		return false
	}
	if h, kept := x.quarantine[l]; kept && h.host != name && !(has && h.host == "") {
		return false
	}
	// A restored backup knows nothing of who came since; who has the locator now is whom it is certified to.
	if p := x.Hosts.Certified(l); p != "" && p != name && !(has && x.Hosts.Restored()) {
		return false
	}
	return true
}

// MostKept is how many locators of a router a host may have, or have left and keep from others: more than a host has
// that roams between its ports. Who comes and goes beyond that gets its own again, so that no member can take all 255.
const MostKept = 16

// kept are the locators of a block that a host has, or has left and keeps from others.
func (x *Locators) kept(name string, block sid.Locator) (list []sid.Locator) {
	for l := block + 1; l <= block+255; l++ {
		host, _, here := x.Hosts.At(l)
		if here && host == name || x.quarantine[l].host == name || x.Hosts.Certified(l) == name {
			list = append(list, l)
		}
	}
	return list
}

// Own counts again for which places a host is known: whoever changes them calls it, with what was counted before.
func (x *Locators) Own(before []sid.Locator, now []store.Place) (counted []sid.Locator) {
	for _, l := range before {
		if x.owned[l]--; x.owned[l] == 0 {
			delete(x.owned, l)
		}
	}
	counted = before[:0]
	for _, p := range now {
		counted = append(counted, p.Locator)
		x.owned[p.Locator]++
	}
	return counted
}
