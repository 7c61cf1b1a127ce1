package tunnels

import (
	"context"
	"errors"
	"sync"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/underlay"
)

// How long no router may be heard by a cable before a tunnel is made (routers answer within milliseconds), and how
// long one must be before the tunnel goes.
const (
	cableAway = time.Second
	cableBack = 30 * time.Second
)

// A lead tells goroutines of tunnels whether a cable leads to the network.
type lead struct {
	mu      sync.Mutex
	cable   bool
	since   time.Time
	changed chan struct{} // closed at the next change
}

func (l *lead) set(cable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil && l.cable == cable {
		return
	}
	if l.changed != nil {
		close(l.changed)
	}
	l.cable, l.since, l.changed = cable, time.Now(), make(chan struct{})
}

func (l *lead) get() (cable bool, since time.Time, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cable, l.since, l.changed
}

// spare reports whether the tunnel is not needed any more.
func (t *Tunnel) spare() bool {
	cable, since, _ := t.all.lead.get()
	return t.last && cable && time.Since(since) > cableBack
}

// awaitNeed returns when no cable leads anywhere, or ctx has ended.
func (t *Tunnel) awaitNeed(ctx context.Context) {
	for ctx.Err() == nil {
		cable, since, changed := t.all.lead.get()
		t.idles(cable)
		after := time.Until(since.Add(cableAway))
		if !cable && after <= 0 {
			return
		}
		var due <-chan time.Time
		if !cable {
			due = time.After(after)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-due:
		}
	}
}

func (t *Tunnel) idles(idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = idle
}

// give ends a tunnel that a cable has made superfluous.
func (t *Tunnel) give(ctx context.Context) {
	t.all.cfg.Log.Info("a cable leads to a router: the tunnel ends", "uplink", t.name)
	t.become(nil, false, "")
	t.deaf()
	if err := errors.Join(t.all.wireGuard.drop(t.name), underlay.Remove(t.name)); err != nil {
		t.all.cfg.Log.Warn("cannot remove the tunnel", "uplink", t.name, "error", err)
	}
	t.all.cfg.Files.Remove(t.file())
	_, err := t.ask(ctx, &apiv1.TunnelRequest{Gone: true})
	if err != nil {
		t.all.cfg.Log.Debug("the controller takes the tunnel back by itself", "uplink", t.name, "error", err)
	}
}
