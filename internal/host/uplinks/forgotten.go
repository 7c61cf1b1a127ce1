package uplinks

import (
	"time"

	"scaffold.dev/scaffold/internal/core/backoff"
)

// How long a router is not listened to that the controller says is none of the network any more (docs/protocol.md §5.1):
// time for any other one on the link to greet, and longer each time. It may have been let in again meanwhile.
const (
	forgottenFirst = 5 * time.Second
	forgottenLast  = 40 * time.Second
)

// An absence is that of a router from the network.
type absence struct {
	until time.Time
	again backoff.Backoff // how long it is the next time
}

// NoRouter turns away from a router, by name, and looks for another one on its links.
func (all *Uplinks) NoRouter(name string) {
	if name == "" {
		return
	}
	a := all.forgotten[name]
	a.again.First, a.again.Last = forgottenFirst, forgottenLast
	a.until = time.Now().Add(a.again.Next())
	all.forgotten[name] = a
	for _, u := range all.list {
		if u.Hello.Name == name && u.heard || u.before != nil && u.before.Router == name {
			all.Log.Warn("the router was forgotten: it is none of the network any more; looking for another one", "uplink", u.Name, "router", name)
			all.leaveRouter(u)
		}
	}
}

// leaveRouter takes the uplink for one that leads nowhere, until another router greets there. A tunnel is made anew.
func (all *Uplinks) leaveRouter(u *Uplink) {
	all.forgetRouter(u)
	all.Tell.Lost(u)
	switch {
	case u.Tunnel != nil:
		u.Tunnel.BreakOff()
	case u.Up:
		all.listenTo(u)
	}
}

// shuns reports whether what the router says does not count now.
func (all *Uplinks) shuns(name string) bool {
	a, ok := all.forgotten[name]
	return ok && time.Now().Before(a.until)
}

// Readmit listens to a router again: somebody has let it into the network.
func (all *Uplinks) Readmit(name string) { delete(all.forgotten, name) }
