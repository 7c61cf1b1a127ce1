package mobility

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// A Config is what sessions are given besides the edge, which comes later and may be replaced.
type Config struct {
	Log        *slog.Logger
	Post       func(func())        // hands work to the loop
	Waiting    func() int          // how much was posted that the loop has not done yet
	Flows      func() uint32       // of the host, when they were last counted
	Journal    func(session.Entry) // nil without one
	Places     Places
	Serving    Serving
	Controller Controller
	Meter      Meter
}

// Places are where the host is.
type Places interface {
	Preferred() (l sid.Locator, linked bool) // that new flows leave by; not linked: no link is up
	StandsAt(l sid.Locator) bool             // by a link that is up
	Has(l sid.Locator) bool                  // by any link
}

// Serving is what the host serves.
type Serving interface {
	Name(id sid.ServiceID) string
	Forbids(id sid.ServiceID, at sid.Locator) bool // a client at the locator may not connect
	// Each tells of all triples. may: it is known who may connect, and this host may serve it.
	Each(f func(t sid.Triple, may bool))
	Changes() int // of what Each tells, ever
	Flush()       // tells the controller now
	Retell()      // has the controller told what can resume, which has changed
	// Connected are the peers of datagram sockets at a port, without that of the socket with the cookie.
	Connected(port uint16, cookie uint64) (map[netip.AddrPort]bool, error)
}

// A Controller answers questions, outside the loop.
type Controller interface {
	Others(ctx context.Context, q Question) (there bool, err error)
	AskPolicy(ctx context.Context, service netip.Addr) // Learn is told, before it returns; nobody, where there is no answer
	Report(kind, text string, attrs map[string]string) // for the network's history
}

// A Meter counts what happened to flows.
type Meter interface {
	Count(kind string, flows int)
	Moved(took time.Duration)
}
