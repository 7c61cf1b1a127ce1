package controld

import (
	"fmt"

	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// locatorFor finds a locator of the router's block for a host: the one it had, the one it asks for,
// or a free one. Only the host itself gets one back that is in quarantine.
func (n *network) locatorFor(h *host, name string, r *router, asked sid.Locator) (sid.Locator, error) {
	if h != nil && n.mayHave(name, r, h.Locator) {
		return h.Locator, nil
	}
	if n.mayHave(name, r, asked) {
		return asked, nil
	}
	base := n.blockLocator(r.Block)
	owners := n.owners()
	for i := sid.Locator(1); i <= 255; i++ { // nobody has or had it
		if _, owned := owners[base+i]; !owned && n.mayHave(name, r, base+i) {
			return base + i, nil
		}
	}
	for i := sid.Locator(1); i <= 255; i++ { // whoever had it is away
		if n.mayHave(name, r, base+i) {
			return base + i, nil
		}
	}
	return 0, fmt.Errorf("all 255 locators of router %s are taken or left too recently", r.Name)
}

func (n *network) mayHave(name string, r *router, l sid.Locator) bool {
	base := n.blockLocator(r.Block)
	if l <= base || l > base+255 {
		return false
	}
	if h, used := n.places[l]; used && h.Name != name {
		return false
	}
	if h, kept := n.quarantine[l]; kept && h.host != name {
		return false
	}
	return true
}

func (n *network) owners() map[sid.Locator]struct{} {
	m := make(map[sid.Locator]struct{}, len(n.hosts))
	for _, h := range n.hosts {
		m[h.Locator] = struct{}{}
	}
	return m
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
	n.saver.later(store.PutQuarantine(store.Quarantine{Locator: l, Host: name}))
	n.loop.after(n.cfg.Quarantine, func() { n.release(l, h) })
}

func (n *network) release(l sid.Locator, h held) {
	if n.quarantine[l] != h {
		return
	}
	delete(n.quarantine, l)
	n.saver.later(store.DeleteQuarantine(l))
}
