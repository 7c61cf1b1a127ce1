package guests

import (
	"context"
	"net/netip"
	"time"
)

// A record is what a restarted daemon needs to know of a guest.
type record struct {
	Name     string     `json:"name"`
	Number   uint16     `json:"number"`
	Path     string     `json:"path"` // of its network namespace
	Inode    uint64     `json:"inode"`
	Nonlocal string     `json:"nonlocal_bind"`      // the sysctl before us
	Closed   bool       `json:"closed,omitempty"`   // its loopback had no IPv6
	Resolver string     `json:"resolver,omitempty"` // the resolv.conf that we wrote
	Since    time.Time  `json:"since"`
	Serve    string     `json:"serve,omitempty"`  // name that its wildcard listeners serve
	Address  netip.Addr `json:"address,omitzero"` // of that name
}

// file is where they are saved.
const file = "guests.json"

type saved struct {
	BootID string    `json:"boot_id"`
	Netns  uint64    `json:"netns"`
	Last   uint16    `json:"last"`
	Guests []*record `json:"guests"`
}

// New reads those of a daemon before this one, in this namespace since this boot. Their sockets are waited
// for before anything that the edge lets in is withdrawn.
func New(ctx context.Context, cfg Config) *Guests {
	g := &Guests{Config: cfg, ctx: ctx, up: map[uint16]*guest{}, called: map[uint16]string{}}
	var before saved
	if g.Files.Read(file, &before) && before.BootID == g.BootID && before.Netns == g.Netns {
		g.wanted, g.last = before.Guests, before.Last
	}
	for _, r := range g.wanted {
		g.Registry.Await(r.Number)
	}
	return g
}

func (g *Guests) save() {
	err := g.Files.WriteJSON(file, saved{g.BootID, g.Netns, g.last, g.wanted})
	if err != nil {
		g.Log.Warn("a restart will not know the guests", "error", err)
	}
}
