package places

import (
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A Home is the network that the host is in, as Joined told it.
type Home struct {
	BootID     string    `json:"boot_id"`
	Netns      uint64    `json:"netns"` // inode
	Network    string    `json:"network"`
	Domain     string    `json:"domain"`
	Space      sid.Space `json:"space"`
	Routers    []string  `json:"routers"`
	Nonlocal   string    `json:"nonlocal_bind"`             // the sysctl before we came
	EarlyDemux string    `json:"udp_early_demux,omitempty"` // likewise, beside a router
	NetworkKey []byte    `json:"network_key,omitempty"`     // Ed25519, of certificates; nil in an open network
	Revoked    [][]byte  `json:"revoked,omitempty"`         // keys that the network certifies no more

	NetworkKeys [][]byte `json:"network_keys,omitempty"` // all of them, while there are several
	Succession  []byte   `json:"succession,omitempty"`   // of a host that has had another key
}

// A Place is one attachment of the host: what the network gave it for an uplink that leads to a router.
type Place struct {
	Uplink      string            `json:"uplink"`
	Index       int               `json:"index"` // of the interface
	Locator     sid.Locator       `json:"locator"`
	Router      netip.Addr        `json:"router"`       // link-local, without zone
	At          *apiv1.Attachment `json:"at,omitempty"` // as the network was told
	Certificate []byte            `json:"certificate,omitempty"`
	Since       time.Time         `json:"since"`

	link standing
}

// A standing is how sure a place is.
type standing uint8

const (
	settled  standing = iota // the network confirmed it since the link came up
	presumed                 // the link leads to the same router as before; the network was not heard yet
	lost                     // the link is down: nothing leaves by it
)

// Live reports whether packets leave by the place.
func (p *Place) Live() bool { return p.link != lost }

// SameRouter reports whether the router at the end of the link is the one of before.
func (p *Place) SameRouter(h wire.Hello) bool {
	return p.At != nil && p.At.Router == h.Name && p.At.Port == h.Port
}

// Is reports whether the place is what an uplink would be given: nothing to tell the network.
func (p *Place) Is(index int, router netip.Addr, at *apiv1.Attachment) bool {
	return p.link == settled && p.Index == index && p.Router == router && proto.Equal(p.At, at)
}

// Lose says that the link of the place is down.
func (p *Place) Lose() { p.link = lost }

// A list is the host's places, in the order of preference.
type list []Place

// At is the place with the locator, nil when the host has none.
func (all list) At(l sid.Locator) *Place {
	if i := slices.IndexFunc(all, func(p Place) bool { return p.Locator == l }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Has reports whether the locator is one of the host's now.
func (all list) Has(l sid.Locator) bool {
	return slices.ContainsFunc(all, func(p Place) bool { return p.Locator == l })
}

// StandsAt reports whether the host is at the locator, by a link that is there.
func (all list) StandsAt(l sid.Locator) bool {
	p := all.At(l)
	return p != nil && p.Live()
}

// First is the place that new flows leave by: the first live one in the order of the uplinks.
func (all list) First() *Place {
	for i := range all {
		if all[i].Live() {
			return &all[i]
		}
	}
	return nil
}

// On is the place of an uplink, nil when it has none.
func (all list) On(uplink string) *Place {
	for i := range all {
		if all[i].Uplink == uplink {
			return &all[i]
		}
	}
	return nil
}

// Placed reports whether an uplink has a place that packets leave by.
func (all list) Placed(uplink string) bool {
	at := all.On(uplink)
	return at != nil && at.Live()
}

// Preferred is the locator that new flows have.
func (all list) Preferred() (l sid.Locator, linked bool) {
	if at := all.First(); at != nil {
		return at.Locator, true
	}
	return 0, false
}

// UplinkAt is the name of the uplink with that interface, "" where it is none of the host's now.
func (all list) UplinkAt(index int) string {
	for _, at := range all {
		if at.Index == index {
			return at.Uplink
		}
	}
	return ""
}
