package hostd

import (
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A home is the network that the host is in, as Joined told it.
type home struct {
	BootID     string    `json:"boot_id"`
	Netns      uint64    `json:"netns"` // inode
	Network    string    `json:"network"`
	Domain     string    `json:"domain"`
	Space      sid.Space `json:"space"`
	Routers    []string  `json:"routers"`
	Nonlocal   string    `json:"nonlocal_bind"`         // the sysctl before we came
	NetworkKey []byte    `json:"network_key,omitempty"` // Ed25519, of certificates; nil in an open network
	Revoked    [][]byte  `json:"revoked,omitempty"`     // keys that the network certifies no more

	NetworkKeys [][]byte `json:"network_keys,omitempty"` // all of them, while there are several
	Succession  []byte   `json:"succession,omitempty"`   // of a host that has had another key
}

// A place is one attachment of the host: what the network gave it for an uplink that leads to a router.
type place struct {
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

// live reports whether packets leave by the place.
func (p *place) live() bool { return p.link != lost }

// sameRouter reports whether the router at the end of the link is the one of before.
func (p *place) sameRouter(h wire.Hello) bool {
	return p.At != nil && p.At.Router == h.Name && p.At.Port == h.Port
}

// is reports whether the place is what the uplink would be given: nothing to tell the network.
func (p *place) is(u *uplink) bool {
	return p.link == settled && p.Index == u.index && p.Router == u.router && proto.Equal(p.At, u.attachment())
}

// standsAt reports whether the host is at the locator, by a link that is there.
func (d *daemon) standsAt(l sid.Locator) bool {
	p := d.placeWith(l)
	return p != nil && p.live()
}

// preferred is the place that new flows leave by: the first live one in the order of the uplinks.
func (d *daemon) preferred() *place { return firstLive(d.places) }

func firstLive(places []place) *place {
	for i := range places {
		if places[i].live() {
			return &places[i]
		}
	}
	return nil
}

// placeOn is the place of an uplink, nil when it has none.
func (d *daemon) placeOn(uplink string) *place {
	for i := range d.places {
		if d.places[i].Uplink == uplink {
			return &d.places[i]
		}
	}
	return nil
}

// placesWith is the list of places with this one in the stead of that of the same uplink.
func (d *daemon) placesWith(p place) []place {
	list := slices.DeleteFunc(slices.Clone(d.places), func(o place) bool { return o.Uplink == p.Uplink })
	return d.inOrder(append(list, p))
}

// inOrder sorts places by preference, which is the order of --uplink.
func (d *daemon) inOrder(list []place) []place {
	slices.SortStableFunc(list, func(a, b place) int { return d.rank(a.Uplink) - d.rank(b.Uplink) })
	return list
}

func (d *daemon) rank(uplink string) int { return slices.Index(d.cfg.Uplinks, uplink) }
