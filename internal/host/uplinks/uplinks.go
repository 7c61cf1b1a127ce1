package uplinks

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/greeting"
	"scaffold.dev/scaffold/wire"
)

// A Config is what uplinks need of others.
type Config struct {
	Log   *slog.Logger
	Host  string   // its name
	Names []string // of the interfaces, the preferred one first
	// Direct: the controllers are known, so a router need not lead to one.
	Direct bool
	Post   func(func())
	Call   func(context.Context, func()) bool
	Tell   Listener
}

// A Listener hears, in the loop, what becomes of uplinks.
type Listener interface {
	Found(u *Uplink)   // there is a router, another one than before, or it leads to the controller otherwise
	Unheard(u *Uplink) // no router answers: its daemon may be away, and it forwards all the same
	Gone(index int)    // the interface with that number is not there any more, or has another one
	Down(u *Uplink)    // nothing leaves by the link for now
	Lost(u *Uplink)    // it leads to no router any more
}

// A Tunnel makes an uplink's interface.
type Tunnel interface {
	Ready() (ready bool, said string)
	Describe() string
	BreakOff() // begins anew, with another router
}

// Uplinks are the host's, and the routers that are heard on them. The loop owns them.
type Uplinks struct {
	Config
	ctx       context.Context
	list      []*Uplink          // in the order of preference
	forgotten map[string]absence // routers that are none of the network, by name
}

// New looks at nothing before Changed. Its goroutines end with ctx.
func New(ctx context.Context, cfg Config) *Uplinks {
	all := &Uplinks{Config: cfg, ctx: ctx, forgotten: map[string]absence{}}
	for _, name := range cfg.Names {
		all.list = append(all.list, &Uplink{Name: name})
	}
	return all
}

// All are in the order of preference.
func (all *Uplinks) All() []*Uplink { return all.list }

// Named finds one by name, nil where it is none of the host's.
func (all *Uplinks) Named(name string) *Uplink {
	for _, u := range all.list {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// Lead reports whether one leads to a router.
func (all *Uplinks) Lead() bool { return slices.ContainsFunc(all.list, (*Uplink).Leads) }

// Cabled reports whether a cable leads to the network. One whose router is silent does while its place is good.
func (all *Uplinks) Cabled(placed func(uplink string) bool) bool {
	return slices.ContainsFunc(all.list, func(u *Uplink) bool { return u.Tunnel == nil && (u.Leads() || placed(u.Name)) })
}

// Trouble says why no uplink leads to a router.
func (all *Uplinks) Trouble() string {
	var why []string
	for _, u := range all.list {
		why = append(why, u.Name+": "+u.trouble())
	}
	return strings.Join(why, "; ")
}

// Resume takes the router of before for the uplink's until one greets, where the uplink is still there: with that number,
// if one is given.
func (all *Uplinks) Resume(name string, index int, router netip.Addr, before *apiv1.Attachment) (now int, ok bool) {
	u := all.Named(name)
	if !u.look() || index != 0 && index != u.Index {
		return 0, false
	}
	u.Router, u.before = router, before
	return u.Index, true
}

// Changed looks at the uplinks; those in down were down at some time since the last look.
func (all *Uplinks) Changed(down map[int]bool) {
	for _, u := range all.list {
		all.check(u, down[u.Index])
	}
}

// check notices that an uplink came, went or lost its carrier, be it for a moment.
func (all *Uplinks) check(u *Uplink, flapped bool) {
	index, up, turns, first := u.Index, u.Up, u.turns, !u.seen
	u.look()
	u.seen = true
	flapped = flapped || u.turns != turns
	if !first && u.Up == up && u.Index == index && !(up && flapped) {
		return
	}
	if !first {
		all.down(u, index)
	}
	if u.Up {
		all.Log.Info("uplink is up", "uplink", u.Name)
		all.listenTo(u)
	} else if gone := index != 0 && u.Index == 0; (first || up || gone) && u.Tunnel == nil { // a tunnel's own goroutine says it
		// Once an absence, and once more when the interface itself goes: it loses its address first.
		all.Log.Warn("uplink cannot be used; waiting for it", "uplink", u.Name, "why", u.trouble())
	}
}

// listenTo asks for a router on the uplink's link, and hears HELLOs until the link or the router goes.
func (all *Uplinks) listenTo(u *Uplink) {
	ctx, cancel := context.WithCancel(all.ctx)
	u.cancel = cancel
	go greeting.Listen(ctx, greeting.Link{Log: all.Log, Host: all.Host, Name: u.Name, Index: u.Index, Post: all.Post, Call: all.Call, Hear: &news{all, u, ctx}})
}

// forgetRouter ends what was heard on the uplink's link.
func (all *Uplinks) forgetRouter(u *Uplink) {
	if u.cancel != nil {
		u.cancel()
		u.cancel = nil
	}
	u.Router, u.heard, u.rival, u.asked, u.Hello, u.before = netip.Addr{}, false, false, time.Time{}, wire.Hello{}, nil
}

// down forgets what was heard on the link with that index: it may come back leading elsewhere.
func (all *Uplinks) down(u *Uplink, index int) {
	if u.cancel != nil {
		u.cancel()
		u.cancel = nil
	}
	u.heard, u.rival, u.asked, u.Hello = false, false, time.Time{}, wire.Hello{}
	if index == 0 {
		return
	}
	if u.Index != index {
		all.Tell.Gone(index)
	} else {
		all.Tell.Down(u)
	}
	u.before = nil
	all.Tell.Lost(u)
}
