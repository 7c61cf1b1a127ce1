package hostd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/underlay"
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

// A tunneler keeps the tunnel that is one of the host's uplinks, docs/protocol.md §5.9. The interface is the
// uplink; this goroutine makes it, looks whether its far end answers, and looks for another router if not. While
// it is not ready the loop takes the uplink for one that is down.
type tunneler struct {
	d     *daemon
	name  string // of the interface
	kinds []underlay.Kind
	echo  *underlay.Echo
	trip  time.Duration // smoothed by nothing: the latest
	last  bool          // only while no cable leads to a router

	mu    sync.Mutex
	has   *tunnelEnd // nil without a tunnel
	ready bool
	said  string // what is wrong
	idle  bool   // it is not needed
}

// A tunnelEnd is the host's end of a tunnel, and how to reach the other. It is saved for the next daemon.
type tunnelEnd struct {
	Port      underlay.Port  `json:"port"`
	Kind      underlay.Kind  `json:"kind"`
	Router    string         `json:"router"`
	At        netip.AddrPort `json:"at"`         // the router's end in the underlay
	Key       []byte         `json:"key"`        // the router's, of WireGuard
	LinkLocal netip.Addr     `json:"link_local"` // of the router's end
	BootID    string         `json:"boot_id"`
	Netns     uint64         `json:"netns"`
}

func (e *tunnelEnd) String() string { return fmt.Sprintf("%s to %s at %v", e.Kind, e.Router, e.At) }

// tunnelName is the interface of the host's n-th tunnel.
func tunnelName(n int) string { return underlay.PortPrefix + strconv.Itoa(n) }

func (t *tunneler) file() string { return "tunnel-" + t.name + ".json" }

// openTunnels takes over the tunnels of an earlier daemon, and begins to keep those that the configuration asks
// for. Others are removed.
func (d *daemon) openTunnels() error {
	asked := map[string]bool{}
	for name := range d.cfg.tunnels {
		asked[name] = true
	}
	if err := d.guard.open(asked); err != nil {
		return err
	}
	ports, err := underlay.Ports()
	if err != nil {
		return err
	}
	for _, p := range ports {
		if !asked[p.Name] {
			if err := underlay.Remove(p.Name); err != nil {
				return err
			}
		}
	}
	for _, u := range d.uplinks {
		if kinds, ok := d.cfg.tunnels[u.name]; ok {
			u.tunnel = &tunneler{d: d, name: u.name, kinds: kinds, last: d.cfg.auto}
			u.tunnel.adopt(ports)
		}
	}
	return nil
}

// keepTunnels begins to look after them.
func (d *daemon) keepTunnels() {
	ctx, cancel := context.WithCancel(d.ctx)
	d.endTunnels = cancel
	for _, u := range d.uplinks {
		if u.tunnel != nil {
			d.tunnelers.Go(func() { u.tunnel.run(ctx) })
		}
	}
}

// closeTunnels removes them, or leaves them to the next daemon.
func (d *daemon) closeTunnels(keep bool) error {
	if d.endTunnels != nil {
		d.endTunnels()
		d.drainUntil(closedBy(&d.tunnelers))
	}
	if keep {
		return nil
	}
	errs := []error{d.guard.end()}
	for _, u := range d.uplinks {
		if u.tunnel != nil {
			errs = append(errs, underlay.Remove(u.name))
			d.store.remove(u.tunnel.file())
		}
	}
	return errors.Join(errs...)
}

func closedBy(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	return done
}

// adopt goes on with the tunnel of an earlier daemon, at once: run finds out whether it still leads anywhere.
func (t *tunneler) adopt(ports []underlay.Port) {
	var e tunnelEnd
	if !t.d.store.read(t.file(), &e) || e.BootID != t.d.bootID || e.Netns != t.d.netns {
		return
	}
	for _, p := range ports {
		if p.Name == t.name && p.Number == e.Port.Number {
			t.has, t.ready = &e, true
			t.d.log.Info("took over the tunnel of an earlier process", "uplink", t.name, "tunnel", e.String())
		}
	}
}

// state is for the loop, and for status: whether the uplink may be used, what it is, and what is wrong with it.
func (t *tunneler) state() (ready bool, has *tunnelEnd, said string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ready, t.has, t.said
}

// describe says it for people.
func (t *tunneler) describe() string {
	ready, has, said := t.state()
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	switch {
	case ready:
		return fmt.Sprintf("%s, by %s", has, t.d.guard.engine(has.Kind))
	case idle:
		return "none: a cable leads to a router"
	case said != "":
		return said
	}
	return "being made"
}

// become notes what became of the tunnel, and has the loop look.
func (t *tunneler) become(has *tunnelEnd, ready bool, said string) {
	t.mu.Lock()
	news := t.ready != ready
	fresh := said != "" && t.said != said
	t.has, t.ready, t.said = has, ready, said
	t.mu.Unlock()
	switch {
	case fresh:
		t.d.log.Warn("no tunnel; trying again", "uplink", t.name, "why", said)
	case news && ready:
		t.d.log.Info("tunnel", "uplink", t.name, "tunnel", has.String(), "mtu", has.Port.MTU, "by", t.d.guard.engine(has.Kind))
	}
	if news {
		t.d.post(func() { t.d.linksChanged(nil) })
	}
}

// run keeps the tunnel until ctx ends.
func (t *tunneler) run(ctx context.Context) {
	wait := tunnelAgain
	for ctx.Err() == nil {
		_, has, _ := t.state()
		if has != nil && t.listen() == nil {
			why := t.watch(ctx, has)
			if ctx.Err() != nil {
				break
			}
			if t.spare() {
				t.give(ctx)
				continue
			}
			t.become(has, false, why)
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
			case <-time.After(wait):
			}
			wait = min(2*wait, tunnelAgainLast)
			continue
		}
		wait = tunnelAgain
		t.save(next)
		t.become(next, true, "")
	}
	t.deaf()
}

// save writes down where the tunnel leads.
func (t *tunneler) save(e *tunnelEnd) {
	e.BootID, e.Netns = t.d.bootID, t.d.netns
	if err := t.d.store.writeJSON(t.file(), e); err != nil {
		t.d.log.Warn("a restart will not know the tunnel", "uplink", t.name, "error", err)
	}
}

// listen opens the way to ask the far end; a tunnel whose interface is gone has none.
func (t *tunneler) listen() (err error) {
	t.deaf()
	t.echo, err = underlay.OpenEcho(t.name)
	return err
}

func (t *tunneler) deaf() {
	if t.echo != nil {
		t.echo.Close()
		t.echo = nil
	}
}

// watch returns when the tunnel is broken, and says how it knows.
func (t *tunneler) watch(ctx context.Context, e *tunnelEnd) string {
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
func (t *tunneler) follow(ctx context.Context, e *tunnelEnd) *tunnelEnd {
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
		t.d.log.Warn("the router does not hear of this host's new address; trying again", "uplink", t.name, "address", way.Source, "error", err)
		return e
	}
	if err := turned.Port.Turn(); err != nil {
		t.d.log.Warn("the tunnel cannot follow this host's address", "uplink", t.name, "error", err)
		return e
	}
	t.d.log.Info("the tunnel follows this host's address", "uplink", t.name, "from", e.Port.Local, "to", way.Source)
	t.save(&turned)
	t.become(&turned, true, "")
	return &turned
}

// remeasure looks whether the path still carries what the tunnel promises.
func (t *tunneler) remeasure(ctx context.Context, e *tunnelEnd) *tunnelEnd {
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
		t.d.log.Warn("the path carries less than the tunnel promises; trying again", "uplink", t.name, "error", err)
		return e
	}
	t.d.log.Info("the path carries less now", "uplink", t.name, "mtu", smaller.Port.MTU)
	t.save(&smaller)
	t.become(&smaller, true, "")
	t.d.post(func() { t.d.linksChanged(nil); t.d.attend() })
	return &smaller
}

// bound is the MTU that the kernel knows the path to leave.
func (t *tunneler) bound(e *tunnelEnd) int {
	way, err := underlay.Reach(e.At.Addr())
	if err != nil {
		return e.Port.MTU
	}
	return e.Kind.Fit(way.MTU, e.At.Addr())
}

// shrink gives both ends an MTU.
func (t *tunneler) shrink(ctx context.Context, e *tunnelEnd) error {
	if _, err := t.ask(ctx, t.request(e)); err != nil {
		return err
	}
	return underlay.SetMTU(t.name, e.Port.MTU)
}
