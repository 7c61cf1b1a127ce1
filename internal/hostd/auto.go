package hostd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/underlay"
)

// AutoUplink in the place of uplinks leaves it to the daemon: every interface of Ethernet may lead to a router, and
// while none does there is a tunnel, if the controller is known.
const AutoUplink = "auto"

// How long no router may be heard by a cable before a tunnel is made (routers answer within milliseconds), and how
// long one must be before the tunnel goes.
const (
	cableAway = time.Second
	cableBack = 30 * time.Second
)

// findUplinks puts what is there in the place of "auto". Interfaces that come later wait for the next start.
func (c *Config) findUplinks() error {
	if len(c.Uplinks) != 1 || c.Uplinks[0] != AutoUplink {
		return nil
	}
	names, err := cables()
	if err != nil {
		return err
	}
	if len(c.Controllers) > 0 {
		name := tunnelName(0)
		names, c.tunnels, c.auto = append(names, name), map[string][]underlay.Kind{name: underlay.Kinds}, true
	}
	if len(names) == 0 {
		return errors.New("uplink auto: no interface of Ethernet is here to look for a router on, and no controller is named to ask for a tunnel (--controller http://HOST:PORT)")
	}
	c.Uplinks = names
	return nil
}

// cables are the interfaces that may lead to a router: Ethernet, their own masters, and not of tunnels.
func cables() (names []string, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("uplink auto: list the interfaces: %w", err)
	}
	for _, l := range links {
		a := l.Attrs()
		ether := a.EncapType == "ether" && a.Flags&net.FlagLoopback == 0 && l.Type() != "dummy"
		if ether && a.MasterIndex == 0 && !strings.HasPrefix(a.Name, underlay.PortPrefix) {
			names = append(names, a.Name)
		}
	}
	return names, nil
}

// cabled reports whether a cable leads to the network. One whose router is silent does while its place is good.
func (d *daemon) cabled() bool {
	for _, u := range d.uplinks {
		if u.tunnel != nil {
			continue
		}
		if p := d.placeOn(u.name); u.leads() || p != nil && p.live() {
			return true
		}
	}
	return false
}

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
func (t *tunneler) spare() bool {
	cable, since, _ := t.d.lead.get()
	return t.last && cable && time.Since(since) > cableBack
}

// awaitNeed returns when no cable leads anywhere, or ctx has ended.
func (t *tunneler) awaitNeed(ctx context.Context) {
	for ctx.Err() == nil {
		cable, since, changed := t.d.lead.get()
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

func (t *tunneler) idles(idle bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = idle
}

// give ends a tunnel that a cable has made superfluous.
func (t *tunneler) give(ctx context.Context) {
	t.d.log.Info("a cable leads to a router: the tunnel ends", "uplink", t.name)
	t.become(nil, false, "")
	t.deaf()
	if err := errors.Join(t.d.guard.drop(t.name), underlay.Remove(t.name)); err != nil {
		t.d.log.Warn("cannot remove the tunnel", "uplink", t.name, "error", err)
	}
	t.d.store.remove(t.file())
	_, err := t.ask(ctx, &apiv1.TunnelRequest{Gone: true})
	if err != nil {
		t.d.log.Debug("the controller takes the tunnel back by itself", "uplink", t.name, "error", err)
	}
}

// trouble says why no uplink leads to a router.
func (d *daemon) trouble() string {
	var all []string
	for _, u := range d.uplinks {
		all = append(all, u.name+": "+u.trouble())
	}
	return strings.Join(all, "; ")
}
