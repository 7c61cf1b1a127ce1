package controller

import "scaffold.dev/scaffold/internal/openflow/ofp"

// The fields that a match or a [SetField] can be about. A field stands behind those that it needs: IPv6Dst
// behind EthType, TCPDst behind IPProto.
const (
	InPort     = ofp.InPort
	Metadata   = ofp.Metadata
	EthDst     = ofp.EthDst
	EthSrc     = ofp.EthSrc
	EthType    = ofp.EthType
	VLANVID    = ofp.VLANVID // with VLANPresent; 0: untagged
	VLANPCP    = ofp.VLANPCP
	IPDSCP     = ofp.IPDSCP
	IPECN      = ofp.IPECN
	IPProto    = ofp.IPProto
	IPv4Src    = ofp.IPv4Src
	IPv4Dst    = ofp.IPv4Dst
	TCPSrc     = ofp.TCPSrc
	TCPDst     = ofp.TCPDst
	TCPFlags   = ofp.TCPFlags
	UDPSrc     = ofp.UDPSrc
	UDPDst     = ofp.UDPDst
	ICMPv4Type = ofp.ICMPv4Type
	ARPOp      = ofp.ARPOp
	ARPSPA     = ofp.ARPSPA
	ARPTPA     = ofp.ARPTPA
	IPv6Src    = ofp.IPv6Src
	IPv6Dst    = ofp.IPv6Dst
	IPv6Label  = ofp.IPv6Label
	ICMPv6Type = ofp.ICMPv6Type
	ICMPv6Code = ofp.ICMPv6Code
	NDTarget   = ofp.NDTarget
	TunnelID   = ofp.TunnelID
	IPTTL      = ofp.IPTTL // Open vSwitch's
)

// VLANPresent is the bit of VLANVID that says that there is a tag.
const VLANPresent = ofp.VLANPresent

// Reg is Open vSwitch's 32-bit register n, 0 to 15. A packet comes to a module's tables with whatever it says. Scaffold has
// uses for 7, 14 and 15, and GuardRegister has one for modules.
func Reg(n uint8) Field { return ofp.Reg(n) }

// The ports that are none, for [Output].
const (
	PortIn     = ofp.PortIn     // back out of where it came in
	PortTable  = ofp.PortTable  // Out alone: through the tables, as if it had come in
	PortNormal = ofp.PortNormal // as a switch without a controller would
	PortFlood  = ofp.PortFlood
	PortAll    = ofp.PortAll
	PortLocal  = ofp.PortLocal // the switch's own
)
