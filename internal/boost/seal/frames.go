package seal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"scaffold.dev/scaffold/internal/boost/frame"
)

// ErrForged says that a frame is not the one that the other end sent next. Its connection is to end: what follows cannot be
// told from an attacker's bytes.
var ErrForged = errors.New("a frame is not what the other agent sent next: it was altered, left out, repeated, or is of another connection")

// A Sealer protects the frames of one direction of a data connection. It is of one goroutine.
type Sealer struct {
	mode frame.Protection
	key  *key
	over []byte // what is authenticated alone
}

// NewSealer protects what is sent in a direction of the connection.
func NewSealer(m frame.Protection, s Secret, connection uint64, d Direction) *Sealer {
	return &Sealer{mode: m, key: newKey(s.derive("data", connection, d))}
}

// Seal appends to dst what follows the header of a frame on the wire: its payload, protected, and Overhead bytes.
// The payload is left as it is, for it may be sent again on another connection; dst does not overlap it. With room in
// dst nothing is allocated.
func (s *Sealer) Seal(dst, header, payload []byte) []byte {
	switch s.mode {
	case frame.Sealed:
		return s.key.aead.Seal(dst, s.key.next(len(payload)), payload, header)
	case frame.Authenticated:
		s.over = append(append(s.over[:0], header...), payload...)
		return s.key.aead.Seal(append(dst, payload...), s.key.next(len(s.over)), nil, s.over)
	default:
		return binary.BigEndian.AppendUint32(append(dst, payload...), sum(header, payload))
	}
}

// An Opener is the other end of a Sealer. It is of one goroutine.
type Opener struct {
	mode frame.Protection
	key  *key
	over []byte
}

// NewOpener opens what a Sealer of the same arguments has protected.
func NewOpener(m frame.Protection, s Secret, connection uint64, d Direction) *Opener {
	return &Opener{mode: m, key: newKey(s.derive("data", connection, d))}
}

// Open appends to dst the payload of a frame; wire is what followed its header. dst may be wire[:0], else the two do not overlap.
// After an error nothing of the payload is to be used. With room in dst nothing is allocated.
func (o *Opener) Open(dst, header, wire []byte) ([]byte, error) {
	n := len(wire) - o.mode.Overhead()
	if n < 0 {
		return nil, ErrForged
	}
	payload, trailer := wire[:n], wire[n:]
	switch o.mode {
	case frame.Sealed:
		opened, err := o.key.aead.Open(dst, o.key.next(n), wire, header)
		if err != nil {
			return nil, ErrForged
		}
		return opened, nil
	case frame.Authenticated:
		o.over = append(append(o.over[:0], header...), payload...)
		if _, err := o.key.aead.Open(nil, o.key.next(len(o.over)), trailer, o.over); err != nil {
			return nil, ErrForged
		}
	default:
		if binary.BigEndian.Uint32(trailer) != sum(header, payload) {
			return nil, ErrForged
		}
	}
	return append(dst, payload...), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, header), castagnoli, payload)
}
