package mrt

import (
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// A Speaker is who says a recording again: the updates are as if it had them from the peers that were recorded.
type Speaker struct {
	AS       uint32     // comes first in each path
	ID       netip.Addr // router identifier, IPv4
	NextHop4 netip.Addr // where routes for IPv4 lead; may be IPv6 (RFC 8950). Invalid: they are left out
	NextHop6 netip.Addr // where routes for IPv6 lead. Invalid: they are left out
}

func (s Speaker) check() error {
	switch {
	case s.AS == 0:
		return fmt.Errorf("a replay needs a number of its autonomous system")
	case !s.ID.Is4() || s.ID.IsUnspecified():
		return fmt.Errorf("router identifier %v of a replay: want an IPv4 address", s.ID)
	case !s.NextHop4.IsValid() && !s.NextHop6.IsValid():
		return fmt.Errorf("a replay needs a next hop, for IPv4 or IPv6: the recorded ones are in another network")
	case s.NextHop6.IsValid() && !s.NextHop6.Is6():
		return fmt.Errorf("next hop %v of a replay for IPv6: want an IPv6 address", s.NextHop6)
	}
	return nil
}

// Attributes that say something inside one system alone, and those by which two octets of a number were
// enlarged, which the recording has done already (RFC 6793).
var inward = map[bgp.BGPAttrType]bool{
	bgp.BGP_ATTR_TYPE_LOCAL_PREF: true, bgp.BGP_ATTR_TYPE_ORIGINATOR_ID: true, bgp.BGP_ATTR_TYPE_CLUSTER_LIST: true,
	bgp.BGP_ATTR_TYPE_AS4_PATH: true, bgp.BGP_ATTR_TYPE_AS4_AGGREGATOR: true,
}

// rewrite makes the messages that say an update again, none where it holds no unicast route that can be said.
func (s Speaker) rewrite(u *bgp.BGPUpdate) (out []*bgp.BGPMessage, err error) {
	shared, reach, withdrawn, err := s.attributes(u)
	if err != nil {
		return nil, err
	}
	if s.NextHop4.IsValid() && len(u.WithdrawnRoutes) != 0 {
		out = append(out, bgp.NewBGPUpdateMessage(u.WithdrawnRoutes, nil, nil))
	}
	for _, w := range withdrawn {
		out = append(out, bgp.NewBGPUpdateMessage(nil, []bgp.PathAttributeInterface{w}, nil))
	}
	if len(u.NLRI) != 0 {
		if r, err := s.reach(bgp.RF_IPv4_UC, u.NLRI); err != nil {
			return nil, err
		} else if r != nil {
			reach = append(reach, r)
		}
	}
	for _, r := range reach {
		out = append(out, bgp.NewBGPUpdateMessage(nil, append([]bgp.PathAttributeInterface{r}, shared...), nil))
	}
	return out, nil
}

// attributes parts what an update says of all its routes from the routes, which get our next hop.
func (s Speaker) attributes(u *bgp.BGPUpdate) (shared, reach, withdrawn []bgp.PathAttributeInterface, err error) {
	for _, a := range u.PathAttributes {
		switch a := a.(type) {
		case *bgp.PathAttributeNextHop:
		case *bgp.PathAttributeAsPath:
			shared = append(shared, s.path(a))
		case *bgp.PathAttributeMpUnreachNLRI:
			if s.nextHop(bgp.NewFamily(a.AFI, a.SAFI)).IsValid() {
				withdrawn = append(withdrawn, a)
			}
		case *bgp.PathAttributeMpReachNLRI:
			r, err := s.reach(bgp.NewFamily(a.AFI, a.SAFI), a.Value)
			if err != nil {
				return nil, nil, nil, err
			}
			if r != nil {
				reach = append(reach, r)
			}
		default:
			if !inward[a.GetType()] {
				shared = append(shared, a)
			}
		}
	}
	return shared, reach, withdrawn, nil
}

// reach announces routes with our next hop; nil for families that are not said.
func (s Speaker) reach(family bgp.Family, routes []bgp.PathNLRI) (bgp.PathAttributeInterface, error) {
	hop := s.nextHop(family)
	if !hop.IsValid() || len(routes) == 0 {
		return nil, nil
	}
	return bgp.NewPathAttributeMpReachNLRI(family, routes, hop)
}

func (s Speaker) nextHop(family bgp.Family) netip.Addr {
	switch family {
	case bgp.RF_IPv4_UC:
		return s.NextHop4
	case bgp.RF_IPv6_UC:
		return s.NextHop6
	}
	return netip.Addr{}
}

// path puts our number first, as every speaker to another system does, unless it is first already.
func (s Speaker) path(a *bgp.PathAttributeAsPath) *bgp.PathAttributeAsPath {
	var segments []bgp.AsPathParamInterface
	for _, p := range a.Value {
		segments = append(segments, bgp.NewAs4PathParam(p.GetType(), p.GetAS()))
	}
	if len(segments) == 0 || segments[0].GetType() != bgp.BGP_ASPATH_ATTR_TYPE_SEQ || len(segments[0].GetAS()) == 0 || segments[0].GetAS()[0] != s.AS {
		segments = append([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, []uint32{s.AS})}, segments...)
	}
	return bgp.NewPathAttributeAsPath(segments)
}
