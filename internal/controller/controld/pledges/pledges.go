// Package pledges remembers which certificates for locators a network has given, so that no two hosts have valid ones for
// the same (docs/protocol.md §7).
package pledges

import (
	"maps"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/sid"
)

// NewcomerFor is how long the first certificates of a host for a locator are valid. The longer it is there, the longer
// they last, up to the CertifyFor of the controller: hosts that stay can move their flows over a day without a controller, and one
// that only passed by keeps its locator from others for an hour, of which a router has 255.
const NewcomerFor = time.Hour

// Pledges are the certificates that the network has given: until each has ended, its locator is given to no other host,
// who could be spoken for by it (docs/protocol.md §7). They outlive the quarantine, hosts' names and restarts.
type Pledges struct {
	of  map[sid.Locator]store.Pledge
	now func() time.Time
}

// again is the share of its validity after which a certificate is replaced: well before half.
const again = 0.4

// New makes those of a network that has given none, by a clock.
func New(now func() time.Time) *Pledges { return &Pledges{map[sid.Locator]store.Pledge{}, now} }

// Now is the time by which certificates are given.
func (p *Pledges) Now() time.Time { return p.now() }

// All are those that there are.
func (p *Pledges) All() []store.Pledge { return slices.Collect(maps.Values(p.of)) }

// Holder is the host that may hold a valid certificate for a locator, "" where nobody does.
func (p *Pledges) Holder(l sid.Locator) string {
	if x, ok := p.of[l]; ok && p.now().Unix() < x.Until {
		return x.Host
	}
	return ""
}

// Left is how long the host may still hold a valid certificate for a locator.
func (p *Pledges) Left(l sid.Locator, host string) time.Duration {
	x := p.of[l]
	if x.Host != host {
		return 0
	}
	return max(0, time.Unix(x.Until, 0).Sub(p.now()))
}

// Give notes a certificate that is about to be given, and says for how long it is to be valid. Whose clock is
// JoinSkew late takes it for that much longer.
func (p *Pledges) Give(l sid.Locator, host string, longest time.Duration) (store.Pledge, time.Duration) {
	now := p.now()
	x := p.of[l]
	if x.Host != host {
		x = store.Pledge{Locator: l, Host: host, Since: now.Unix()}
	}
	valid := min(longest, max(NewcomerFor, now.Sub(time.Unix(x.Since, 0))))
	x.Issued, x.Valid = now.Unix(), int64(valid.Seconds())
	x.Until = max(x.Until, now.Add(valid+api.JoinSkew).Unix()+1)
	p.of[l] = x
	return x, valid
}

// Due reports whether a certificate is to be replaced: well before half of its time.
func (p *Pledges) Due(l sid.Locator) bool {
	x := p.of[l]
	return float64(p.now().Unix()-x.Issued) >= again*float64(x.Valid)
}

// Rename makes what a host was given somebody else's: a machine of the same name is another host.
func (p *Pledges) Rename(from, to string) (changed []store.Pledge) {
	for l, x := range p.of {
		if x.Host == from {
			x.Host = to
			p.of[l] = x
			changed = append(changed, x)
		}
	}
	return changed
}

// Restore reads what was pledged before this controller led, and says what is to be saved. A version without pledges gave
// certificates for the whole time to everybody who is known or left lately: longest; 0 in an open network, which gives none.
func (p *Pledges) Restore(state store.State, longest time.Duration) (changed []store.Pledge) {
	now := p.now()
	begun := false
	for _, x := range state.Pledges {
		begun = begun || x.Locator == 0
		if x.Locator != 0 && now.Unix() < x.Until {
			p.of[x.Locator] = x
		}
	}
	if begun || longest == 0 {
		return nil
	}
	assume := func(l sid.Locator, host string) {
		if l == 0 || host == "" {
			return
		}
		x := store.Pledge{Locator: l, Host: host, Since: now.Add(-longest).Unix(), Until: now.Add(longest + api.JoinSkew).Unix()}
		p.of[l] = x
		changed = append(changed, x)
	}
	for _, h := range state.Hosts {
		for _, at := range append([]store.Place{h.Place}, h.Others...) {
			assume(at.Locator, h.Name)
		}
	}
	for _, q := range state.Quarantines {
		assume(q.Locator, q.Host)
	}
	return append(changed, store.Pledge{}) // from now on there are records
}
