package hostd

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
	"scaffold.dev/scaffold/internal/obs"
	"scaffold.dev/scaffold/internal/versions"
	"scaffold.dev/scaffold/sid"
)

// A bid is an attachment that the controller was asked to give a locator for.
type bid struct {
	serial uint32
	uplink string
	index  int
	router netip.Addr
	*apiv1.Attachment
}

// bid asks for the uplink.
func (d *daemon) bid(u *uplink) *bid {
	d.serial++
	return &bid{serial: d.serial, uplink: u.name, index: u.index, router: u.router, Attachment: u.attachment()}
}

// attach is how a bid is asked: with the locator that the uplink has or had last.
func (d *daemon) attach(b *bid) *apiv1.Attach {
	return &apiv1.Attach{Serial: b.serial, Attachment: b.Attachment, Locator: d.wish(b.uplink)}
}

func (d *daemon) wish(uplink string) string {
	if p := d.placeOn(uplink); p != nil {
		return p.Locator.String()
	}
	for i := len(d.former) - 1; i >= 0; i-- {
		if d.former[i].Uplink == uplink {
			return d.former[i].Locator.String()
		}
	}
	return ""
}

// join says who and where this host is: all its uplinks that lead to a router, the preferred one first.
// It runs in the control goroutine.
func (d *daemon) join(ctx context.Context) (*apiv1.Join, []*bid) {
	j := &apiv1.Join{
		Name: d.cfg.Name, BootId: d.bootID, Version: obs.Version(), Speaks: speaks(), Succeeds: true,
		Identity: d.identity, Netns: strconv.FormatUint(d.netns, 10),
	}
	var bids []*bid
	d.call(ctx, func() {
		for _, u := range d.uplinks {
			if u.attachment() != nil {
				bids = append(bids, d.bid(u))
			}
		}
		for i, b := range bids {
			if a := d.attach(b); i == 0 {
				j.Attachment, j.Locator = a.Attachment, a.Locator
			} else {
				j.Others = append(j.Others, a)
			}
		}
		if j.Locator == "" && len(d.places) > 0 { // the first of its uplinks is new: what it had is redirected there
			j.Locator = d.places[0].Locator.String()
		}
	})
	api.SignJoin(j, d.keys.now(), time.Now())
	return j, bids
}

// joined takes the places that the controller gave and begins to report.
func (d *daemon) joined(j *apiv1.Joined, bids []*bid, out chan *apiv1.HostReport) {
	h, places, err := d.placesOf(j, bids)
	if err == nil {
		err = d.settle(h, places)
	}
	if err != nil {
		d.log.Error("cannot take the place that the controller gave", "locator", j.Locator, "error", err)
		close(out)
		return
	}
	d.renewed(j.Credential)
	d.revoked(j.Revoked, true)
	if j.Trust == "open" {
		d.log.Warn("the network is open: anybody who reaches it may join it (trust: open)", "network", j.Network)
	}
	for _, p := range places {
		d.log.Info("joined the network", "network", j.Network, "locator", p.Locator, "uplink", p.Uplink, "router", p.At.Router, "port", p.At.Port)
	}
	d.control.out, d.told, d.challenge = out, places[0].Locator, j.Challenge
	d.serving.newSession()
	d.attend()
}

// placesOf reads Joined: the answers to all bids.
func (d *daemon) placesOf(j *apiv1.Joined, bids []*bid) (*home, []place, error) {
	space, err := spaceOf(j.Space)
	if err != nil {
		return nil, nil, err
	}
	h := &home{BootID: d.bootID, Netns: d.netns, Network: j.Network, Domain: j.Domain, Space: space, Routers: j.Routers, Nonlocal: d.nonlocal}
	if j.Trust == "keys" {
		if len(j.NetworkKey) != ed25519.PublicKeySize {
			return nil, nil, fmt.Errorf("the network's key has %d bytes, want %d", len(j.NetworkKey), ed25519.PublicKeySize)
		}
		h.NetworkKey, h.NetworkKeys, h.Succession = j.NetworkKey, j.NetworkKeys, j.Succession
	}
	first, err := d.placeOf(h, bids[0], j.Locator, j.Certificate)
	if err != nil {
		return nil, nil, err
	}
	places := []place{first}
	for _, a := range j.Others {
		if p, ok := d.placeOfOther(h, bids[1:], a); ok {
			places = append(places, p)
		}
	}
	return h, d.inOrder(places), nil
}

// placeOfOther reads the answer to one of the bids. A refusal is tried again by attend.
func (d *daemon) placeOfOther(h *home, bids []*bid, a *apiv1.Attached) (place, bool) {
	for _, b := range bids {
		if b.serial == a.Serial {
			return d.answered(h, b, a)
		}
	}
	return place{}, false
}

func (d *daemon) answered(h *home, b *bid, a *apiv1.Attached) (place, bool) {
	err := errors.New(a.Refused)
	if a.Refused == "" {
		var p place
		if p, err = d.placeOf(h, b, a.Locator, a.Certificate); err == nil {
			return p, true
		}
	}
	d.refusedPlace(b, err, a.Retry)
	return place{}, false
}

// placeOf is the place that the controller gave for a bid.
func (d *daemon) placeOf(h *home, b *bid, locator string, certificate []byte) (place, error) {
	l, err := netip.ParsePrefix(locator)
	if err != nil {
		return place{}, fmt.Errorf("locator %q: want a prefix such as fd5d:0:1:101::/64", locator)
	}
	if l.Bits() != sid.LocatorBits || !h.Space.Owns(sid.LocatorOf(l.Addr())) {
		return place{}, fmt.Errorf("locator %v: want a /%d in %v", l, sid.LocatorBits, h.Space.AS)
	}
	p := place{Uplink: b.uplink, Index: b.index, Locator: sid.LocatorOf(l.Addr()), Router: b.router, At: b.Attachment, Certificate: certificate, Since: time.Now()}
	if err := h.checkCertificate(p.Locator, certificate); err != nil {
		d.log.Warn("no flow can move to or from a locator without a certificate", "locator", p.Locator, "error", err)
		p.Certificate = nil
	}
	if old := d.placeWith(p.Locator); old != nil {
		p.Since = old.Since
	}
	if u := d.uplink(b.uplink); u.index != b.index || u.attachment() == nil {
		p.link = lost // meanwhile
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
