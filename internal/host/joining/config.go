package joining

import (
	"context"
	"crypto/ed25519"
	"log/slog"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/host/places"
	"scaffold.dev/scaffold/internal/host/uplinks"
	"scaffold.dev/scaffold/sid"
)

// A Config is what joining needs of others.
type Config struct {
	Log        *slog.Logger
	Name       string // of the host
	BootID     string
	Netns      uint64 // inode of its namespace
	Identity   uint64 // low half of its own address
	Keys       interface{ Now() ed25519.PrivateKey }
	Switches   func() (nonlocal, earlyDemux string) // as they were before the host; a restart gives them back
	First      string                               // controller to go to, where Direct
	Direct     bool                                 // the controllers are known: no router leads to them
	Post       func(func())
	Call       func(context.Context, func()) bool
	Controller Controller
	Places     *places.Places
	Uplinks    *uplinks.Uplinks
}

// A Controller is the session with the one that leads, and the way to it.
type Controller interface {
	GoesBy(endpoint string) bool
	Dial(endpoint string)
	Drop() // there is no way to it
	Connected() bool
	Send(r *apiv1.HostReport) bool
}

// A Joining is the host's side of being given places. The loop owns it; only Join is for another goroutine.
type Joining struct {
	Config
	bids   map[string]*Bid // that the controller has not answered, or refused, by uplink
	serial uint32          // of the last bid
	told   sid.Locator     // that others are sent to
	going  string          // the controller that is gone to
}

// New asks for nothing yet.
func New(cfg Config) *Joining {
	return &Joining{Config: cfg, bids: map[string]*Bid{}, going: cfg.First}
}
