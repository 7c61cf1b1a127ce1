package ofp

import "fmt"

// A Field is what a match, a set-field or a copy can be about. It holds the class, the number and the
// size that an OXM header says, and the experimenter behind it if the class asks for one:
//
//	 63            48 47         40 39         32 31                     0
//	+----------------+-------------+-------------+------------------------+
//	|     class      |   number    | size, bytes |      experimenter      |
//	+----------------+-------------+-------------+------------------------+
type Field uint64

const (
	classNXM0         = 0x0000
	classNXM1         = 0x0001
	classEricsson     = 0x1000
	classOpenFlow     = 0x8000
	classRegisters    = 0x8001
	classStats        = 0x8002
	classExperimenter = 0xffff

	of   Field = classOpenFlow << 48
	nxm  Field = classNXM1 << 48
	eric Field = classEricsson << 48
	regs Field = classRegisters << 48
	exp  Field = classExperimenter << 48
)

// The fields of the standard.
const (
	InPort     = of | 0<<40 | 4<<32
	InPhyPort  = of | 1<<40 | 4<<32
	Metadata   = of | 2<<40 | 8<<32
	EthDst     = of | 3<<40 | 6<<32
	EthSrc     = of | 4<<40 | 6<<32
	EthType    = of | 5<<40 | 2<<32
	VLANVID    = of | 6<<40 | 2<<32 // with VLANPresent; 0: untagged
	VLANPCP    = of | 7<<40 | 1<<32
	IPDSCP     = of | 8<<40 | 1<<32
	IPECN      = of | 9<<40 | 1<<32
	IPProto    = of | 10<<40 | 1<<32
	IPv4Src    = of | 11<<40 | 4<<32
	IPv4Dst    = of | 12<<40 | 4<<32
	TCPSrc     = of | 13<<40 | 2<<32
	TCPDst     = of | 14<<40 | 2<<32
	UDPSrc     = of | 15<<40 | 2<<32
	UDPDst     = of | 16<<40 | 2<<32
	SCTPSrc    = of | 17<<40 | 2<<32
	SCTPDst    = of | 18<<40 | 2<<32
	ICMPv4Type = of | 19<<40 | 1<<32
	ICMPv4Code = of | 20<<40 | 1<<32
	ARPOp      = of | 21<<40 | 2<<32
	ARPSPA     = of | 22<<40 | 4<<32
	ARPTPA     = of | 23<<40 | 4<<32
	ARPSHA     = of | 24<<40 | 6<<32
	ARPTHA     = of | 25<<40 | 6<<32
	IPv6Src    = of | 26<<40 | 16<<32
	IPv6Dst    = of | 27<<40 | 16<<32
	IPv6Label  = of | 28<<40 | 4<<32
	ICMPv6Type = of | 29<<40 | 1<<32
	ICMPv6Code = of | 30<<40 | 1<<32
	NDTarget   = of | 31<<40 | 16<<32
	NDSLL      = of | 32<<40 | 6<<32
	NDTLL      = of | 33<<40 | 6<<32
	MPLSLabel  = of | 34<<40 | 4<<32
	MPLSTC     = of | 35<<40 | 1<<32
	MPLSBOS    = of | 36<<40 | 1<<32
	PBBISID    = of | 37<<40 | 3<<32
	TunnelID   = of | 38<<40 | 8<<32
	IPv6ExtHdr = of | 39<<40 | 2<<32
	PBBUCA     = of | 41<<40 | 1<<32
	TCPFlags   = of | 42<<40 | 2<<32 // 1.5
	ActSetOut  = of | 43<<40 | 4<<32 // 1.5
	PacketType = of | 44<<40 | 4<<32 // 1.5
)

// The fields of Nicira's extension that have no equal in the standard.
const (
	TunIPv4Src = nxm | 31<<40 | 4<<32
	TunIPv4Dst = nxm | 32<<40 | 4<<32
	PacketMark = nxm | 33<<40 | 4<<32
	IPTTL      = nxm | 29<<40 | 1<<32
	IPFrag     = nxm | 26<<40 | 1<<32
	TunIPv6Src = nxm | 109<<40 | 16<<32
	TunIPv6Dst = nxm | 110<<40 | 16<<32

	// What the standard has not of neighbour discovery (RFC 4861), Open vSwitch since 2.11.
	NDFlags  = eric | 1<<40 | 4<<32 // the 32 bits behind the checksum: of an advertisement R, S and O from the top
	NDOption = eric | 2<<40 | 1<<32 // type of the first option
)

// VLANPresent is the bit of VLANVID that says that there is a tag.
const VLANPresent = 0x1000

// Reg is Nicira's 32-bit register n, 0 to 15.
func Reg(n uint8) Field { return nxm | Field(n&15)<<40 | 4<<32 }

// PacketReg is the standard's 64-bit register n, 0 to 7: Reg(2n) and Reg(2n+1).
func PacketReg(n uint8) Field { return regs | Field(n&7)<<40 | 8<<32 }

// ExperimentalField is a field of an experimenter's own; size is in bytes.
func ExperimentalField(experimenter uint32, number, size uint8) Field {
	return exp | Field(number&0x7f)<<40 | Field(size)<<32 | Field(experimenter)
}

// Standard is the standard's field where f is Nicira's older name for it: in 1.3 Open vSwitch gives back a copy of
// fields under these, whatever it was told.
func Standard(f Field) Field {
	const nxm0 Field = classNXM0 << 48
	switch f {
	case nxm0 | 1<<40 | 6<<32:
		return EthDst
	case nxm0 | 2<<40 | 6<<32:
		return EthSrc
	case nxm | 19<<40 | 16<<32:
		return IPv6Src
	case nxm | 20<<40 | 16<<32:
		return IPv6Dst
	}
	return f
}

// Size is that of the field's value, in bytes.
func (f Field) Size() int { return int(f >> 32 & 0xff) }

// of13 is how a field is written in 1.3 that came later: Open vSwitch takes it by the number that the
// Open Networking Foundation gave it as an extension.
func (f Field) of13() Field {
	if f == TCPFlags || f == ActSetOut {
		return f&^(0xffff<<48) | exp | onf
	}
	return f
}

// now undoes of13.
func (f Field) now() Field {
	if g := f&^(0xffff<<48|0xffffffff) | of; f == g.of13() {
		return g
	}
	return f
}

func (f Field) String() string {
	if name, ok := fieldNames[f]; ok {
		return name
	}
	class, number := f>>48, f>>40&0x7f
	switch {
	case class == classNXM1 && number < 16:
		return fmt.Sprintf("reg%d", number)
	case class == classRegisters:
		return fmt.Sprintf("xreg%d", number)
	case class == classExperimenter:
		return fmt.Sprintf("oxm_%#x_%#x_%d", uint16(class), uint32(f), number)
	}
	return fmt.Sprintf("oxm_%#x_%d", uint16(class), number)
}
