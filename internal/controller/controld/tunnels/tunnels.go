// Package tunnels knows which tunnels to hosts the routers of a network were told to have (docs/protocol.md §5.9). The loop
// owns what it knows.
package tunnels

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/wire"
)

// Bounds of tunnels, docs/protocol.md §5.9.
const (
	maxTunnels = 4096 // of one router
	maxOfHost  = 4
	maxOffers  = 16
	maxMTU     = 9216
	// Patience is how long a router may take to make its end.
	Patience = 3 * time.Second
	// unused is how long a tunnel stays that no host is attached by.
	unused     = time.Minute
	sweepEvery = 10 * time.Second
)

// The kinds of tunnels.
const (
	vxlan     = "vxlan"
	wireGuard = "wireguard"
)

// A Tunnel is one that a router was told to have. It is soft state: routers tell what they have when they join.
type Tunnel struct {
	*apiv1.Tunnel
	router string
	used   time.Time // a host was attached by it, or it was asked for
	made   *apiv1.TunnelMade
	signed gate.Signatures // of its requests
}

// port is the tunnel's name at its router.
func (t *Tunnel) port() string { return portName + strconv.Itoa(int(t.Number)) }

// portName begins the names of ports that are tunnels.
const portName = "sct"

// An end is what a router has to do with tunnels.
type end struct {
	offers []*apiv1.TunnelOffer // of its session, or of the last one
	serial uint64               // counts the orders of this controller
}

// Tunnels are all of the network, by number, and who waits for routers to make theirs.
type Tunnels struct {
	all     map[uint32]*Tunnel
	waits   map[*Wait]struct{}
	ends    map[string]*end // by router
	network Network
	loop    Loop
	events  Events
}

// A Network is what is to be known of the routers and hosts of one.
type Network interface {
	Connected(router string) bool
	Order(router string, has *apiv1.Tunnels) // to a router that is connected
	Key(host string) []byte                  // nil where it has shown none
	Attached() map[Port]bool                 // where hosts are
}

// A Port is one of a router.
type Port struct{ Router, Name string }

// A Loop runs what is to be done later in the goroutine that owns the tunnels.
type Loop interface {
	After(time.Duration, func())
}

// Events take what happens into the history.
type Events interface {
	Tell(kind, subject, text string, attrs ...string)
}

// A Wait is for a router to have made what it was told.
type Wait struct {
	router string
	serial uint64
	done   chan struct{}
}

// New makes the tunnels of a network that has none.
func New(network Network, loop Loop, events Events) *Tunnels {
	return &Tunnels{all: make(map[uint32]*Tunnel), waits: make(map[*Wait]struct{}), ends: make(map[string]*end), network: network, loop: loop, events: events}
}

// Over waits until the router has answered.
func (w *Wait) Over(ctx context.Context) error {
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	select {
	case <-w.done:
		return nil
	case <-limit.C:
		return errors.New("not made")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Check says what of a request is out of bounds.
func Check(m *apiv1.TunnelRequest) error {
	if name, err := names.Clean(m.Host, ""); err != nil || name != m.Host {
		return fmt.Errorf("host name %.80q: want letters, digits and hyphens, in lower case", m.Host)
	}
	if !strings.HasPrefix(m.Uplink, portName) || len(m.Uplink) > 15 || strings.Trim(m.Uplink[len(portName):], "0123456789") != "" {
		return fmt.Errorf("uplink %.40q: want %s and a number", m.Uplink, portName)
	}
	if m.Router == "" {
		return nil
	}
	return checkEnd(m.Kind, m.Address, m.PublicKey, m.Mtu)
}

func checkEnd(kind, address string, key []byte, mtu uint32) error {
	switch kind {
	case vxlan:
		if a, err := netip.ParseAddr(address); err != nil || a.Zone() != "" || a.IsLoopback() || a.IsMulticast() || a.IsUnspecified() {
			return fmt.Errorf("tunnel to %.80q: want the host's address in the underlay", address)
		}
	case wireGuard:
		if len(key) != 32 {
			return fmt.Errorf("a public key of %d bytes: WireGuard's have 32", len(key))
		}
	default:
		return fmt.Errorf("tunnel of kind %.40q: want vxlan or wireguard", kind)
	}
	if mtu < 1280 || mtu > maxMTU {
		return fmt.Errorf("tunnel with an MTU of %d: want 1280 to %d", mtu, maxMTU)
	}
	return nil
}

// Proves says why a request does not come from the host whose name it bears, in a network with keys.
func (x *Tunnels) Proves(m *apiv1.TunnelRequest) error {
	if err := api.CheckTunnel(m, time.Now()); err != nil {
		return fmt.Errorf("%w (this network has trust: keys)", err)
	}
	if key := x.network.Key(m.Host); len(key) > 0 && !bytes.Equal(key, m.Key) {
		return fmt.Errorf("the name %s belongs to the host with the key %08x, this one has %08x", m.Host, wire.KeyID(key), wire.KeyID(m.Key))
	}
	if t := x.of(m.Host, m.Uplink); t != nil && t.signed.Used(m.Signature, m.SignedUnix) {
		return errors.New("the request was taken already: sign a new one")
	}
	return nil
}

// Offers are those of routers that are here, the least loaded first.
func (x *Tunnels) Offers() (list []*apiv1.TunnelOffer) {
	loads := map[string]uint32{}
	for _, t := range x.all {
		loads[t.router]++
	}
	for name, e := range x.ends {
		for _, o := range e.offers {
			if x.network.Connected(name) && loads[name] < maxTunnels {
				list = append(list, &apiv1.TunnelOffer{Router: name, Kind: o.Kind, Address: o.Address, PublicKey: o.PublicKey, Tunnels: loads[name]})
			}
		}
	}
	slices.SortFunc(list, func(a, b *apiv1.TunnelOffer) int {
		return cmp.Or(cmp.Compare(a.Tunnels, b.Tunnels), cmp.Compare(a.Router, b.Router), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Address, b.Address))
	})
	return list
}

func (x *Tunnels) of(host, uplink string) *Tunnel {
	for _, t := range x.all {
		if t.Host == host && t.Uplink == uplink {
			return t
		}
	}
	return nil
}

// For has a router make a tunnel, or lead the one that the host has there elsewhere. One to another router
// ends.
func (x *Tunnels) For(m *apiv1.TunnelRequest) (*Tunnel, *Wait, error) {
	if !x.network.Connected(m.Router) {
		return nil, nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("router %.80q is not connected", m.Router))
	}
	if !slices.ContainsFunc(x.end(m.Router).offers, func(o *apiv1.TunnelOffer) bool { return o.Kind == m.Kind }) {
		return nil, nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("router %s does not offer tunnels of kind %s", m.Router, m.Kind))
	}
	t := x.of(m.Host, m.Uplink)
	if t != nil && (t.router != m.Router || t.Kind != m.Kind) {
		x.drop(t)
		t = nil
	}
	if t == nil {
		if err := x.room(m); err != nil {
			return nil, nil, connect.NewError(connect.CodeResourceExhausted, err)
		}
		t = &Tunnel{router: m.Router, Tunnel: &apiv1.Tunnel{Number: x.free(), Host: m.Host, Uplink: m.Uplink, Kind: m.Kind}}
		x.all[t.Number] = t
		x.events.Tell("tunnel.up", m.Host, "host has a tunnel to "+m.Router, "router", m.Router, "kind", m.Kind, "port", t.port())
	}
	t.Tunnel = &apiv1.Tunnel{Number: t.Number, Host: t.Host, Uplink: t.Uplink, Kind: t.Kind, Address: m.Address, PublicKey: m.PublicKey, Mtu: m.Mtu}
	t.used, t.made = time.Now(), nil
	t.signed.Note(m.Signature, m.SignedUnix, t.used)
	x.order(m.Router)
	w := &Wait{router: m.Router, serial: x.end(m.Router).serial, done: make(chan struct{})}
	x.waits[w] = struct{}{}
	return t, w, nil
}

func (x *Tunnels) room(m *apiv1.TunnelRequest) error {
	ofRouter, ofHost := 0, 0
	for _, t := range x.all {
		if t.router == m.Router {
			ofRouter++
		}
		if t.Host == m.Host {
			ofHost++
		}
	}
	if ofRouter >= maxTunnels {
		return fmt.Errorf("router %s has %d tunnels already: let another router offer some", m.Router, maxTunnels)
	}
	if ofHost >= maxOfHost {
		return fmt.Errorf("host %s has %d tunnels already", m.Host, maxOfHost)
	}
	return nil
}

// free is a number of 24 bits. It is random: who does not know a VXLAN's number cannot send into it blindly.
func (x *Tunnels) free() uint32 {
	for {
		number := 1 + rand.Uint32N(1<<24-2)
		if _, taken := x.all[number]; !taken {
			return number
		}
	}
}

// drop forgets a tunnel; its router hears of that by the next order.
func (x *Tunnels) drop(t *Tunnel) {
	delete(x.all, t.Number)
	x.events.Tell("tunnel.down", t.Host, "host has no tunnel to "+t.router+" any more", "router", t.router, "kind", t.Kind, "port", t.port())
	if x.network.Connected(t.router) {
		x.order(t.router)
	}
}

// Answer is what a router has made of a tunnel that it was told.
func (x *Tunnels) Answer(t *Tunnel) (*apiv1.TunnelMade, error) {
	switch {
	case x.all[t.Number] != t || t.made == nil:
		return nil, fmt.Errorf("router %s is not connected any more", t.router)
	case t.made.Error != "":
		return nil, fmt.Errorf("router %s cannot make its end of the tunnel: %s", t.router, t.made.Error)
	}
	return t.made, nil
}

// GiveUp forgets somebody who waits no longer.
func (x *Tunnels) GiveUp(w *Wait) { delete(x.waits, w) }

// Forsake takes a host's tunnel away, or all of them.
func (x *Tunnels) Forsake(host, uplink string) {
	for _, t := range x.all {
		if t.Host == host && (uplink == "" || t.Uplink == uplink) {
			x.drop(t)
		}
	}
}

// order tells a router all that it is to have.
func (x *Tunnels) order(router string) {
	e := x.end(router)
	e.serial++
	order := &apiv1.Tunnels{Serial: e.serial}
	for _, t := range x.all {
		if t.router == router {
			order.Tunnels = append(order.Tunnels, t.Tunnel)
		}
	}
	slices.SortFunc(order.Tunnels, func(a, b *apiv1.Tunnel) int { return cmp.Compare(a.Number, b.Number) })
	x.network.Order(router, order)
}

// Joined takes what a router that joins offers and has. Tunnels that it has and nobody knows of are of a
// controller before this one; a number that is another router's by now is not.
func (x *Tunnels) Joined(router string, j *apiv1.RouterJoin) {
	e := x.end(router)
	e.offers = nil
	for _, o := range j.Offers[:min(len(j.Offers), maxOffers)] {
		_, err := netip.ParseAddrPort(o.Address)
		if err == nil && (o.Kind == vxlan || o.Kind == wireGuard && len(o.PublicKey) == 32) {
			e.offers = append(e.offers, o)
		}
	}
	for _, has := range j.Tunnels[:min(len(j.Tunnels), maxTunnels)] {
		m := &apiv1.TunnelRequest{Host: has.Host, Uplink: has.Uplink, Router: router, Kind: has.Kind, Address: has.Address, PublicKey: has.PublicKey, Mtu: has.Mtu}
		if x.all[has.Number] == nil && x.of(has.Host, has.Uplink) == nil && Check(m) == nil {
			x.all[has.Number] = &Tunnel{router: router, Tunnel: has, used: time.Now()}
		}
	}
	if len(e.offers)+len(j.Tunnels) > 0 {
		x.order(router)
	}
}

// Forgotten is told that a router is none of the network's any more.
func (x *Tunnels) Forgotten(router string) { delete(x.ends, router) }

func (x *Tunnels) end(router string) *end {
	if x.ends[router] == nil {
		x.ends[router] = &end{}
	}
	return x.ends[router]
}

// Made takes a router's word on what it was told.
func (x *Tunnels) Made(router string, m *apiv1.TunnelsMade) {
	for _, made := range m.Tunnels {
		if t := x.all[made.Number]; t != nil && t.router == router {
			made.Error = events.Shortened(made.Error)
			t.made = made
		}
	}
	for w := range x.waits {
		if w.router == router && w.serial <= m.Serial {
			delete(x.waits, w)
			close(w.done)
		}
	}
}

// Watch ends, from now on, tunnels that no host has been attached by for a while.
func (x *Tunnels) Watch() { x.loop.After(sweepEvery, x.sweep) }

func (x *Tunnels) sweep() {
	attached := x.network.Attached()
	now := time.Now()
	for _, t := range x.all {
		switch {
		case attached[Port{t.router, t.port()}]:
			t.used = now
		case now.Sub(t.used) > unused:
			x.drop(t)
		}
	}
	x.Watch()
}
