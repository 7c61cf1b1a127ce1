package oftables

import (
	"net/netip"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/sid"
)

// What the answer to a solicitation is made of: RFC 4861 §4.3, §4.4 and §4.6.1.
const (
	solicitation  = 135
	advertisement = 136
	sourceOption  = 1
	targetOption  = 2
	fromTheLink   = 255     // hop limit of what no router forwarded
	routerHere    = 7 << 29 // a router's, solicited, to be taken over what was known before
)

// answerSolicited has the switch itself answer who asks for the router's hardware address. By the controller alone, all
// who use the router would lose it within a minute of the controller's absence, and with it everything. What has no
// source option, which is hardly ever asked, is punted as before: there is nothing that the answer's option could be
// written over.
//
// Open vSwitch takes the answer's option only of what is an advertisement when the entry is looked up, so there are two.
func (t *Tables) answerSolicited(put func(flowKey, entry)) {
	if !t.o.LinkLocal.IsValid() {
		return
	}
	asked := ofp.Match{ipv6, proto(sid.ICMPv6), ofp.Uint(ofp.ICMPv6Type, solicitation), ofp.Uint(ofp.ICMPv6Code, 0), untagged,
		ofp.Addr(ofp.NDTarget, t.o.LinkLocal), ofp.Uint(ofp.NDOption, sourceOption), ofp.Uint(ofp.IPTTL, fromTheLink)}
	turned := []ofp.Action{
		ofp.CopyField{Bits: 48, Src: ofp.EthSrc, Dst: ofp.EthDst},
		ofp.SetField{OXM: ofp.HW(ofp.EthSrc, t.o.MAC)},
		ofp.CopyField{Bits: 128, Src: ofp.IPv6Src, Dst: ofp.IPv6Dst},
		ofp.SetField{OXM: ofp.Addr(ofp.IPv6Src, t.o.LinkLocal)},
		ofp.SetField{OXM: ofp.Uint(ofp.ICMPv6Type, advertisement)},
		ofp.SetField{OXM: ofp.Uint(ofp.NDOption, targetOption)},
		ofp.SetField{OXM: ofp.Uint(ofp.NDFlags, routerHere)},
	}
	put(t.flow(0, priorityOurs, PuntNothing, asked, ofp.ApplyActions{Actions: turned}, t.goTo(tableSolicited)))
	answer := ofp.Match{ipv6, proto(sid.ICMPv6), ofp.Uint(ofp.ICMPv6Type, advertisement)}
	put(t.flow(t.table(tableSolicited), 1, PuntNothing, answer,
		ofp.ApplyActions{Actions: []ofp.Action{ofp.SetField{OXM: ofp.HW(ofp.NDTLL, t.o.MAC)}, ofp.Output{Port: ofp.PortIn}}}))
}

// LinkLocal is the address that a router with the hardware address has on each of its links: RFC 4291, appendix A.
func LinkLocal(m ofp.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}
