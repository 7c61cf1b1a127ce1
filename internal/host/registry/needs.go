package registry

import (
	"context"
	"log/slog"
	"net/netip"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/host/checks"
	"scaffold.dev/scaffold/sid"
)

// A Config is what a registry is given besides the edge, which comes later and may be replaced.
type Config struct {
	Log     *slog.Logger
	Post    func(func())                             // hands work to the loop
	Call    func(ctx context.Context, f func()) bool // and waits until it is done; false: the daemon is leaving
	Servers Servers                                  // who may serve
	Allowed checks.Allowed                           // commands of ready checks
	Mark    int                                      // of the daemon's own packets to local sockets

	Place      Place
	Namespaces Namespaces
	Controller Controller
	Permits    Permits
	Flows      Flows
}

// An Edge lets first packets in. It is package bpf/host's.
type Edge interface {
	Space() sid.Space
	Adopted() bool // it is that of a daemon before this one
	Admitted() ([]sid.Triple, error)
	Admit(t sid.Triple) error          // until it is withdrawn
	AdmitListening(t sid.Triple) error // while a socket of one that takes its packets listens
	Withdraw(t sid.Triple) error
	Judge(t sid.Triple, j host.Judgement) error
	SweepJudgements(keep func(sid.Triple) bool) error
	SetOwners(t sid.Triple, guests []uint16) error
	SweepOwners(keep func(sid.Triple) bool) error
	SetService(id sid.ServiceID, p host.Policy) error
	Access(id sid.ServiceID) resolve.AccessList
	SetAccess(id sid.ServiceID, g resolve.AccessList) error
}

// A Place is where the host is.
type Place interface {
	LeadsHere(device int) bool           // what arrives for services comes by the interface
	GivesToUnbound(proto sid.Proto) bool // sockets that are bound to no device get it
	VRF() string                         // device of the VRF that the uplinks are in, "" where they are in none
}

// A Guest is a namespace whose edge this host is.
type Guest struct {
	Name    string
	Address netip.Addr // of the service that its wildcard listeners serve
}

// Namespaces are the host's own, 0, and those of its guests.
type Namespaces interface {
	Guest(number uint16) (g Guest, up bool)
	At(number uint16) (identity netip.Addr, in checks.Namespace)
	Device(number uint16) string // of the VRF in which its programs are, "" where there is none
	Watched() []*sockets.Host    // those whose sockets are read
	// Each asks for sockets of all, In for those of one.
	Each(proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) error
	In(number uint16, proto sid.Proto, states uint32, port uint16, f func(sockets.DiagSocket)) error
}

// A Controller is told what the host serves.
type Controller interface {
	Connected() bool
	Send(r *apiv1.HostReport)
}

// Permits are added to registrations of services with a key.
type Permits interface {
	Show(g *apiv1.Registration, t sid.Triple)
}

// Flows hear what becomes of what serves them.
type Flows interface {
	Orphaned(t sid.Triple, cookie uint64) // the last datagram socket was closed
	CanResume(t sid.Triple) bool          // its program goes on with flows that began elsewhere
	Learn(id sid.ServiceID, p *apiv1.Policy)
	Bar(id sid.ServiceID, barred func(sid.Locator) bool) // those of clients that may not connect any more
}
