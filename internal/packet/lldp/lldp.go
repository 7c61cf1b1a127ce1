// Package lldp builds and takes apart frames of LLDP, IEEE 802.1AB: Ethernet to the nearest bridge, and what the sender says
// of itself in TLVs.
//
//	destination 01:80:c2:00:00:0e, source, type 0x88cc
//	TLVs: kind 7 bits, length of the value 9 bits, value
//	TLV 0 end
//
// Which of them a frame has, and what those of an organization mean, is its maker's to say.
package lldp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// EtherType is LLDP in the type field of Ethernet.
const EtherType = 0x88cc

// Group is where frames go: the nearest bridge, which does not pass them on.
var Group = [6]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}

// A Kind is what a TLV is about.
type Kind uint8

// The kinds that are used here.
const (
	End          Kind = 0
	ChassisID    Kind = 1   // subtype 1, identifier
	PortID       Kind = 2   // likewise
	TTL          Kind = 3   // seconds 2
	Organization Kind = 127 // OUI 3, the organization's subtype 1, and what that says
)

// Subtypes of ChassisID and PortID.
const (
	ChassisLocal  = 7 // a name that the sender's network knows
	PortInterface = 5 // the name of an interface
)

// MaxValue is how long a TLV's value may be, in bytes.
const MaxValue = 1<<9 - 1

const (
	ethernetLen  = 14
	tlvHeaderLen = 2
)

// ErrNone says that a frame is none of LLDP, ErrCut that it ends amid a TLV.
var (
	ErrNone = errors.New("no frame of LLDP")
	ErrCut  = errors.New("a frame of LLDP that ends amid a TLV")
)

// AppendHeader appends what comes before the TLVs.
func AppendHeader(b []byte, from [6]byte) []byte {
	b = append(append(b, Group[:]...), from[:]...)
	return binary.BigEndian.AppendUint16(b, EtherType)
}

// AppendTLV appends a TLV whose value is these parts, of MaxValue bytes at most.
func AppendTLV(b []byte, kind Kind, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if kind > Organization || n > MaxValue {
		panic(fmt.Sprintf("lldp: TLV %d of %d bytes", kind, n)) // the header has no room to say so
	}
	b = binary.BigEndian.AppendUint16(b, uint16(kind)<<9|uint16(n))
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// Each calls f with each TLV before the end; values are parts of the frame. The end may be missing, as the standard has it.
func Each(frame []byte, f func(kind Kind, value []byte)) error {
	if len(frame) < ethernetLen || binary.BigEndian.Uint16(frame[12:]) != EtherType {
		return ErrNone
	}
	for b := frame[ethernetLen:]; len(b) >= tlvHeaderLen; {
		head := binary.BigEndian.Uint16(b)
		kind, n := Kind(head>>9), int(head&MaxValue)
		if b = b[tlvHeaderLen:]; n > len(b) {
			return ErrCut
		}
		if kind == End {
			return nil // what follows fills the frame up to Ethernet's least length
		}
		f(kind, b[:n])
		b = b[n:]
	}
	return nil
}
