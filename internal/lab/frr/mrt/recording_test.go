package mrt

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/packet/mrt"
)

// A tape is a recording in the making, by the library's own writer.
type tape struct {
	t     testing.TB
	bytes []byte
}

var (
	began   = time.Unix(1_700_000_000, 0)
	peer    = netip.MustParseAddr("198.51.100.1")
	another = netip.MustParseAddr("198.51.100.2")
)

func (p *tape) add(at time.Time, typ mrt.MRTType, subtype mrt.MRTSubTyper, body mrt.Body) {
	p.t.Helper()
	m := must(mrt.NewMRTMessage(at, typ, subtype, body))
	b, err := m.Serialize()
	if err != nil {
		p.t.Fatal(err)
	}
	if typ.HasExtendedTimestamp() { // the library leaves it out of the length
		m.Header.Len += 4
		header, _ := m.Header.Serialize()
		copy(b, header)
	}
	p.bytes = append(p.bytes, b...)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// update adds what a peer with a number of four octets said after some time.
func (p *tape) update(after time.Duration, from netip.Addr, m *bgp.BGPMessage) {
	p.t.Helper()
	body := must(mrt.NewBGP4MPMessage(65010, 65000, 0, from, netip.MustParseAddr("198.51.100.9"), true, m))
	p.add(began.Add(after), mrt.BGP4MP_ET, mrt.MESSAGE_AS4, body)
}

func route(prefix string) bgp.PathNLRI {
	return bgp.PathNLRI{NLRI: must(bgp.NewIPAddrPrefix(netip.MustParsePrefix(prefix)))}
}

func path(as ...uint32) bgp.PathAttributeInterface {
	return bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, as)})
}

// announce is a route of either family, as a peer far away says it.
func announce(prefix string, as ...uint32) *bgp.BGPMessage {
	attributes := []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(0), path(as...)}
	if netip.MustParsePrefix(prefix).Addr().Is4() {
		attributes = append(attributes, must(bgp.NewPathAttributeNextHop(peer)))
		return bgp.NewBGPUpdateMessage(nil, attributes, []bgp.PathNLRI{route(prefix)})
	}
	reach := must(bgp.NewPathAttributeMpReachNLRI(bgp.RF_IPv6_UC, []bgp.PathNLRI{route(prefix)}, netip.MustParseAddr("2001:db8:ffff::1")))
	return bgp.NewBGPUpdateMessage(nil, append([]bgp.PathAttributeInterface{reach}, attributes...), nil)
}

func withdraw(prefix string) *bgp.BGPMessage {
	if netip.MustParsePrefix(prefix).Addr().Is4() {
		return bgp.NewBGPUpdateMessage([]bgp.PathNLRI{route(prefix)}, nil, nil)
	}
	gone := must(bgp.NewPathAttributeMpUnreachNLRI(bgp.RF_IPv6_UC, []bgp.PathNLRI{route(prefix)}))
	return bgp.NewBGPUpdateMessage(nil, []bgp.PathAttributeInterface{gone}, nil)
}

// table adds a dumped table of one route by two peers.
func (p *tape) table(prefix string) {
	p.t.Helper()
	peers := []*mrt.Peer{mrt.NewPeer(peer, peer, 65010, true), mrt.NewPeer(another, another, 65011, true)}
	p.add(began, mrt.TABLE_DUMPv2, mrt.PEER_INDEX_TABLE, mrt.NewPeerIndexTable(peer, "", peers))
	var entries []*mrt.RibEntry
	for i := range peers {
		attributes := announce(prefix, 65010+uint32(i)).Body.(*bgp.BGPUpdate).PathAttributes
		entries = append(entries, mrt.NewRibEntry(uint16(i), uint32(began.Unix()), 0, attributes, false))
	}
	subtype, family := mrt.RIB_IPV6_UNICAST, bgp.RF_IPv6_UC
	if netip.MustParsePrefix(prefix).Addr().Is4() {
		subtype, family = mrt.RIB_IPV4_UNICAST, bgp.RF_IPv4_UC
	}
	p.add(began, mrt.TABLE_DUMPv2, subtype, rib{mrt.NewRib(1, family, route(prefix).NLRI, entries)})
}

// A rib is without the family that gobgp 4.8.0 writes before IPv6 prefixes: RFC 6396 §4.3.2 has it in generic
// tables alone, and gobgp's own reader does not look for it.
type rib struct{ *mrt.Rib }

func (r rib) Serialize() ([]byte, error) {
	b, err := r.Rib.Serialize()
	if r.Family == bgp.RF_IPv6_UC {
		b = slices.Delete(b, 4, 7)
	}
	return b, err
}
