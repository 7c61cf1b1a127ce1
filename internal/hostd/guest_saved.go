package hostd

import (
	"net/netip"
	"time"
)

// A guestRecord is what a restarted daemon needs to know of a guest.
type guestRecord struct {
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

const guestsFile = "guests.json"

type savedGuests struct {
	BootID string         `json:"boot_id"`
	Netns  uint64         `json:"netns"`
	Last   uint16         `json:"last"`
	Guests []*guestRecord `json:"guests"`
}

// newGuests reads those of a daemon before this one, in this namespace since this boot. Their sockets are waited
// for before anything that the edge lets in is withdrawn.
func newGuests(d *daemon) *guests {
	g := &guests{d: d, up: map[uint16]*guest{}, called: map[uint16]string{}}
	var saved savedGuests
	if d.store.read(guestsFile, &saved) && saved.BootID == d.bootID && saved.Netns == d.netns {
		g.wanted, g.last = saved.Guests, saved.Last
	}
	for _, r := range g.wanted {
		d.serving.awaited[r.Number] = true
	}
	return g
}

func (g *guests) save() {
	err := g.d.store.writeJSON(guestsFile, savedGuests{g.d.bootID, g.d.netns, g.last, g.wanted})
	if err != nil {
		g.d.log.Warn("a restart will not know the guests", "error", err)
	}
}
