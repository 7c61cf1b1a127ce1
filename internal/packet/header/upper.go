package header

import "encoding/binary"

// A Transport is a header of TCP, UDP or ICMPv6, at least as much of it as what is read.
type Transport []byte

// Ports are those of TCP and UDP.
func (b Transport) Ports() (src, dst uint16) {
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
}

// Seq is the number of TCP's first byte here.
func (b Transport) Seq() uint32 { return binary.BigEndian.Uint32(b[4:]) }

// Ack is what TCP acknowledges.
func (b Transport) Ack() uint32 { return binary.BigEndian.Uint32(b[8:]) }

// Flags are TCP's.
func (b Transport) Flags() uint8 { return b[13] }

// Head is how long TCP says that its header is.
func (b Transport) Head() int { return int(b[12]>>4) * 4 }

// Kind is the type and code of ICMPv6.
func (b Transport) Kind() (typ, code uint8) { return b[0], b[1] }

// Echo is the identifier of an ICMPv6 echo, RFC 4443 §4.1.
func (b Transport) Echo() uint16 { return binary.BigEndian.Uint16(b[4:]) }

// Argument is the second word of ICMPv6's header: what it means depends on its type.
func (b Transport) Argument() uint32 { return binary.BigEndian.Uint32(b[4:]) }
