package ofctl

import (
	"fmt"
	"slices"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/packet/header"
)

// EtherTypes and protocols that fields need.
const (
	typeIPv4   = 0x0800
	typeARP    = 0x0806
	typeIPv6   = header.EtherIPv6
	protoICMP  = 1
	protoTCP   = header.TCP
	protoUDP   = header.UDP
	protoICMP6 = header.ICMPv6
	protoSCTP  = 132
)

// A need is what a packet has to be so that it has a field: of one of the EtherTypes, and of the protocol.
type need struct {
	types []uint64
	proto uint64 // 0: any
}

var (
	ipv4   = []uint64{typeIPv4}
	ipv6   = []uint64{typeIPv6}
	anyIP  = []uint64{typeIPv4, typeIPv6}
	arp    = []uint64{typeARP}
	nsOrNA = need{ipv6, protoICMP6}
)

var needs = map[ofp.Field]need{
	ofp.IPDSCP: {anyIP, 0}, ofp.IPECN: {anyIP, 0}, ofp.IPProto: {anyIP, 0}, ofp.IPTTL: {anyIP, 0}, ofp.IPFrag: {anyIP, 0},
	ofp.IPv4Src: {ipv4, 0}, ofp.IPv4Dst: {ipv4, 0},
	ofp.IPv6Src: {ipv6, 0}, ofp.IPv6Dst: {ipv6, 0}, ofp.IPv6Label: {ipv6, 0}, ofp.IPv6ExtHdr: {ipv6, 0},
	ofp.TCPSrc: {anyIP, protoTCP}, ofp.TCPDst: {anyIP, protoTCP}, ofp.TCPFlags: {anyIP, protoTCP},
	ofp.UDPSrc: {anyIP, protoUDP}, ofp.UDPDst: {anyIP, protoUDP},
	ofp.SCTPSrc: {anyIP, protoSCTP}, ofp.SCTPDst: {anyIP, protoSCTP},
	ofp.ICMPv4Type: {ipv4, protoICMP}, ofp.ICMPv4Code: {ipv4, protoICMP},
	ofp.ICMPv6Type: {ipv6, protoICMP6}, ofp.ICMPv6Code: {ipv6, protoICMP6},
	ofp.NDTarget: nsOrNA, ofp.NDSLL: nsOrNA, ofp.NDTLL: nsOrNA,
	ofp.ARPOp: {arp, 0}, ofp.ARPSPA: {arp, 0}, ofp.ARPTPA: {arp, 0}, ofp.ARPSHA: {arp, 0}, ofp.ARPTHA: {arp, 0},
}

// typeNames are for messages.
var typeNames = map[uint64]string{typeIPv4: "ip", typeIPv6: "ipv6", typeARP: "arp"}

// complete puts in what the fields need and brings them into an order in which each stands behind that.
func complete(m ofp.Match) (ofp.Match, error) {
	types, err := possible(m)
	if err != nil {
		return nil, err
	}
	if _, said := m.Get(ofp.EthType); !said && types != nil {
		if len(types) > 1 {
			return nil, fmt.Errorf("it needs to say ip or ipv6")
		}
		m = append(m, ofp.Uint(ofp.EthType, types[0]))
	}
	for _, o := range m {
		n := needs[o.Field]
		proto, said := m.Get(ofp.IPProto)
		switch {
		case n.proto == 0:
		case !said:
			m = append(m, ofp.Uint(ofp.IPProto, n.proto))
		case proto != ofp.Uint(ofp.IPProto, n.proto):
			return nil, fmt.Errorf("%v needs protocol %d, and it says %v", o.Field, n.proto, proto)
		}
	}
	slices.SortStableFunc(m, func(a, b ofp.OXM) int { return rank(a.Field) - rank(b.Field) })
	return m, nil
}

// possible are the EtherTypes that all fields allow, nil if none asks for one.
func possible(m ofp.Match) (types []uint64, err error) {
	if o, said := m.Get(ofp.EthType); said && o.Mask() == nil {
		types = []uint64{o.Uint()}
	}
	for _, o := range m {
		n, has := needs[o.Field]
		if !has {
			continue
		}
		if types == nil {
			types = n.types
			continue
		}
		both := slices.DeleteFunc(slices.Clone(types), func(t uint64) bool { return !slices.Contains(n.types, t) })
		if len(both) == 0 {
			return nil, fmt.Errorf("%v is not in packets of %s", o.Field, called(types))
		}
		types = both
	}
	return types, nil
}

func called(types []uint64) string {
	if name, ok := typeNames[types[0]]; ok && len(types) == 1 {
		return name
	}
	return fmt.Sprintf("EtherType %#x", types)
}

func rank(f ofp.Field) int {
	switch {
	case f == ofp.EthType:
		return 1
	case f == ofp.IPProto:
		return 2
	case f == ofp.ICMPv6Type:
		return 4
	case f == ofp.NDTarget, f == ofp.NDSLL, f == ofp.NDTLL:
		return 5
	case len(needs[f].types) > 0:
		return 3
	}
	return 0
}

// allows says why a field cannot be written to packets that match.
func allows(m ofp.Match, f ofp.Field) error {
	n, has := needs[f]
	if !has {
		return nil
	}
	o, said := m.Get(ofp.EthType)
	if !said || !slices.Contains(n.types, o.Uint()) {
		return fmt.Errorf("%v is only in packets of %s: the match must say so", f, anyOf(n.types))
	}
	if n.proto != 0 && m.Uint(ofp.IPProto) != n.proto {
		return fmt.Errorf("%v is only in packets of protocol %d: the match must say so", f, n.proto)
	}
	return nil
}

func anyOf(types []uint64) string {
	if len(types) == 2 {
		return "ip or ipv6"
	}
	return called(types)
}
