package ofp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Version is the first byte of a message.
type Version uint8

// The versions: 1.0 is known by name only, to say who cannot be spoken to.
const (
	V10 Version = 1
	V13 Version = 4
	V15 Version = 6
)

func (v Version) String() string {
	if v >= 1 && v <= 6 {
		return fmt.Sprintf("OpenFlow 1.%d", v-1)
	}
	return fmt.Sprintf("OpenFlow version %#x", uint8(v))
}

const (
	// HeaderLen is the size in bytes of what all messages begin with, and of the shortest of them.
	HeaderLen = 8
	// MaxLen is the size in bytes of the longest message.
	MaxLen = 1<<16 - 1
)

// Errors that callers may tell apart; they come wrapped with what was seen and where.
var (
	ErrVersion = errors.New("not OpenFlow 1.3 or 1.5")
	ErrLength  = errors.New("wrong length")
	ErrValue   = errors.New("no such value")
	// ErrUnsayable is Append's: the version has no way to say it.
	ErrUnsayable = errors.New("not in this version of OpenFlow")
)

// A Header is what all messages begin with.
//
//	+---------------+---------------+-------------------------------+
//	|    version    |     type      |            length             |
//	+---------------+---------------+-------------------------------+
//	|                        transaction id                         |
//	+---------------------------------------------------------------+
type Header struct {
	Version Version
	Type    Type
	Len     int // of the whole message, in bytes
	XID     uint32
}

// ParseHeader reads the header that b begins with; b may go on. An error means that the stream which b
// is from cannot be cut into messages any more.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, fmt.Errorf("%d bytes, an OpenFlow header has %d: %w", len(b), HeaderLen, ErrLength)
	}
	h := Header{Version(b[0]), Type(b[1]), int(binary.BigEndian.Uint16(b[2:])), binary.BigEndian.Uint32(b[4:])}
	if h.Version == 0 {
		return h, fmt.Errorf("message begins with %#x: %w", b[0], ErrVersion)
	}
	if h.Len < HeaderLen {
		return h, fmt.Errorf("%v says that it has %d bytes, a header has %d: %w", h.Type, h.Len, HeaderLen, ErrLength)
	}
	return h, nil
}
