package ofp

import "net/netip"

var (
	prefix = netip.MustParsePrefix("fd5d:0:1:203::/64")
	host   = netip.MustParseAddr("fd5d:0:1:203::7")
	mac    = MAC{2, 0, 0, 0, 0, 7}
)

// A sample is a body in a version, or in both if that is 0.
type sample struct {
	version Version
	body    Body
}

// versions are those that a sample is for.
func versions(v Version) []Version {
	if v == 0 {
		return []Version{V13, V15}
	}
	return []Version{v}
}

// toIPv6 is what almost every flow here begins with.
func toIPv6(more ...OXM) Match { return append(Match{Uint(EthType, 0x86dd)}, more...) }

// fields has each kind of match field once, with what it needs.
var fields = []struct {
	match Match
	want  string
}{
	{toIPv6(Prefix(IPv6Dst, prefix)), "ipv6,ipv6_dst=fd5d:0:1:203::/64"},
	{toIPv6(Addr(IPv6Src, host), Uint(IPProto, 6), Uint(TCPDst, 80)), "tcp6,ipv6_src=fd5d:0:1:203::7,tp_dst=80"},
	{toIPv6(Uint(IPProto, 6), UintMasked(TCPSrc, 3, 7), UintMasked(TCPDst, 0x20, 0xfff0)), "tcp6,tp_src=0x3/0x7,tp_dst=0x20/0xfff0"},
	{toIPv6(Uint(IPProto, 17), UintMasked(UDPSrc, 0x8000, 0xff00)), "udp6,tp_src=0x8000/0xff00"},
	{toIPv6(Uint(IPProto, 58), Uint(ICMPv6Type, 135), Uint(ICMPv6Code, 0), Addr(NDTarget, host), HW(NDSLL, mac)),
		"icmp6,icmp_type=135,icmp_code=0,nd_target=fd5d:0:1:203::7,nd_sll=02:00:00:00:00:07"},
	{toIPv6(Uint(IPProto, 58), Uint(ICMPv6Type, 136), Uint(ICMPv6Code, 0), HW(NDTLL, mac)),
		"icmp6,icmp_type=136,icmp_code=0,nd_tll=02:00:00:00:00:07"},
	{toIPv6(Uint(IPv6Label, 0x12345), Uint(IPDSCP, 46), Uint(IPECN, 1)), "ipv6,ipv6_label=0x12345,nw_tos=184,nw_ecn=1"},
	{toIPv6(Uint(IPProto, 6), UintMasked(TCPFlags, 2, 0x12)), "tcp6,tcp_flags=+syn-ack"},
	{toIPv6(Uint(IPTTL, 1)), "ipv6,nw_ttl=1"},
	{Match{Uint(EthType, 0x0800), Addr(IPv4Src, netip.MustParseAddr("10.0.0.1")), Prefix(IPv4Dst, netip.MustParsePrefix("10.1.0.0/16")), Uint(IPProto, 132), Uint(SCTPDst, 9)},
		"sctp,nw_src=10.0.0.1,nw_dst=10.1.0.0/16,tp_dst=9"},
	{Match{Uint(EthType, 0x0800), Uint(IPProto, 1), Uint(ICMPv4Type, 3), Uint(ICMPv4Code, 1)}, "icmp,icmp_type=3,icmp_code=1"},
	{Match{Uint(EthType, 0x0806), Uint(ARPOp, 1), Addr(ARPSPA, netip.MustParseAddr("10.0.0.1")), Addr(ARPTPA, netip.MustParseAddr("10.0.0.2")), HW(ARPSHA, mac), HW(ARPTHA, mac)},
		"arp,arp_spa=10.0.0.1,arp_tpa=10.0.0.2,arp_op=1,arp_sha=02:00:00:00:00:07,arp_tha=02:00:00:00:00:07"},
	{Match{Uint(InPort, 3), Bytes(EthDst, []byte{1, 0, 0, 0, 0, 0}, []byte{1, 0, 0, 0, 0, 0}), HW(EthSrc, mac), Uint(EthType, 0x27c0)},
		"in_port=3,dl_src=02:00:00:00:00:07,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,dl_type=0x27c0"},
	{Match{Uint(VLANVID, VLANPresent|10), Uint(VLANPCP, 5)}, "dl_vlan=10,dl_vlan_pcp=5"},
	{Match{Uint(VLANVID, 0)}, "vlan_tci=0x0000/0x1fff"},
	{Match{Uint(EthType, 0x8847), Uint(MPLSLabel, 7), Uint(MPLSTC, 1), Uint(MPLSBOS, 1)}, "mpls,mpls_label=7,mpls_tc=1,mpls_bos=1"},
	{Match{UintMasked(Metadata, 0x1200, 0xff00), Uint(TunnelID, 42)}, "tun_id=0x2a,metadata=0x1200/0xff00"},
	{Match{Uint(Reg(1), 7), UintMasked(Reg(15), 1, 1), Uint(PacketReg(2), 9), Uint(PacketMark, 5)}, "pkt_mark=0x5,reg1=0x7,reg4=0,reg5=0x9,reg15=0x1/0x1"},
	{Match{Addr(TunIPv4Src, netip.MustParseAddr("10.0.0.1")), Addr(TunIPv6Dst, host)}, "tun_src=10.0.0.1,tun_ipv6_dst=fd5d:0:1:203::7"},
}

// steps are actions on a tagged IPv6 packet, as ovs-ofctl shows them.
var steps = []struct {
	version Version
	action  Action
	want    string
}{
	{0, Output{Port: 3}, "output:3"},
	{0, Output{Port: PortController, MaxLen: WholePacket}, "CONTROLLER:65535"},
	{0, Output{Port: PortIn}, "IN_PORT"},
	{0, Output{Port: PortNormal}, "NORMAL"},
	{0, Group{ID: 7}, "group:7"},
	{0, SetQueue{Queue: 1}, "set_queue:1"},
	{0, PushVLAN{EtherType: 0x8100}, "push_vlan:0x8100"},
	{0, PopVLAN{}, "pop_vlan"},
	{0, PushMPLS{EtherType: 0x8847}, "push_mpls:0x8847"},
	{0, PopMPLS{EtherType: 0x86dd}, "pop_mpls:0x86dd"},
	{0, SetTTL{TTL: 64}, "mod_nw_ttl:64"},
	{0, DecTTL{}, "dec_ttl"},
	{0, SetField{Addr(IPv6Dst, host)}, "set_field:fd5d:0:1:203::7->ipv6_dst"},
	{0, SetField{HW(EthDst, mac)}, "set_field:02:00:00:00:00:07->eth_dst"},
	{0, SetField{Uint(Reg(3), 9)}, "set_field:0x9->reg3"},
	{0, SetField{Uint(TunnelID, 5)}, "set_field:0x5->tun_id"},
	{V15, SetField{Prefix(IPv6Dst, prefix)}, "set_field:fd5d:0:1:203::/64->ipv6_dst"},
	{0, CopyField{Bits: 32, Src: TunIPv4Src, Dst: Reg(1)}, "move:NXM_NX_TUN_IPV4_SRC[]->NXM_NX_REG1[]"},
	{0, CopyField{Bits: 8, SrcOffset: 8, DstOffset: 16, Src: Reg(0), Dst: Reg(1)}, "move:NXM_NX_REG0[8..15]->NXM_NX_REG1[16..23]"},
	{V15, MeterAction{ID: 4}, "meter:4"},
	{0, Resubmit{Table: 5}, "resubmit(,5)"},
	{0, CheckLarger{Length: 1414, Bit: 3, Dst: Reg(7)}, "check_pkt_larger(1414)->NXM_NX_REG7[3]"},
}
