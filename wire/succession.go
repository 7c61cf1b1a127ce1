package wire

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Succession is the network's word that a host's key took the place of another one, docs/protocol.md §6.6: who knows
// the host by its first key, the origin, knows it by this one too. The key itself is not in it: it is that of the
// certificates beside it.
//
//	+---------------------------------------------------------------+
//	|  the host's first public key, Ed25519, 32 bytes ...           |
//	+---------------------------------------------------------------+
//	|            not before, seconds since 1970 UTC                 |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|            not after, seconds since 1970 UTC                  |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|  network's signature over the key and the above, 64 bytes ... |
type Succession struct {
	Origin    Key
	NotBefore int64 // seconds since 1970 UTC, both ends included
	NotAfter  int64
	Signature [signatureLen]byte
}

// SuccessionLen is the size in bytes of a succession. It is less than that of a certificate: where there is room for one
// more of those, there is room for it.
const SuccessionLen = 32 + 8 + 8 + signatureLen

// successionContext keeps these signatures of the network apart from any others.
const successionContext = "scaffold key succession 1\x00"

// ErrSuccession says that a succession is not the network's word about the key beside it.
var ErrSuccession = errors.New("succession is not signed by the network")

// Succeed says with the network's key that the host whose first key was origin has this key now.
func Succeed(network ed25519.PrivateKey, key, origin ed25519.PublicKey, notBefore, notAfter int64) Succession {
	s := Succession{Origin: Key(origin), NotBefore: notBefore, NotAfter: notAfter}
	copy(s.Signature[:], ed25519.Sign(network, s.signed(Key(key))))
	return s
}

// Check verifies that the network says it of the key, and that it is valid at time now, in seconds since 1970 UTC.
func (s *Succession) Check(network ed25519.PublicKey, key Key, now int64) error {
	if err := s.Current(now); err != nil {
		return err
	}
	if !ed25519.Verify(network, s.signed(key), s.Signature[:]) {
		return ErrSuccession
	}
	return nil
}

// Current is the part of Check that a succession which passed once can still fail.
func (s *Succession) Current(now int64) error {
	if now < s.NotBefore || now > s.NotAfter {
		return fmt.Errorf("succession at %d, valid %d to %d: %w", now, s.NotBefore, s.NotAfter, ErrExpired)
	}
	return nil
}

func (s *Succession) signed(key Key) []byte {
	b := s.Append(append([]byte(successionContext), key[:]...))
	return b[:len(b)-signatureLen]
}

// Append writes the succession behind b.
func (s *Succession) Append(b []byte) []byte {
	b = append(b, s.Origin[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.NotBefore))
	b = binary.BigEndian.AppendUint64(b, uint64(s.NotAfter))
	return append(b, s.Signature[:]...)
}

// ParseSuccession reads what Append wrote; it does not check it.
func ParseSuccession(b []byte) (Succession, error) {
	if len(b) != SuccessionLen {
		return Succession{}, fmt.Errorf("succession of %d bytes, want %d: %w", len(b), SuccessionLen, ErrLength)
	}
	return Succession{
		Origin:    Key(b),
		NotBefore: int64(binary.BigEndian.Uint64(b[32:])),
		NotAfter:  int64(binary.BigEndian.Uint64(b[40:])),
		Signature: [signatureLen]byte(b[48:]),
	}, nil
}
