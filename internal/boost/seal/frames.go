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
}

// NewSealer protects what is sent in a direction of the connection.
func NewSealer(m frame.Protection, s Secret, connection uint64, d Direction) *Sealer {
	return &Sealer{mode: m, key: newKey(s.derive("data", connection, d))}
}

// Seal appends to dst, which ends with the header of a frame, what follows that on the wire: its payload, protected, and
// Overhead bytes. So what is authenticated lies there in one piece, and is copied once. The payload is left as it is, for it may be
// sent again on another connection; dst does not overlap it. With room in dst nothing is allocated.
func (s *Sealer) Seal(dst, payload []byte) []byte {
	at := len(dst) - frame.HeaderLen
	if s.mode == frame.Sealed {
		return s.key.aead.Seal(dst, s.key.next(len(payload)), payload, dst[at:])
	}
	for ; len(payload) > cached; payload = payload[cached:] {
		dst = append(dst, payload[:cached]...)
	}
	dst = append(dst, payload...)
	if s.mode == frame.Authenticated {
		return s.key.aead.Seal(dst, s.key.next(len(dst)-at), nil, dst[at:])
	}
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// cached is how many bytes are copied at a time: what is copied is read again at once, and the runtime's memmove writes a mebibyte
// and more past the processor's caches.
const cached = 256 << 10

// An Opener is the other end of a Sealer. It is of one goroutine.
type Opener struct {
	mode frame.Protection
	key  *key
}

// NewOpener opens what a Sealer of the same arguments has protected.
func NewOpener(m frame.Protection, s Secret, connection uint64, d Direction) *Opener {
	return &Opener{mode: m, key: newKey(s.derive("data", connection, d))}
}

// Open opens a frame where it lies, and returns its payload there. After an error nothing of it is to be used. Nothing is
// allocated.
func (o *Opener) Open(f []byte) (payload []byte, err error) {
	end := len(f) - o.mode.Overhead()
	if end < frame.HeaderLen {
		return nil, ErrForged
	}
	header, payload, trailer := f[:frame.HeaderLen], f[frame.HeaderLen:end], f[end:]
	switch o.mode {
	case frame.Sealed:
		payload, err = o.key.aead.Open(payload[:0], o.key.next(len(payload)), f[frame.HeaderLen:], header)
	case frame.Authenticated:
		_, err = o.key.aead.Open(nil, o.key.next(end), trailer, f[:end])
	default:
		if binary.BigEndian.Uint32(trailer) != crc32.Checksum(f[:end], castagnoli) {
			err = ErrForged
		}
	}
	if err != nil {
		return nil, ErrForged
	}
	return payload, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
