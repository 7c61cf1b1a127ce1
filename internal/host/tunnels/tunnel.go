package tunnels

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/core/backoff"
	"scaffold.dev/scaffold/internal/host/underlay"
)

// How a tunnel is watched: the far end is asked every second; when it does not answer, more often, and a tunnel
// whose far end is silent for that long is broken. What the path carries is looked at again now and then.
const (
	tunnelAsk     = time.Second
	tunnelAskSoon = 200 * time.Millisecond
	tunnelSilent  = 3 * time.Second
	tunnelPathAge = 30 * time.Second
	// How long between attempts to get a tunnel.
	tunnelAgain     = 500 * time.Millisecond
	tunnelAgainLast = 5 * time.Second
)

// A Tunnel keeps the tunnel that is one of the host's uplinks, docs/protocol.md §5.9. The interface is the
// uplink; this goroutine makes it, looks whether its far end answers, and looks for another router if not. While
// it is not ready the loop takes the uplink for one that is down.
type Tunnel struct {
	all   *Tunnels
	name  string // of the interface
	kinds []underlay.Kind
	echo  *underlay.Echo
	trip  time.Duration // smoothed by nothing: the latest
	last  bool          // only while no cable leads to a router

	mu    sync.Mutex
	has   *End // nil without a tunnel
	ready bool
	said  string             // what is wrong
	idle  bool               // it is not needed
	end   context.CancelFunc // of the last watch; nil before
}

// An End is the host's end of a tunnel, and how to reach the other. It is saved for the next daemon.
type End struct {
	Port      underlay.Port  `json:"port"`
	Kind      underlay.Kind  `json:"kind"`
	Router    string         `json:"router"`
	At        netip.AddrPort `json:"at"`         // the router's end in the underlay
	Key       []byte         `json:"key"`        // the router's, of WireGuard
	LinkLocal netip.Addr     `json:"link_local"` // of the router's end
	BootID    string         `json:"boot_id"`
	Netns     uint64         `json:"netns"`
}

func (e *End) String() string { return fmt.Sprintf("%s to %s at %v", e.Kind, e.Router, e.At) }

// NameOf is the interface of the host's n-th tunnel.
func NameOf(n int) string { return underlay.PortPrefix + strconv.Itoa(n) }

func (t *Tunnel) file() string { return "tunnel-" + t.name + ".json" }

// adopt goes on with the tunnel of an earlier daemon, at once: run finds out whether it still leads anywhere.
func (t *Tunnel) adopt(ports []underlay.Port) {
	var e End
	if !t.all.cfg.Files.Read(t.file(), &e) || e.BootID != t.all.cfg.BootID || e.Netns != t.all.cfg.Netns {
		return
	}
	for _, p := range ports {
		if p.Name == t.name && p.Number == e.Port.Number {
			t.has, t.ready = &e, true
			t.all.cfg.Log.Info("took over the tunnel of an earlier process", "uplink", t.name, "tunnel", e.String())
		}
	}
}

// State is for the loop, and for status: whether the uplink may be used, what it is, and what is wrong with it.
func (t *Tunnel) State() (ready bool, has *End, said string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ready, t.has, t.said
}

// Ready reports whether the tunnel carries packets, and says what is known of one that does not.
func (t *Tunnel) Ready() (ready bool, said string) {
	ready, _, said = t.State()
	return ready, said
}

// Describe says it for people.
func (t *Tunnel) Describe() string {
	ready, has, said := t.State()
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	switch {
	case ready:
		return fmt.Sprintf("%s, by %s", has, t.all.wireGuard.engine(has.Kind))
	case idle:
		return "none: a cable leads to a router"
	case said != "":
		return said
	}
	return "being made"
}

// become notes what became of the tunnel, and has the loop look.
func (t *Tunnel) become(has *End, ready bool, said string) {
	t.mu.Lock()
	news := t.ready != ready
	fresh := said != "" && t.said != said
	t.has, t.ready, t.said = has, ready, said
	t.mu.Unlock()
	switch {
	case fresh:
		t.all.cfg.Log.Warn("no tunnel; trying again", "uplink", t.name, "why", said)
	case news && ready:
		t.all.cfg.Log.Info("tunnel", "uplink", t.name, "tunnel", has.String(), "mtu", has.Port.MTU, "by", t.all.wireGuard.engine(has.Kind))
	}
	if news {
		t.all.cfg.Post(t.all.cfg.Changed)
	}
}

// run keeps the tunnel until ctx ends.
func (t *Tunnel) run(ctx context.Context) {
	again := backoff.Backoff{First: tunnelAgain, Last: tunnelAgainLast}
	for ctx.Err() == nil {
		ready, has, _ := t.State()
		if has != nil {
			if err := t.listen(); err == nil {
				why := t.watchUntil(ctx, has)
				if ctx.Err() != nil {
					break
				}
				if t.spare() {
					t.give(ctx)
					continue
				}
				t.become(has, false, why)
			} else if ready {
				// An earlier daemon's, whose interface went after adopt had seen it: that of a killed WireGuard process goes
				// with its namespace, a moment later. By the one that is made now nothing is sent before its size is known.
				t.become(has, false, err.Error())
			}
		}
		if t.last {
			t.awaitNeed(ctx)
		}
		next, err := t.connect(ctx, has)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			t.become(has, false, err.Error())
			select {
			case <-ctx.Done():
			case <-time.After(again.Next()):
			}
			continue
		}
		again.Reset()
		t.save(next)
		t.become(next, true, "")
	}
	t.deaf()
}

// save writes down where the tunnel leads.
func (t *Tunnel) save(e *End) {
	e.BootID, e.Netns = t.all.cfg.BootID, t.all.cfg.Netns
	if err := t.all.cfg.Files.WriteJSON(t.file(), e); err != nil {
		t.all.cfg.Log.Warn("a restart will not know the tunnel", "uplink", t.name, "error", err)
	}
}

// listen opens the way to ask the far end; a tunnel whose interface is gone has none.
func (t *Tunnel) listen() (err error) {
	t.deaf()
	t.echo, err = underlay.OpenEcho(t.name)
	return err
}

func (t *Tunnel) deaf() {
	if t.echo != nil {
		t.echo.Close()
		t.echo = nil
	}
}

// watchUntil is watch that BreakOff ends.
func (t *Tunnel) watchUntil(ctx context.Context, e *End) string {
	ctx, end := context.WithCancel(ctx)
	defer end()
	t.mu.Lock()
	t.end = end
	t.mu.Unlock()
	return t.watch(ctx, e)
}

// BreakOff has the tunnel led elsewhere: its router is none of the network any more, whatever it answers.
func (t *Tunnel) BreakOff() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end()
	}
}

// watch returns when the tunnel is broken, and says how it knows.
func (t *Tunnel) watch(ctx context.Context, e *End) string {
	heard, looked, wait := time.Now(), time.Now(), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(wait):
		}
		if t.spare() {
			return ""
		}
		if !underlay.There(t.name) {
			return "somebody removed the interface " + t.name
		}
		trip, err := t.echo.Ask(e.LinkLocal, underlay.SmallEcho, tunnelAskSoon)
		now := time.Now()
		switch {
		case err == nil:
			heard, wait, t.trip = now, tunnelAsk, trip
			t.become(e, true, "")
		case now.Sub(heard) > tunnelSilent:
			return fmt.Sprintf("%s: the far end has not answered for %v", e, tunnelSilent)
		default:
			wait = tunnelAskSoon
		}
		e = t.follow(ctx, e)
		if err == nil && now.Sub(looked) > tunnelPathAge {
			e, looked = t.remeasure(ctx, e), now
		}
	}
}

// follow leads the tunnel after an address of this host that changed. WireGuard does so by itself.
func (t *Tunnel) follow(ctx context.Context, e *End) *End {
	if e.Kind != underlay.VXLAN {
		return e
	}
	way, err := underlay.Reach(e.At.Addr())
	if err != nil || way.Source == e.Port.Local {
		return e
	}
	turned := *e
	turned.Port.Local = way.Source
	if _, err := t.ask(ctx, t.request(&turned)); err != nil {
		t.all.cfg.Log.Warn("the router does not hear of this host's new address; trying again", "uplink", t.name, "address", way.Source, "error", err)
		return e
	}
	if err := turned.Port.Turn(); err != nil {
		t.all.cfg.Log.Warn("the tunnel cannot follow this host's address", "uplink", t.name, "error", err)
		return e
	}
	t.all.cfg.Log.Info("the tunnel follows this host's address", "uplink", t.name, "from", e.Port.Local, "to", way.Source)
	t.save(&turned)
	t.become(&turned, true, "")
	return &turned
}

// remeasure looks whether the path still carries what the tunnel promises.
func (t *Tunnel) remeasure(ctx context.Context, e *End) *End {
	bound := t.bound(e)
	if bound >= e.Port.MTU {
		for range 3 {
			if _, err := t.echo.Ask(e.LinkLocal, e.Port.MTU, tunnelAskSoon+4*t.trip); err == nil {
				return e
			}
		}
	}
	smaller := *e
	smaller.Port.MTU = t.echo.Largest(ctx, e.LinkLocal, min(bound, e.Port.MTU), t.trip, func() int { return t.bound(e) })
	if smaller.Port.MTU == e.Port.MTU || ctx.Err() != nil {
		return e
	}
	if err := t.shrink(ctx, &smaller); err != nil {
		t.all.cfg.Log.Warn("the path carries less than the tunnel promises; trying again", "uplink", t.name, "error", err)
		return e
	}
	t.all.cfg.Log.Info("the path carries less now", "uplink", t.name, "mtu", smaller.Port.MTU)
	t.save(&smaller)
	t.become(&smaller, true, "")
	t.all.cfg.Post(t.all.cfg.Resized)
	return &smaller
}

// bound is the MTU that the kernel knows the path to leave.
func (t *Tunnel) bound(e *End) int {
	way, err := underlay.Reach(e.At.Addr())
	if err != nil {
		return e.Port.MTU
	}
	return e.Kind.Fit(way.MTU, e.At.Addr())
}

// shrink gives both ends an MTU.
func (t *Tunnel) shrink(ctx context.Context, e *End) error {
	if _, err := t.ask(ctx, t.request(e)); err != nil {
		return err
	}
	return underlay.SetMTU(t.name, e.Port.MTU)
}
