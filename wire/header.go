package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// Version is that of the messages, their first octet.
	Version = 1
	// HeaderLen is the size in bytes of what all messages begin with, and of a whole PROBE.
	HeaderLen = 16
	// MaxLen is the size in bytes of the largest message: it fits the least IPv6 MTU (RFC 8200 §5).
	MaxLen = 1280 - 40 - 8
	// MaxName is the longest name in bytes of a router, host or port.
	MaxName = 255
)

// A Type says what a message is.
type Type uint8

// The types of docs/protocol.md §4 and §6.
const (
	TypeHello    Type = 1
	TypeSolicit  Type = 2
	TypeProbe    Type = 3
	TypeProbeAck Type = 4
	TypeFail     Type = 5
	TypeBound    Type = 6
	TypeRSYN     Type = 7
	TypeRSYNACK  Type = 8
	TypeRACK     Type = 9
	TypeResume   Type = 10
	TypeFlowFail Type = 11
	TypeLink     Type = 12
)

var typeNames = [...]string{TypeHello: "HELLO", TypeSolicit: "SOLICIT", TypeProbe: "PROBE",
	TypeProbeAck: "PROBE-ACK", TypeFail: "FAIL", TypeBound: "BOUND",
	TypeRSYN: "RSYN", TypeRSYNACK: "RSYN-ACK", TypeRACK: "RACK", TypeResume: "RESUME", TypeFlowFail: "FLOW-FAIL",
	TypeLink: "LINK"}

func (t Type) String() string {
	if t == 0 || int(t) >= len(typeNames) {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return typeNames[t]
}

// A Header is the part that all messages share and that their senders choose.
type Header struct {
	KeyID uint32 // 0: unsigned
	Nonce uint64 // a PROBE-ACK repeats that of its PROBE, a LINK's is a challenge; 0 elsewhere
}

// Errors that callers may tell apart; Parse wraps them with what it saw.
var (
	ErrVersion = errors.New("not a version that this program speaks")
	ErrType    = errors.New("no such message type")
	ErrLength  = errors.New("wrong length")
)

// ParseHeader reads the common header of b, which is one whole datagram.
func ParseHeader(b []byte) (Type, Header, error) {
	if len(b) < HeaderLen {
		return 0, Header{}, fmt.Errorf("message of %d bytes, a header has %d: %w", len(b), HeaderLen, ErrLength)
	}
	if b[0] != Version {
		return 0, Header{}, fmt.Errorf("message of version %d, want %d: %w", b[0], Version, ErrVersion)
	}
	if n := int(binary.BigEndian.Uint16(b[2:])); n != len(b) || n > MaxLen {
		return 0, Header{}, fmt.Errorf("message says %d bytes, the datagram has %d (at most %d): %w", n, len(b), MaxLen, ErrLength)
	}
	h := Header{KeyID: binary.BigEndian.Uint32(b[4:]), Nonce: binary.BigEndian.Uint64(b[8:])}
	return Type(b[1]), h, nil
}

// append writes the header of a message whose body has the given length.
func (h Header) append(b []byte, t Type, body int) []byte {
	n := HeaderLen + body
	if n > MaxLen {
		panic(fmt.Sprintf("wire: %v of %d bytes, at most %d", t, n, MaxLen))
	}
	b = append(b, Version, byte(t))
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = binary.BigEndian.AppendUint32(b, h.KeyID)
	return binary.BigEndian.AppendUint64(b, h.Nonce)
}
