package hostd

import (
	"net"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/host/guests"
	"scaffold.dev/scaffold/sid"
)

// newGuests are the namespaces behind this host's edge, and what they need of the other sides.
func newGuests(d *daemon) *guests.Guests {
	return guests.New(d.ctx, guests.Config{
		Log: d.log, Name: d.cfg.Name, Identity: d.identity, BootID: d.bootID, Netns: d.netns, Files: d.store, Hooks: d.hooks,
		Post: d.post, Later: d.later, WaitFor: d.waitFor, Registry: d.serving, Host: reach{d}, Flows: held{d},
		Answer: func(udp net.PacketConn, tcp net.Listener) (end func()) { return d.names.At(udp, tcp) },
	})
}

// reach tells guests what they are reached by.
type reach struct{ d *daemon }

func (r reach) Edge() *host.Edge { return r.d.edge }

func (r reach) Space() (space sid.Space, in bool) {
	if r.d.places.Home() == nil {
		return space, false
	}
	return r.d.places.Home().Space, true
}

func (r reach) Uplink() (index int, ok bool) {
	if p := r.d.places.First(); p != nil {
		return p.Index, true
	}
	return 0, false
}

// MTU is what every uplink takes.
func (r reach) MTU() int {
	least := 0
	for _, p := range r.d.places.All() {
		if u := r.d.uplinks.Named(p.Uplink); u != nil && u.MTU > 0 && (least == 0 || u.MTU < least) {
			least = u.MTU
		}
	}
	return least
}

// held are the flows, which guests tell whose sockets hold them.
type held struct{ d *daemon }

func (h held) Host(guest uint16, k *kick.Kicker)      { h.d.sessions.Host(guest, k) }
func (h held) Unhost(guest uint16)                    { h.d.sessions.Unhost(guest) }
func (h held) Evict(gone func(guest uint16) bool)     { h.d.sessions.Evict(gone) }
func (h held) Watch(guest uint16, diag *sockets.Diag) { h.d.flows.Watch(guest, diag) }
func (h held) Unwatch(guest uint16)                   { h.d.flows.Unwatch(guest) }
