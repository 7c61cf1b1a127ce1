package controld

import (
	"time"

	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/sid"
)

// redirectPatience bounds how long a redirect waits for the new place's router to have its route.
const redirectPatience = time.Second

// A redirect sends what comes for a place that a host left to where it went. It begins once the way to the
// new place stands, and ends after a while, or when the locator is used again.
type redirect struct {
	store.Redirect
	leads   bool   // it is in the plan
	asked   bool   // after is known
	after   uint64 // generation of the rules that make the way
	overdue bool
}

// redirect begins one. Those that led to where the host was lead on with it.
func (n *network) redirect(h *host, from, to sid.Locator) {
	for _, r := range n.redirects {
		if r.To == from {
			r.To = to
			n.saver.later(store.PutRedirect(r.Redirect))
		}
	}
	r := &redirect{Redirect: store.Redirect{From: from, To: to, Host: h.Name}}
	n.redirects[from] = r
	n.saver.later(store.PutRedirect(r.Redirect))
	n.loop.after(redirectPatience, func() { r.overdue = true })
	n.endLater(r)
}

// takeUp puts a redirect of before the restart into the plan; its time begins anew.
func (n *network) takeUp(stored store.Redirect) {
	r := &redirect{Redirect: stored, leads: true}
	n.redirects[r.From] = r
	n.plan.SetRedirect(r.From, r.To)
	n.plan.SetLeft(r.From, true)
	n.endLater(r)
}

func (n *network) endLater(r *redirect) {
	n.loop.after(n.cfg.RedirectFor, func() {
		if n.redirects[r.From] == r {
			n.endRedirect(r.From)
			n.plan.SetLeft(r.From, true) // also where it never led
		}
	})
}

// endRedirect tells from now on that nobody is there, unless somebody is.
func (n *network) endRedirect(from sid.Locator) {
	if _, ok := n.redirects[from]; !ok {
		return
	}
	delete(n.redirects, from)
	n.plan.SetRedirect(from, 0)
	n.saver.later(store.DeleteRedirect(from))
}

// stopFollowing ends all redirects to a host.
func (n *network) stopFollowing(h *host) {
	for from, r := range n.redirects {
		if r.Host == h.Name {
			n.endRedirect(from)
			n.plan.SetLeft(from, true)
		}
	}
}

// reclaim makes a locator an ordinary one again.
func (n *network) reclaim(l sid.Locator) {
	n.endRedirect(l)
	n.plan.SetLeft(l, false)
	if _, held := n.quarantine[l]; held {
		delete(n.quarantine, l)
		n.saver.later(store.DeleteQuarantine(l))
	}
}

// lead puts into the plan the redirects whose new place has its route by now: sooner they would lead
// packets to where nobody takes them. It reports whether there were any.
func (n *network) lead() (any bool) {
	for _, r := range n.redirects {
		if !r.leads && n.wayStands(r) {
			r.leads, any = true, true
			n.plan.SetLeft(r.From, true)
			for from, other := range n.redirects { // those that led to where it began lead on
				if other.To == r.To && other.leads {
					n.plan.SetRedirect(from, r.To)
				}
			}
		}
	}
	return any
}

// wayStands reports whether the router of the new place has applied the rules that were sent last when the
// redirect began, or cannot be waited for.
func (n *network) wayStands(r *redirect) bool {
	at := n.places[r.To]
	if at == nil {
		return false
	}
	first := n.routers[at.Router]
	if first == nil || first.session == nil || !first.synced || r.overdue {
		return true
	}
	if !r.asked {
		r.asked, r.after = true, first.told
	}
	return first.applied >= r.after
}
