package header

import (
	"encoding/binary"
	"net/netip"
)

// Lengths of headers, those of TCP without options.
const (
	EthernetLen = 14
	IPv6Len     = 40
	TCPLen      = 20
	UDPLen      = 8
	ICMPv6Len   = 8
)

// EtherIPv6 is IPv6 in the type field of Ethernet.
const EtherIPv6 = 0x86dd

// Transports.
const (
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
)

// IPv6 is a packet that has at least its fixed header, RFC 8200 §3.
type IPv6 []byte

// InFrame finds the packet in an Ethernet frame. Padding behind it is left where it is.
func InFrame(frame []byte) (ip IPv6, ok bool) {
	if len(frame) < EthernetLen+IPv6Len || binary.BigEndian.Uint16(frame[12:]) != EtherIPv6 {
		return nil, false
	}
	return frame[EthernetLen:], true
}

// Src is the source address.
func (b IPv6) Src() netip.Addr { return netip.AddrFrom16([16]byte(b[8:24])) }

// Dst is the destination address.
func (b IPv6) Dst() netip.Addr { return netip.AddrFrom16([16]byte(b[24:40])) }

// Next is what follows the header: a transport, or an extension header.
func (b IPv6) Next() uint8 { return b[6] }

// Hops is the hop limit.
func (b IPv6) Hops() uint8 { return b[7] }

// Says is how long the packet says that it is, with its header.
func (b IPv6) Says() int { return IPv6Len + int(binary.BigEndian.Uint16(b[4:])) }

// Quoted is the packet that an ICMPv6 error quotes, as far as that goes: where the header of ICMPv6 begins it is told. Not ok: it
// quotes less than the header of a packet.
func (b IPv6) Quoted(at int) (quote IPv6, ok bool) {
	if len(b) < at+ICMPv6Len+IPv6Len {
		return nil, false
	}
	return b[at+ICMPv6Len:], true
}
