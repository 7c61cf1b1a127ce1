package wire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// Auth ends every message that can move a flow: certificates of the sender's locators and its
// signature over all that stands before the signature. Both are empty where the network is open.
//
//	+---------------+---------------+-------------------------------+
//	|certificates n |flags      S G |               0               |
//	+---------------+---------------+-------------------------------+
//	|  n certificates of 120 bytes ...                              |
//	|  S: the succession of the host's keys, 112 bytes ...          |
//	|  G: the host's signature, Ed25519, 64 bytes ...               |
type Auth struct {
	Certificates []Certificate // at most MaxCertificates
	Succession   *Succession   // nil where the host has had one key only
	Signature    []byte        // 64 bytes or none
}

// MaxCertificates is how many a message can carry: of the old and the new locator, and of a flow's first.
const MaxCertificates = 3

const (
	authLen      = 4
	signatureLen = ed25519.SignatureSize
	flagSigned   = 1 << 0
	flagSucceeds = 1 << 1
)

// Errors of Verify.
var (
	ErrUnsigned  = errors.New("not signed")
	ErrSignature = errors.New("signature does not fit")
	ErrUncovered = errors.New("no certificate for the locator")
)

func (a *Auth) len() int {
	n := authLen + len(a.Certificates)*CertificateLen + len(a.Signature)
	if a.Succession != nil {
		n += SuccessionLen
	}
	return n
}

// append writes the trailer.
func (a *Auth) append(b []byte) []byte {
	if len(a.Certificates) > MaxCertificates || len(a.Signature) != 0 && len(a.Signature) != signatureLen {
		panic(fmt.Sprintf("wire: %d certificates, signature of %d bytes", len(a.Certificates), len(a.Signature)))
	}
	var flags byte
	if len(a.Signature) != 0 {
		flags = flagSigned
	}
	if a.Succession != nil {
		flags |= flagSucceeds
	}
	b = append(b, byte(len(a.Certificates)), flags, 0, 0)
	for i := range a.Certificates {
		b = a.Certificates[i].Append(b)
	}
	if a.Succession != nil {
		b = a.Succession.Append(b)
	}
	return append(b, a.Signature...)
}

func parseAuth(b []byte) (a Auth, err error) {
	if len(b) < authLen {
		return a, fmt.Errorf("no room for authenticity: %w", ErrLength)
	}
	n, signed, succeeds := int(b[0]), b[1]&flagSigned != 0, b[1]&flagSucceeds != 0
	want := authLen + n*CertificateLen
	if succeeds {
		want += SuccessionLen
	}
	if signed {
		want += signatureLen
	}
	if n > MaxCertificates || len(b) != want {
		return a, fmt.Errorf("authenticity of %d bytes with %d certificates, want %d: %w", len(b), n, want, ErrLength)
	}
	for i := range n {
		a.Certificates = append(a.Certificates, parseCertificate(b[authLen+i*CertificateLen:]))
	}
	if succeeds {
		s, err := ParseSuccession(b[authLen+n*CertificateLen:][:SuccessionLen])
		if err != nil {
			return a, err
		}
		a.Succession = &s
	}
	if signed {
		a.Signature = append([]byte(nil), b[want-signatureLen:]...)
	}
	return a, nil
}

// KeyID is the name of a key in message headers.
func KeyID(key ed25519.PublicKey) uint32 {
	sum := sha256.Sum256(key)
	return max(1, binary.BigEndian.Uint32(sum[:]))
}

// Sign fills in the signature of a message whose other fields are complete.
func Sign(m Message, key ed25519.PrivateKey) Message {
	public := key.Public().(ed25519.PublicKey)
	empty := make([]byte, signatureLen)
	b := with(m, KeyID(public), empty).Append(nil)
	return with(m, KeyID(public), ed25519.Sign(key, b[:len(b)-signatureLen]))
}

// with returns the message under another key and signature; those that carry none stay as they are.
func with(m Message, key uint32, signature []byte) Message {
	switch m := m.(type) {
	case Renegotiate:
		m.KeyID, m.Auth.Signature = key, signature
		return m
	case Resume:
		m.KeyID, m.Auth.Signature = key, signature
		return m
	case FlowFail:
		m.KeyID, m.Auth.Signature = key, signature
		return m
	}
	return m
}

// AuthOf is the trailer of a message that has one.
func AuthOf(m Message) (Auth, bool) {
	switch m := m.(type) {
	case Renegotiate:
		return m.Auth, true
	case Resume:
		return m.Auth, true
	case FlowFail:
		return m.Auth, true
	}
	return Auth{}, false
}

// Verify checks that one host key owns all the locators at time now (seconds since 1970), by
// certificates of the network's key, and that this host signed the message.
func Verify(m Message, network ed25519.PublicKey, now int64, locators ...sid.Locator) error {
	return VerifyBy(m, func(c *Certificate) error { return c.Check(network, now) }, locators...)
}

// VerifyBy is Verify for who checks certificates himself: a host sees the same ones again and again.
func VerifyBy(m Message, check func(*Certificate) error, locators ...sid.Locator) error {
	auth, ok := AuthOf(m)
	if !ok || auth.Signature == nil || len(auth.Certificates) == 0 {
		return fmt.Errorf("%v: %w", m.Type(), ErrUnsigned)
	}
	key := auth.Certificates[0].Key
	for _, l := range locators {
		if err := covered(auth.Certificates, key, check, l); err != nil {
			return fmt.Errorf("%v: %w", m.Type(), err)
		}
	}
	b := m.Append(nil)
	if !ed25519.Verify(key[:], b[:len(b)-signatureLen], auth.Signature) {
		return fmt.Errorf("%v: %w", m.Type(), ErrSignature)
	}
	return nil
}

// covered looks for a good certificate of the locator for the key.
func covered(list []Certificate, key Key, check func(*Certificate) error, l sid.Locator) error {
	err := fmt.Errorf("%w %v of key %08x", ErrUncovered, l, KeyID(key[:]))
	for i := range list {
		if c := &list[i]; c.Locator == l && c.Key == key {
			if err = check(c); err == nil {
				return nil
			}
		}
	}
	return err
}
