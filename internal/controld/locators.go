package controld

import (
	"errors"
	"fmt"
	"slices"

	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// locatorFor finds a locator of the router's block for an uplink at a place: the one that it asks for and its
// host has or had, the one that it had at the same port, any that it asks for, any that the host had, or a
// free one. Only the host itself gets one back that is in quarantine; those taken are of its other uplinks.
func (n *network) locatorFor(h *host, name string, r *router, at store.Place, asked sid.Locator, taken []store.Place) (sid.Locator, error) {
	may := func(l sid.Locator, has bool) bool {
		return n.mayHave(name, r, l, has) && !slices.ContainsFunc(taken, func(p store.Place) bool { return p.Locator == l })
	}
	list := wishes(h, at, asked)
	if n.restored != nil && asked != 0 {
		list = append([]sid.Locator{asked}, list...) // the host knows better than a state of before
	}
	for _, l := range list {
		if may(l, l == asked) {
			n.evict(name, l)
			return l, nil
		}
	}
	if n.grace != nil && n.careful() {
		return 0, errWaiting
	}
	base := n.blockLocator(r.Block)
	for i := sid.Locator(1); i <= 255; i++ { // nobody has or had it
		l := base + i
		if n.restored != nil {
			l = base + 256 - i // what was given since the backup was made begins at the other end
		}
		if n.owned[l] == 0 && may(l, false) {
			return l, nil
		}
	}
	for i := sid.Locator(1); i <= 255; i++ { // whoever had it is away
		if may(base+i, false) {
			return base + i, nil
		}
	}
	err := fmt.Errorf("all 255 locators of router %s are taken or left too recently: give some of its hosts another router", r.Name)
	n.full(r.Name, err)
	return 0, err
}

// errWaiting is the answer to who is new where it is not known yet what others have.
var errWaiting = errors.New("this controller has just begun to lead and waits for the hosts and routers of before: new ones are let in then")

// careful reports whether the stored state may lack what hosts and routers were given: another controller may have
// died before it was saved.
func (n *network) careful() bool { return n.seat.store.Elected() || n.restored != nil }

// wishes are locators in the order in which an uplink would have them.
func wishes(h *host, at store.Place, asked sid.Locator) []sid.Locator {
	if h == nil {
		return []sid.Locator{asked}
	}
	var list, had []sid.Locator
	if h.has(asked) {
		list = append(list, asked)
	}
	for _, p := range h.all() {
		if p.Router == at.Router && p.Port == at.Port {
			list = append(list, p.Locator)
		}
		had = append(had, p.Locator)
	}
	return append(append(list, asked), had...)
}

// mayHave reports whether nothing is against a locator for a host; has says that the host claims to have it now.
func (n *network) mayHave(name string, r *router, l sid.Locator, has bool) bool {
	base := n.blockLocator(r.Block)
	if l <= base || l > base+255 {
		return false
	}
	if at, used := n.places[l]; used && at.host.Name != name && !(has && at.host.doubted) {
		return false
	}
	if h, kept := n.quarantine[l]; kept && h.host != name && !(has && h.host == "") {
		return false
	}
	return true
}

// own counts again for which places the host is known: whoever changes them calls it.
func (n *network) own(h *host) {
	for _, l := range h.owns {
		if n.owned[l]--; n.owned[l] == 0 {
			delete(n.owned, l)
		}
	}
	h.owns = h.owns[:0]
	for _, p := range h.all() {
		h.owns = append(h.owns, p.Locator)
		n.owned[p.Locator]++
	}
}

// held is a locator in quarantine. count tells a second quarantine from the first one's timer.
type held struct {
	host  string
	count uint64
}

// hold keeps a locator that was left from everybody else, longer than any packet or redirect to it
// may be under way. It counts by the monotonic clock, and anew after a restart.
func (n *network) hold(l sid.Locator, name string) {
	n.holds++
	h := held{name, n.holds}
	n.quarantine[l] = h
	n.touchHost(name)
	n.saver.later(store.PutQuarantine(store.Quarantine{Locator: l, Host: name}))
	n.loop.after(n.cfg.Quarantine, func() { n.release(l, h) })
}

func (n *network) release(l sid.Locator, h held) {
	if n.quarantine[l] != h {
		return
	}
	delete(n.quarantine, l)
	n.touchHost(h.host)
	n.plan.SetLeft(l, false)
	n.saver.later(store.DeleteQuarantine(l))
}
