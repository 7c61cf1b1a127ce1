package wire

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// A Key is a host's public key, Ed25519.
type Key [ed25519.PublicKeySize]byte

// A Certificate is the network's word that a host owns a locator, docs/protocol.md §6.6.
//
//	+---------------------------------------------------------------+
//	|  host's public key, Ed25519, 32 bytes ...                     |
//	+---------------------------------------------------------------+
//	|                          locator                              |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|            not before, seconds since 1970 UTC                 |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|            not after, seconds since 1970 UTC                  |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|  network's signature over the above, Ed25519, 64 bytes ...    |
type Certificate struct {
	Key       Key
	Locator   sid.Locator
	NotBefore int64 // seconds since 1970 UTC, both ends included
	NotAfter  int64
	Signature [signatureLen]byte
}

// CertificateLen is the size in bytes of a certificate.
const CertificateLen = 32 + 8 + 8 + 8 + signatureLen

// certificateContext keeps the network's signatures over certificates apart from any others it makes.
const certificateContext = "scaffold locator certificate 1\x00"

// Errors of Check.
var (
	ErrExpired     = errors.New("certificate is not valid at this time")
	ErrCertificate = errors.New("certificate is not signed by the network")
	ErrRevoked     = errors.New("certificate is of a key that was revoked")
)

// Certify makes a certificate for a host's key with the network's.
func Certify(network ed25519.PrivateKey, host ed25519.PublicKey, l sid.Locator, notBefore, notAfter int64) Certificate {
	c := Certificate{Key: Key(host), Locator: l, NotBefore: notBefore, NotAfter: notAfter}
	copy(c.Signature[:], ed25519.Sign(network, c.signed()))
	return c
}

// Check verifies the network's signature and the validity at time now, in seconds since 1970 UTC.
func (c *Certificate) Check(network ed25519.PublicKey, now int64) error {
	if err := c.Current(now); err != nil {
		return err
	}
	if !ed25519.Verify(network, c.signed(), c.Signature[:]) {
		return fmt.Errorf("%v: %w", c.Locator, ErrCertificate)
	}
	return nil
}

// Current is the part of Check that a certificate which passed once can still fail.
func (c *Certificate) Current(now int64) error {
	if now < c.NotBefore || now > c.NotAfter {
		return fmt.Errorf("%v at %d, valid %d to %d: %w", c.Locator, now, c.NotBefore, c.NotAfter, ErrExpired)
	}
	return nil
}

func (c *Certificate) signed() []byte {
	b := c.Append([]byte(certificateContext))
	return b[:len(b)-signatureLen]
}

// Append writes the certificate behind b.
func (c *Certificate) Append(b []byte) []byte {
	b = append(b, c.Key[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Locator))
	b = binary.BigEndian.AppendUint64(b, uint64(c.NotBefore))
	b = binary.BigEndian.AppendUint64(b, uint64(c.NotAfter))
	return append(b, c.Signature[:]...)
}

// ParseCertificate reads what Append wrote; it does not check it.
func ParseCertificate(b []byte) (Certificate, error) {
	if len(b) != CertificateLen {
		return Certificate{}, fmt.Errorf("certificate of %d bytes, want %d: %w", len(b), CertificateLen, ErrLength)
	}
	return parseCertificate(b), nil
}

func parseCertificate(b []byte) Certificate {
	return Certificate{
		Key:       Key(b),
		Locator:   sid.Locator(binary.BigEndian.Uint64(b[32:])),
		NotBefore: int64(binary.BigEndian.Uint64(b[40:])),
		NotAfter:  int64(binary.BigEndian.Uint64(b[48:])),
		Signature: [signatureLen]byte(b[56:]),
	}
}
