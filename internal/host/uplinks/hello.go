package uplinks

import (
	"context"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/wire"
)

const (
	// silentTries is when a router that does not answer is taken for one whose daemon is away: it
	// forwards all the same.
	silentTries = 4
	// rivalWait is how long the router of before has to answer when another one greets; it is asked at most
	// every rivalEvery.
	rivalWait  = 100 * time.Millisecond
	rivalEvery = 3 * time.Second
)

// news are what is heard of the routers on an uplink's link, until ctx ends: the link went, or leads elsewhere.
type news struct {
	all *Uplinks
	u   *Uplink
	ctx context.Context
}

// Trouble logs a trouble of the uplink once.
func (n *news) Trouble(what string) {
	if n.u.said != what {
		n.u.said = what
		n.all.Log.Warn(what, "uplink", n.u.Name)
	}
}

// Unheard reports whether a router answered meanwhile, and makes do without after some tries.
func (n *news) Unheard(tries int) (known bool) {
	if n.u.heard || n.ctx.Err() != nil {
		return true
	}
	if tries == silentTries {
		n.Trouble("no router answers; asking on")
		n.all.Tell.Unheard(n.u)
	}
	return false
}

// Heard notes the router of the uplink. Where two greet on one link the first is kept as long as it
// answers.
func (n *news) Heard(from netip.Addr, h wire.Hello, ask func()) {
	all, u := n.all, n.u
	if !h.Relay && !all.Direct || all.shuns(h.Name) {
		return
	}
	if all.check(u, false); n.ctx.Err() != nil {
		return // the link came back before the kernel said that it went; asked anew
	}
	h.Header = wire.Header{}
	if !u.heard || u.Router == from {
		u.rival = false
		all.follows(u, from, h)
		return
	}
	if time.Since(u.asked) < rivalEvery {
		return
	}
	u.rival, u.asked = true, time.Now()
	ask()
	time.AfterFunc(rivalWait, func() {
		all.Post(func() {
			if n.ctx.Err() == nil && u.rival {
				u.rival = false
				all.follows(u, from, h)
			}
		})
	})
}

// follows takes the router for the uplink's; a new one, or a new way to the controller, means to attach
// anew.
func (all *Uplinks) follows(u *Uplink, from netip.Addr, h wire.Hello) {
	if u.heard && u.Router == from && u.Hello == h {
		return
	}
	h0, again := u.Hello, u.heard && u.Router == from
	u.Router, u.Hello, u.heard, u.said, u.before = from, h, true, "", nil
	if again && h0.Name == h.Name && h0.Port == h.Port && h0.RelayPort == h.RelayPort {
		return // only its flags or locator
	}
	all.Log.Info("found a router", "uplink", u.Name, "router", h.Name, "port", h.Port, "at", from)
	all.Tell.Found(u)
}
