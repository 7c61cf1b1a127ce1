package ofp

// fieldNames are those that Open vSwitch's tools use.
var fieldNames = map[Field]string{
	InPort: "in_port", InPhyPort: "in_phy_port", Metadata: "metadata", EthDst: "eth_dst", EthSrc: "eth_src",
	EthType: "eth_type", VLANVID: "vlan_vid", VLANPCP: "vlan_pcp", IPDSCP: "ip_dscp", IPECN: "ip_ecn",
	IPProto: "ip_proto", IPv4Src: "ip_src", IPv4Dst: "ip_dst", TCPSrc: "tcp_src", TCPDst: "tcp_dst",
	UDPSrc: "udp_src", UDPDst: "udp_dst", SCTPSrc: "sctp_src", SCTPDst: "sctp_dst",
	ICMPv4Type: "icmp_type", ICMPv4Code: "icmp_code", ARPOp: "arp_op", ARPSPA: "arp_spa", ARPTPA: "arp_tpa",
	ARPSHA: "arp_sha", ARPTHA: "arp_tha", IPv6Src: "ipv6_src", IPv6Dst: "ipv6_dst", IPv6Label: "ipv6_label",
	ICMPv6Type: "icmpv6_type", ICMPv6Code: "icmpv6_code", NDTarget: "nd_target", NDSLL: "nd_sll",
	NDTLL: "nd_tll", MPLSLabel: "mpls_label", MPLSTC: "mpls_tc", MPLSBOS: "mpls_bos", PBBISID: "pbb_isid",
	TunnelID: "tun_id", IPv6ExtHdr: "ipv6_exthdr", PBBUCA: "pbb_uca", TCPFlags: "tcp_flags",
	ActSetOut: "actset_output", PacketType: "packet_type", TunIPv4Src: "tun_src", TunIPv4Dst: "tun_dst",
	PacketMark: "pkt_mark", IPTTL: "nw_ttl", IPFrag: "ip_frag", TunIPv6Src: "tun_ipv6_src",
	TunIPv6Dst: "tun_ipv6_dst", NDFlags: "nd_reserved", NDOption: "nd_options_type",
}

// FieldNamed is the field of that name, as String shows it.
func FieldNamed(name string) (Field, bool) {
	f, ok := fieldsByName[name]
	return f, ok
}

var fieldsByName = func() map[string]Field {
	byName := make(map[string]Field)
	for f, name := range fieldNames {
		byName[name] = f
	}
	for n := range uint8(16) {
		byName[Reg(n).String()] = Reg(n)
	}
	return byName
}()

// form is how a value is shown.
type form uint8

const (
	hexadecimal form = iota
	decimal
	address
	hardware
)

func (f Field) form() form {
	switch f {
	case EthDst, EthSrc, ARPSHA, ARPTHA, NDSLL, NDTLL:
		return hardware
	case IPv4Src, IPv4Dst, ARPSPA, ARPTPA, IPv6Src, IPv6Dst, NDTarget, TunIPv4Src, TunIPv4Dst, TunIPv6Src, TunIPv6Dst:
		return address
	case InPort, InPhyPort, VLANPCP, IPProto, TCPSrc, TCPDst, UDPSrc, UDPDst, SCTPSrc, SCTPDst, ICMPv4Type,
		ICMPv4Code, ARPOp, ICMPv6Type, ICMPv6Code, IPTTL:
		return decimal
	}
	return hexadecimal
}

// sized is the field, and whether it has its size, if it is one of the standard's, of which we know
// them; what does not have it is the field that it should be.
func (f Field) sized() (Field, bool) {
	switch class := f >> 48; class {
	case classOpenFlow:
		known, ok := standardFields[f>>40&0x7f]
		return known, !ok || known == f
	case classRegisters:
		return f, f.Size() == 8
	}
	return f, true
}

// standardFields are those with a name, by number.
var standardFields = func() map[Field]Field {
	byNumber := map[Field]Field{}
	for f := range fieldNames {
		if f>>48 == classOpenFlow {
			byNumber[f>>40&0x7f] = f
		}
	}
	return byNumber
}()
