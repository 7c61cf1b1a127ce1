package joining

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/host/places"
	"scaffold.dev/scaffold/internal/host/uplinks"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/sid"
)

// A Bid is an attachment that the controller was asked to give a locator for.
type Bid struct {
	serial uint32
	uplink string
	index  int
	router netip.Addr
	*apiv1.Attachment
}

// bid asks for the uplink.
func (j *Joining) bid(u *uplinks.Uplink) *Bid {
	j.serial++
	return &Bid{serial: j.serial, uplink: u.Name, index: u.Index, router: u.Router, Attachment: u.Attachment()}
}

// attach is how a bid is asked: with the locator that the uplink has or had last.
func (j *Joining) attach(b *Bid) *apiv1.Attach {
	return &apiv1.Attach{Serial: b.serial, Attachment: b.Attachment, Locator: j.wish(b.uplink)}
}

func (j *Joining) wish(uplink string) string {
	if l, ok := j.Places.Last(uplink); ok {
		return l.String()
	}
	return ""
}

// Join says who and where this host is: all its uplinks that lead to a router, the preferred one first.
// It runs in the control goroutine.
func (j *Joining) Join(ctx context.Context) (*apiv1.Join, []*Bid) {
	ask := &apiv1.Join{
		Name: j.Name, BootId: j.BootID, Version: obs.Version(), Speaks: speaks(), Succeeds: true, KnowsCarriers: true,
		Identity: j.Identity, Netns: strconv.FormatUint(j.Netns, 10),
	}
	var bids []*Bid
	j.Call(ctx, func() {
		for _, u := range j.Uplinks.All() {
			if u.Attachment() != nil {
				bids = append(bids, j.bid(u))
			}
		}
		for i, b := range bids {
			if a := j.attach(b); i == 0 {
				ask.Attachment, ask.Locator = a.Attachment, a.Locator
			} else {
				ask.Others = append(ask.Others, a)
			}
		}
		if all := j.Places.All(); ask.Locator == "" && len(all) > 0 { // the first of its uplinks is new: what it had is redirected there
			ask.Locator = all[0].Locator.String()
		}
	})
	api.SignJoin(ask, j.Keys.Now(), time.Now())
	return ask, bids
}

// Joined takes the places that the controller gave.
func (j *Joining) Joined(told *apiv1.Joined, bids []*Bid) error {
	h, places, err := j.placesOf(told, bids)
	if err == nil {
		err = j.Places.Settle(h, places)
	}
	if err != nil {
		return err
	}
	for _, p := range places {
		j.Log.Info("joined the network", "network", told.Network, "locator", p.Locator, "uplink", p.Uplink, "router", p.At.Router, "port", p.At.Port)
		j.Uplinks.Readmit(p.At.Router) // somebody has let it in again
	}
	j.told = places[0].Locator
	return nil
}

// placesOf reads Joined: the answers to all bids.
func (j *Joining) placesOf(told *apiv1.Joined, bids []*Bid) (*places.Home, []places.Place, error) {
	space, err := spaceOf(told.Space)
	if err != nil {
		return nil, nil, err
	}
	nonlocal, demux := j.Switches()
	h := &places.Home{BootID: j.BootID, Netns: j.Netns, Network: told.Network, Domain: told.Domain, Space: space, Routers: told.Routers, Nonlocal: nonlocal, EarlyDemux: demux}
	if told.Trust == "keys" {
		if len(told.NetworkKey) != ed25519.PublicKeySize {
			return nil, nil, fmt.Errorf("the network's key has %d bytes, want %d", len(told.NetworkKey), ed25519.PublicKeySize)
		}
		h.NetworkKey, h.NetworkKeys, h.Succession = told.NetworkKey, told.NetworkKeys, told.Succession
	}
	first, err := j.placeOf(h, bids[0], told.Locator, told.Certificate)
	if err != nil {
		return nil, nil, err
	}
	all := []places.Place{first}
	for _, a := range told.Others {
		if p, ok := j.placeOfOther(h, bids[1:], a); ok {
			all = append(all, p)
		}
	}
	return h, j.Places.InOrder(all), nil
}

// placeOfOther reads the answer to one of the bids. A refusal is tried again by attend.
func (j *Joining) placeOfOther(h *places.Home, bids []*Bid, a *apiv1.Attached) (places.Place, bool) {
	for _, b := range bids {
		if b.serial == a.Serial {
			return j.answered(h, b, a)
		}
	}
	return places.Place{}, false
}

func (j *Joining) answered(h *places.Home, b *Bid, a *apiv1.Attached) (places.Place, bool) {
	err := errors.New(a.Refused)
	if a.Refused == "" {
		var p places.Place
		if p, err = j.placeOf(h, b, a.Locator, a.Certificate); err == nil {
			return p, true
		}
	}
	j.refusedPlace(b, err, a.Retry)
	j.Uplinks.NoRouter(a.NoRouter)
	return places.Place{}, false
}

// placeOf is the place that the controller gave for a bid.
func (j *Joining) placeOf(h *places.Home, b *Bid, locator string, certificate []byte) (places.Place, error) {
	l, err := netip.ParsePrefix(locator)
	if err != nil {
		return places.Place{}, fmt.Errorf("locator %q: want a prefix such as fd5d:0:1:101::/64", locator)
	}
	if l.Bits() != sid.LocatorBits || !h.Space.Owns(sid.LocatorOf(l.Addr())) {
		return places.Place{}, fmt.Errorf("locator %v: want a /%d in %v", l, sid.LocatorBits, h.Space.AS)
	}
	p := places.Place{Uplink: b.uplink, Index: b.index, Locator: sid.LocatorOf(l.Addr()), Router: b.router, At: b.Attachment, Certificate: certificate, Since: time.Now()}
	if err := h.CheckCertificate(p.Locator, certificate); err != nil {
		j.Log.Warn("no flow can move to or from a locator without a certificate", "locator", p.Locator, "error", err)
		p.Certificate = nil
	}
	if old := j.Places.At(p.Locator); old != nil {
		p.Since = old.Since
	}
	if u := j.Uplinks.Named(b.uplink); u.Index != b.index || u.Attachment() == nil {
		p.Lose() // meanwhile
	}
	return p, nil
}

// spaceOf reads the address plan; an empty one is the default.
func spaceOf(s *apiv1.Space) (sid.Space, error) {
	if s == nil || s.Services == "" && s.As == "" && s.Identities == "" {
		return sid.DefaultSpace(), nil
	}
	var space sid.Space
	var errs [3]error
	space.Services, errs[0] = netip.ParsePrefix(s.Services)
	space.AS, errs[1] = netip.ParsePrefix(s.As)
	space.Identities, errs[2] = netip.ParsePrefix(s.Identities)
	if err := errors.Join(errs[:]...); err != nil {
		return space, fmt.Errorf("the network's address plan: %w", err)
	}
	return space, space.Validate()
}

// speaks tells the controller which versions of the agent protocol this daemon has (docs/protocol.md §8).
func speaks() *apiv1.Versions {
	r := versions.Agent()
	return &apiv1.Versions{From: r.From, To: r.To}
}
