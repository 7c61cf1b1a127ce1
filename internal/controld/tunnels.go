package controld

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
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// Bounds of tunnels, docs/protocol.md §5.9.
const (
	maxTunnels     = 4096 // of one router
	maxHostTunnels = 4
	maxOffers      = 16
	maxTunnelMTU   = 9216
	// tunnelMade is how long a router may take to make its end.
	tunnelMade = 3 * time.Second
	// tunnelUnused is how long a tunnel stays that no host is attached by.
	tunnelUnused = time.Minute
	tunnelSweep  = 10 * time.Second
)

// The kinds of tunnels.
const (
	tunnelVXLAN     = "vxlan"
	tunnelWireGuard = "wireguard"
)

// A tunnel is one that a router was told to have. It is soft state: routers tell what they have when they join.
type tunnel struct {
	*apiv1.Tunnel
	router string
	used   time.Time // a host was attached by it, or it was asked for
	made   *apiv1.TunnelMade
	signed int64 // of the request
}

// port is the tunnel's name at its router.
func (t *tunnel) port() string { return tunnelPort + strconv.Itoa(int(t.Number)) }

// tunnelPort begins the names of ports that are tunnels.
const tunnelPort = "sct"

// tunnels are all of the network, by number, and who waits for routers to make theirs.
type tunnels struct {
	all   map[uint32]*tunnel
	waits map[*tunnelWait]struct{}
}

type tunnelWait struct {
	router string
	serial uint64
	done   chan struct{}
}

// Tunnel tells a host who offers tunnels, or gives it one.
func (a *agentAPI) Tunnel(ctx context.Context, req *connect.Request[apiv1.TunnelRequest]) (*connect.Response[apiv1.TunnelResponse], error) {
	m := req.Msg
	if err := checkTunnel(m); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := itself(peerOf(ctx), trust.Host, m.Host, m.Key); a.n.key != nil && err != nil {
		return nil, connect.NewError(connect.CodePermissionDenied, err)
	}
	seen := req.Peer().Addr
	if req.Header().Get(handedOn) != "" && peerOf(ctx).handed {
		seen = req.Header().Get(seenAt)
	}
	if at, err := netip.ParseAddrPort(seen); err == nil {
		seen = at.Addr().Unmap().WithZone("").String()
	}
	answer := &apiv1.TunnelResponse{Seen: seen, Trust: a.n.cfg.Trust}
	var t *tunnel
	var wait *tunnelWait
	_, err := get(ctx, a.n, func() (_ *apiv1.TunnelResponse, err error) {
		if err := a.n.provesTunnel(m); err != nil {
			return nil, connect.NewError(connect.CodePermissionDenied, err)
		}
		switch {
		case m.Gone:
			a.n.forsake(m.Host, m.Uplink)
		case m.Router == "":
			answer.Offers = a.n.offers()
		default:
			t, wait, err = a.n.tunnelFor(m)
		}
		return answer, err
	})
	if err != nil || wait == nil {
		return connect.NewResponse(answer), err
	}
	if err := wait.over(ctx); err != nil {
		a.n.loop.post(func() { delete(a.n.tunnels.waits, wait) })
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("router %s has not made its end of the tunnel within %v", m.Router, tunnelMade))
	}
	return get(ctx, a.n, func() (*apiv1.TunnelResponse, error) {
		switch {
		case a.n.tunnels.all[t.Number] != t || t.made == nil:
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("router %s is not connected any more", m.Router))
		case t.made.Error != "":
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("router %s cannot make its end of the tunnel: %s", m.Router, t.made.Error))
		}
		answer.Number, answer.LinkLocal = t.Number, t.made.LinkLocal
		return answer, nil
	})
}

func (w *tunnelWait) over(ctx context.Context) error {
	limit := time.NewTimer(tunnelMade)
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

// checkTunnel says what of a request is out of bounds.
func checkTunnel(m *apiv1.TunnelRequest) error {
	if name, err := names.Clean(m.Host, ""); err != nil || name != m.Host {
		return fmt.Errorf("host name %.80q: want letters, digits and hyphens, in lower case", m.Host)
	}
	if !strings.HasPrefix(m.Uplink, tunnelPort) || len(m.Uplink) > 15 || strings.Trim(m.Uplink[len(tunnelPort):], "0123456789") != "" {
		return fmt.Errorf("uplink %.40q: want %s and a number", m.Uplink, tunnelPort)
	}
	if m.Router == "" {
		return nil
	}
	return checkTunnelEnd(m.Kind, m.Address, m.PublicKey, m.Mtu)
}

func checkTunnelEnd(kind, address string, key []byte, mtu uint32) error {
	switch kind {
	case tunnelVXLAN:
		if a, err := netip.ParseAddr(address); err != nil || a.Zone() != "" || a.IsLoopback() || a.IsMulticast() || a.IsUnspecified() {
			return fmt.Errorf("tunnel to %.80q: want the host's address in the underlay", address)
		}
	case tunnelWireGuard:
		if len(key) != 32 {
			return fmt.Errorf("a public key of %d bytes: WireGuard's have 32", len(key))
		}
	default:
		return fmt.Errorf("tunnel of kind %.40q: want vxlan or wireguard", kind)
	}
	if mtu < 1280 || mtu > maxTunnelMTU {
		return fmt.Errorf("tunnel with an MTU of %d: want 1280 to %d", mtu, maxTunnelMTU)
	}
	return nil
}

// provesTunnel says why a request does not come from the host whose name it bears.
func (n *network) provesTunnel(m *apiv1.TunnelRequest) error {
	if n.key == nil {
		return nil
	}
	if err := api.CheckTunnel(m, time.Now()); err != nil {
		return fmt.Errorf("%w (this network has trust: keys)", err)
	}
	if h := n.hosts[m.Host]; h != nil && len(h.Key) > 0 && !bytes.Equal(h.Key, m.Key) {
		return fmt.Errorf("the name %s belongs to the host with the key %08x, this one has %08x", m.Host, wire.KeyID(h.Key), wire.KeyID(m.Key))
	}
	if t := n.tunnelOf(m.Host, m.Uplink); t != nil && m.SignedUnix < t.signed {
		return errors.New("the request was made before one that was taken already: sign a new one")
	}
	return nil
}

// offers are those of routers that are here, the least loaded first.
func (n *network) offers() (list []*apiv1.TunnelOffer) {
	loads := map[string]uint32{}
	for _, t := range n.tunnels.all {
		loads[t.router]++
	}
	for name, r := range n.routers {
		for _, o := range r.offers {
			if r.session != nil && loads[name] < maxTunnels {
				list = append(list, &apiv1.TunnelOffer{Router: name, Kind: o.Kind, Address: o.Address, PublicKey: o.PublicKey, Tunnels: loads[name]})
			}
		}
	}
	slices.SortFunc(list, func(a, b *apiv1.TunnelOffer) int {
		return cmp.Or(cmp.Compare(a.Tunnels, b.Tunnels), cmp.Compare(a.Router, b.Router), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Address, b.Address))
	})
	return list
}

func (n *network) tunnelOf(host, uplink string) *tunnel {
	for _, t := range n.tunnels.all {
		if t.Host == host && t.Uplink == uplink {
			return t
		}
	}
	return nil
}

// tunnelFor has a router make a tunnel, or lead the one that the host has there elsewhere. One to another router
// ends.
func (n *network) tunnelFor(m *apiv1.TunnelRequest) (*tunnel, *tunnelWait, error) {
	r := n.routers[m.Router]
	if r == nil || r.session == nil {
		return nil, nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("router %.80q is not connected", m.Router))
	}
	if !slices.ContainsFunc(r.offers, func(o *apiv1.TunnelOffer) bool { return o.Kind == m.Kind }) {
		return nil, nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("router %s does not offer tunnels of kind %s", m.Router, m.Kind))
	}
	t := n.tunnelOf(m.Host, m.Uplink)
	if t != nil && (t.router != m.Router || t.Kind != m.Kind) {
		n.dropTunnel(t)
		t = nil
	}
	if t == nil {
		if err := n.roomForTunnel(m); err != nil {
			return nil, nil, connect.NewError(connect.CodeResourceExhausted, err)
		}
		t = &tunnel{router: m.Router, Tunnel: &apiv1.Tunnel{Number: n.freeTunnel(), Host: m.Host, Uplink: m.Uplink, Kind: m.Kind}}
		n.tunnels.all[t.Number] = t
		n.event("tunnel.up", m.Host, "host has a tunnel to "+m.Router, "router", m.Router, "kind", m.Kind, "port", t.port())
	}
	t.Tunnel = &apiv1.Tunnel{Number: t.Number, Host: t.Host, Uplink: t.Uplink, Kind: t.Kind, Address: m.Address, PublicKey: m.PublicKey, Mtu: m.Mtu}
	t.used, t.made, t.signed = time.Now(), nil, m.SignedUnix
	n.orderTunnels(r)
	w := &tunnelWait{router: r.Name, serial: r.tunnelSerial, done: make(chan struct{})}
	n.tunnels.waits[w] = struct{}{}
	return t, w, nil
}

func (n *network) roomForTunnel(m *apiv1.TunnelRequest) error {
	ofRouter, ofHost := 0, 0
	for _, t := range n.tunnels.all {
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
	if ofHost >= maxHostTunnels {
		return fmt.Errorf("host %s has %d tunnels already", m.Host, maxHostTunnels)
	}
	return nil
}

// freeTunnel is a number of 24 bits. It is random: who does not know a VXLAN's number cannot send into it blindly.
func (n *network) freeTunnel() uint32 {
	for {
		number := 1 + rand.Uint32N(1<<24-2)
		if _, taken := n.tunnels.all[number]; !taken {
			return number
		}
	}
}

// dropTunnel forgets a tunnel; its router hears of that by the next order.
func (n *network) dropTunnel(t *tunnel) {
	delete(n.tunnels.all, t.Number)
	n.event("tunnel.down", t.Host, "host has no tunnel to "+t.router+" any more", "router", t.router, "kind", t.Kind, "port", t.port())
	if r := n.routers[t.router]; r != nil && r.session != nil {
		n.orderTunnels(r)
	}
}

// forsake takes a host's tunnel away, or all of them.
func (n *network) forsake(host, uplink string) {
	for _, t := range n.tunnels.all {
		if t.Host == host && (uplink == "" || t.Uplink == uplink) {
			n.dropTunnel(t)
		}
	}
}

// orderTunnels tells a router all that it is to have.
func (n *network) orderTunnels(r *router) {
	r.tunnelSerial++
	order := &apiv1.Tunnels{Serial: r.tunnelSerial}
	for _, t := range n.tunnels.all {
		if t.router == r.Name {
			order.Tunnels = append(order.Tunnels, t.Tunnel)
		}
	}
	slices.SortFunc(order.Tunnels, func(a, b *apiv1.Tunnel) int { return cmp.Compare(a.Number, b.Number) })
	r.session.send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Tunnels{Tunnels: order}})
}

// offeredTunnels takes what a router that joins offers and has. Tunnels that it has and nobody knows of are of a
// controller before this one; a number that is another router's by now is not.
func (n *network) offeredTunnels(r *router, j *apiv1.RouterJoin) {
	r.offers = nil
	for _, o := range j.Offers[:min(len(j.Offers), maxOffers)] {
		_, err := netip.ParseAddrPort(o.Address)
		if err == nil && (o.Kind == tunnelVXLAN || o.Kind == tunnelWireGuard && len(o.PublicKey) == 32) {
			r.offers = append(r.offers, o)
		}
	}
	for _, has := range j.Tunnels[:min(len(j.Tunnels), maxTunnels)] {
		m := &apiv1.TunnelRequest{Host: has.Host, Uplink: has.Uplink, Router: r.Name, Kind: has.Kind, Address: has.Address, PublicKey: has.PublicKey, Mtu: has.Mtu}
		if n.tunnels.all[has.Number] == nil && n.tunnelOf(has.Host, has.Uplink) == nil && checkTunnel(m) == nil {
			n.tunnels.all[has.Number] = &tunnel{router: r.Name, Tunnel: has, used: time.Now()}
		}
	}
	if len(r.offers)+len(j.Tunnels) > 0 {
		n.orderTunnels(r)
	}
}

// tunnelsMade takes a router's word on what it was told.
func (n *network) tunnelsMade(r *router, m *apiv1.TunnelsMade) {
	for _, made := range m.Tunnels {
		if t := n.tunnels.all[made.Number]; t != nil && t.router == r.Name {
			made.Error = shortened(made.Error)
			t.made = made
		}
	}
	for w := range n.tunnels.waits {
		if w.router == r.Name && w.serial <= m.Serial {
			delete(n.tunnels.waits, w)
			close(w.done)
		}
	}
}

// sweepTunnels ends, again and again, tunnels that no host has been attached by for a while.
func (n *network) sweepTunnels() {
	attached := map[string]bool{}
	for _, at := range n.places {
		attached[at.Router+" "+at.Port] = true
	}
	now := time.Now()
	for _, t := range n.tunnels.all {
		switch {
		case attached[t.router+" "+t.port()]:
			t.used = now
		case now.Sub(t.used) > tunnelUnused:
			n.dropTunnel(t)
		}
	}
	n.loop.after(tunnelSweep, n.sweepTunnels)
}
