package hostd

import (
	"errors"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/host/checks"
	"scaffold.dev/scaffold/internal/host/guests"
	"scaffold.dev/scaffold/internal/host/registry"
	"scaffold.dev/scaffold/internal/host/routing"
	"scaffold.dev/scaffold/sid"
)

// newRegistry is what this host serves, and what that needs of the other sides.
func newRegistry(d *daemon) *registry.Registry {
	return registry.New(d.ctx, registry.Config{
		Log: d.log, Post: d.post, Call: d.call, Servers: d.cfg.servers, Allowed: d.cfg.allowed, Mark: routing.LocalMark,
		Place: d.places, Namespaces: spaces{d}, Controller: reports{d}, Permits: d.permits, Flows: carried{d},
	})
}

// watchSockets begins to watch the namespace's sockets, those that are there first.
func (d *daemon) watchSockets(space sid.Space) error {
	if d.socks != nil {
		return nil
	}
	socks, err := d.hooks.Join(space.Services)
	if err != nil {
		return err
	}
	d.socks, d.readers = socks, make(chan struct{})
	go d.serving.Watch(0, socks, d.readers)
	return nil
}

// spaces are the namespaces in which programs serve.
type spaces struct{ d *daemon }

func (s spaces) Guest(number uint16) (registry.Guest, bool) {
	name, address, ok := s.d.guests.Serving(number)
	return registry.Guest{Name: name, Address: address}, ok
}

// At is the address and the namespace of a guest, or of the host itself.
func (s spaces) At(number uint16) (netip.Addr, checks.Namespace) {
	if identity, ns, ok := s.d.guests.At(number); ok {
		return identity, ns
	}
	return s.d.places.Home().Space.Identity(s.d.identity), guests.Namespace{}
}

// Device is that of the VRF in which the programs of the host are: a guest's are in its namespace.
func (s spaces) Device(number uint16) string {
	if number != 0 {
		return ""
	}
	return s.d.places.VRF()
}

func (s spaces) Watched() (all []*sockets.Host) {
	if s.d.socks != nil {
		all = append(all, s.d.socks)
	}
	return append(all, s.d.guests.Watched()...)
}

func (s spaces) In(number uint16, proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) error {
	if number != 0 {
		return s.d.guests.In(number, proto, states, port, f)
	}
	return s.d.diag.Each(proto, states, port, f)
}

func (s spaces) Each(proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) error {
	return errors.Join(s.d.diag.Each(proto, states, port, f), s.d.guests.Each(proto, states, port, f))
}

// reports hand the controller what the registry says.
type reports struct{ d *daemon }

func (r reports) Connected() bool          { return r.d.control.Connected() }
func (r reports) Send(o *apiv1.HostReport) { r.d.control.Send(o) }

// carried are the flows, which the registry tells what becomes of their programs.
type carried struct{ d *daemon }

func (c carried) Orphaned(t sid.Triple, cookie uint64)                { c.d.sessions.Orphaned(t, cookie) }
func (c carried) CanResume(t sid.Triple) bool                         { return c.d.sessions.CanResume(t) }
func (c carried) Learn(id sid.ServiceID, p *apiv1.Policy)             { c.d.sessions.Learn(id, p) }
func (c carried) Bar(id sid.ServiceID, barred func(sid.Locator) bool) { c.d.sessions.Bar(id, barred) }
