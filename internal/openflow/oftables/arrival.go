package oftables

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
)

// Priorities of table 0. Modules are above and below Scaffold: see Own.
const (
	priorityOurs    = 0x8000
	priorityModules = 0x4000
	priorityFirst   = 0xc000
)

// Priorities of the table arrival. The router's own address goes before the hop limit: such a packet is not
// forwarded.
const (
	arriveMessage    = 60
	arriveOwn        = 50
	arriveHopLimit   = 40
	arriveLeft       = 30
	arriveUnresolved = 20
	arriveElse       = 0
)

// Priorities of the table kind.
const (
	kindRetry    = 40
	kindFragment = 30
	kindEcho     = 20
	kindICMP     = 10
	kindElse     = 0
)

// missPriority is that of the entry for all that finds no other.
const missPriority = 0

// The metadata of a packet says in its upper half what it is: a class without ports, or a list of targets; in its
// lower half the port that it leaves by.
const (
	markShift        = 32
	markMask  uint64 = 0xffffffff << markShift
	outMask   uint64 = 0xffffffff
)

// The classes of packets without ports, docs/protocol.md §3.2. Open vSwitch does not see of which protocol a later
// fragment is, and the first one must meet the same instance: all fragments are one class. They share a bit with
// echoes, by which the table for any port has both. Lists are numbered from firstList.
const (
	classFragment uint32 = 1
	classEcho     uint32 = 3
	classBit      uint32 = 1
	firstList     uint32 = 16
)

const (
	etherIPv6    = header.EtherIPv6
	icmpEcho     = 128
	labelRetry   = sid.MaxRetry // bits of the flow label, docs/protocol.md §3.1
	labelRefuser = 0xffff0
	fragmented   = 1 // bit of Nicira's ip_frag
	fragmentIs   = header.Fragment
)

var (
	ipv6     = ofp.Uint(ofp.EthType, etherIPv6)
	untagged = ofp.Uint(ofp.VLANVID, 0)
)

func mark(m uint32) ofp.Instruction {
	return ofp.WriteMetadata{Metadata: uint64(m) << markShift, Mask: markMask}
}

func marked(m uint32) ofp.OXM { return ofp.UintMasked(ofp.Metadata, uint64(m)<<markShift, markMask) }

func proto(p sid.Proto) ofp.OXM { return ofp.Uint(ofp.IPProto, uint64(p)) }

// renderFixed puts in what every router has, whatever its rules.
func (t *Tables) renderFixed() {
	t.renderPunts()
	if t.own != 0 {
		t.answerSolicited(t.flows.set)
		t.arrival(t.flows.set)
		t.kind(t.flows.set)
	}
}

// eachFixed calls f for the keys of what renderFixed puts in.
func (t *Tables) eachFixed(f func(flowKey)) {
	if t.own == 0 {
		return
	}
	only := func(k flowKey, _ entry) { f(k) }
	t.answerSolicited(only)
	t.arrival(only)
	t.kind(only)
}

// renderPunts are the meters of what is punted.
func (t *Tables) renderPunts() {
	for id := PuntFirst; id < puntsUsed && !t.o.NoMeters; id++ {
		if t.own != 0 {
			t.meters.set(meterOf(id), meter{punts[id]})
		} else {
			t.meters.unset(meterOf(id))
		}
	}
}

// meterOf is the meter of a kind of punted packets.
func meterOf(punts uint32) ofp.MeterID { return ofp.MeterID(firstID + punts) }

// puntAs is the end of an entry of ours that punts.
func (t *Tables) puntAs(id uint32) []ofp.Instruction {
	if t.o.NoMeters {
		return t.punt(0)
	}
	return t.punt(meterOf(id))
}

// arrival is table 0 and the table behind it.
func (t *Tables) arrival(put func(flowKey, entry)) {
	at := t.table(tableArrival)
	// Not ::1 alone: where one entry looks at all bits of the destination, Open vSwitch caches each flow by itself.
	own := ofp.Prefix(ofp.IPv6Dst, ownBlock(t.own))
	for _, p := range []netip.Prefix{t.space.Services, t.space.AS} {
		put(t.ours(p))
	}
	put(t.flow(at, arriveMessage, PuntOwn, ofp.Match{ipv6, proto(sid.UDP), own, ofp.Uint(ofp.UDPDst, sid.Port)}, t.puntAs(PuntOwn)...))
	put(t.flow(at, arriveOwn, PuntAddressed, ofp.Match{ipv6, own}, t.puntAs(PuntAddressed)...))
	if t.o.Extensions {
		for ttl := range uint64(2) {
			put(t.flow(at, arriveHopLimit, PuntHopLimit, ofp.Match{ipv6, ofp.Uint(ofp.IPTTL, ttl)}, t.puntAs(PuntHopLimit)...))
		}
	}
	put(t.flow(at, arriveElse, PuntNothing, nil, t.goTo(tableRoutes)))
	if t.resolves {
		put(t.flow(at, arriveUnresolved, PuntNothing, ofp.Match{ipv6, ofp.Prefix(ofp.IPv6Dst, t.space.Services)}, t.goTo(tableKind)))
		put(t.flow(at, arriveUnresolved, PuntNothing, ofp.Match{ipv6, t.unresolvedHere()}, t.goTo(tableKind)))
	}
	put(t.flow(t.table(tableRoutes), missPriority, PuntNoRoute, nil, t.puntAs(PuntNoRoute)...))
}

// ownBlock is what of a router's locator is no socketID's: the least that tells its own address from flows.
func ownBlock(own sid.Locator) netip.Prefix { return netip.PrefixFrom(own.Addr(0), sid.LocatorBits+1) }

// ours is the entry of table 0 that takes packets to the prefix that are for the router to forward: those that are
// sent to its MAC, without a VLAN tag. What others on the link send each other is not ours.
func (t *Tables) ours(p netip.Prefix) (flowKey, entry) {
	m := ofp.Match{ofp.HW(ofp.EthDst, t.o.MAC), ipv6, untagged, ofp.Prefix(ofp.IPv6Dst, p)}
	return t.flow(0, priorityOurs, PuntNothing, m, t.goTo(tableArrival))
}

// unresolvedHere is ASAddr:0 with a suffix: a socketID has the top bit of the lower half.
func (t *Tables) unresolvedHere() ofp.OXM {
	const bits = sid.LocatorBits + 1
	return ofp.Prefix(ofp.IPv6Dst, netip.PrefixFrom(t.space.Locator(0).Addr(0), bits))
}

// kind is what of a first packet decides beside its destination.
func (t *Tables) kind(put func(flowKey, entry)) {
	if !t.resolves {
		return
	}
	at, on := t.table(tableKind), t.goTo(tableResolve)
	for retry := uint64(2); retry <= labelRetry; retry++ { // the first is the table returned's
		put(t.flow(at, kindRetry, PuntRetry, ofp.Match{ipv6, ofp.UintMasked(ofp.IPv6Label, retry, labelRetry)}, t.puntAs(PuntRetry)...))
	}
	for _, m := range t.fragments() {
		put(t.flow(at, kindFragment, PuntNothing, append(ofp.Match{ipv6}, m...), mark(classFragment), on))
	}
	put(t.flow(at, kindEcho, PuntNothing, ofp.Match{ipv6, proto(sid.ICMPv6), ofp.Uint(ofp.ICMPv6Type, icmpEcho)}, mark(classEcho), on))
	put(t.flow(at, kindICMP, PuntNothing, ofp.Match{ipv6, proto(sid.ICMPv6)})) // errors about a name: dropped
	put(t.flow(at, kindElse, PuntNothing, nil, on))
	put(t.flow(t.table(tableResolve), missPriority, PuntFirst, nil, t.puntAs(PuntFirst)...))
	once := ofp.UintMasked(ofp.IPv6Label, 1, labelRetry)
	put(t.flow(t.table(tableChoose), chooseReturned, PuntNothing, ofp.Match{ipv6, once}, t.goTo(tableReturned)))
	put(t.flow(t.table(tableReturned), missPriority, PuntRetry, nil, t.puntAs(PuntRetry)...))
}

// fragments are the matches that all fragments have one of. Without extensions they are those by which Open vSwitch
// shows fragments: the first one with ports of 0, later ones as of the fragment header's protocol. Of another switch
// we must hope for the same.
func (t *Tables) fragments() []ofp.Match {
	if t.o.Extensions {
		return []ofp.Match{{ofp.UintMasked(ofp.IPFrag, fragmented, fragmented)}}
	}
	return []ofp.Match{
		{proto(fragmentIs)},
		{proto(sid.UDP), ofp.Uint(ofp.UDPDst, 0)},
		{proto(sid.TCP), ofp.Uint(ofp.TCPDst, 0)},
		{proto(sid.ICMPv6), ofp.Uint(ofp.ICMPv6Type, 0)},
	}
}
