package wire

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"

	"scaffold.dev/scaffold/sid"
)

// A Permit is a service's word that a host may serve it for a while, docs/protocol.md §5.6. It is no
// secret: only who has the host's key can use it.
//
//	+---------------------------------------------------------------+
//	|                            ssID                               |
//	+---------------------------------------------------------------+
//	|                          0 (pad)                              |
//	+---------------------------------------------------------------+
//	|                           suffix                              |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|  service's public key, Ed25519, 32 bytes ...                  |
//	+---------------------------------------------------------------+
//	|  host's public key, Ed25519, 32 bytes ...                     |
//	+---------------------------------------------------------------+
//	|            not before, seconds since 1970 UTC                 |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|            not after, seconds since 1970 UTC                  |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|  service's signature over the above, Ed25519, 64 bytes ...    |
type Permit struct {
	Service    sid.ServiceID
	ServiceKey Key
	Host       Key
	NotBefore  int64 // seconds since 1970 UTC, both ends included
	NotAfter   int64
	Signature  [signatureLen]byte
}

// PermitLen is the size in bytes of a permit.
const PermitLen = 4 + 4 + 8 + 32 + 32 + 8 + 8 + signatureLen

// What keeps these signatures apart from all others that a key makes.
const (
	permitContext       = "scaffold service permit 1\x00"
	registrationContext = "scaffold registration 1\x00"
)

// Errors of a permit.
var (
	ErrPermitForged  = errors.New("the permit is not signed by the key that it names")
	ErrPermitKey     = errors.New("the permit is of another key than the service's")
	ErrPermitService = errors.New("the permit is for another service")
	ErrPermitHost    = errors.New("the permit is for another host")
	ErrPermitEarly   = errors.New("the permit is not valid yet: compare the clocks")
	ErrPermitLate    = errors.New("the permit has expired")
	ErrPermitProof   = errors.New("the registration is not signed by the host that the permit names")
)

// Delegate makes a permit with a service's key.
func Delegate(service ed25519.PrivateKey, id sid.ServiceID, host ed25519.PublicKey, notBefore, notAfter int64) Permit {
	p := Permit{Service: id, ServiceKey: Key(service.Public().(ed25519.PublicKey)), Host: Key(host), NotBefore: notBefore, NotAfter: notAfter}
	copy(p.Signature[:], ed25519.Sign(service, p.signed()))
	return p
}

// Check says why the permit does not let the host with the key serve the service at time now, in seconds
// since 1970 UTC.
func (p *Permit) Check(id sid.ServiceID, service []byte, host []byte, now int64) error {
	switch {
	case p.Service != id:
		return fmt.Errorf("%w: %v", ErrPermitService, p.Service)
	case string(service) != string(p.ServiceKey[:]):
		return ErrPermitKey
	case string(host) != string(p.Host[:]):
		return fmt.Errorf("%w, with the key %08x", ErrPermitHost, KeyID(p.Host[:]))
	case !ed25519.Verify(p.ServiceKey[:], p.signed(), p.Signature[:]):
		return ErrPermitForged
	}
	return p.Current(now)
}

// Current is the part of Check that a permit which passed once can still fail.
func (p *Permit) Current(now int64) error {
	switch {
	case now < p.NotBefore:
		return ErrPermitEarly
	case now > p.NotAfter:
		return ErrPermitLate
	}
	return nil
}

func (p *Permit) signed() []byte {
	b := p.Append([]byte(permitContext))
	return b[:len(b)-signatureLen]
}

// Append writes the permit behind b.
func (p *Permit) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, p.Service.SS)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Service.Suffix))
	b = append(append(b, p.ServiceKey[:]...), p.Host[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(p.NotBefore))
	b = binary.BigEndian.AppendUint64(b, uint64(p.NotAfter))
	return append(b, p.Signature[:]...)
}

// ParsePermit reads what Append wrote; it does not check it.
func ParsePermit(b []byte) (Permit, error) {
	if len(b) != PermitLen {
		return Permit{}, fmt.Errorf("permit of %d bytes, want %d: %w", len(b), PermitLen, ErrLength)
	}
	p := Permit{
		Service:    sid.ServiceID{SS: binary.BigEndian.Uint32(b), Suffix: sid.Suffix(binary.BigEndian.Uint64(b[8:]))},
		ServiceKey: Key(b[16:]),
		Host:       Key(b[48:]),
		NotBefore:  int64(binary.BigEndian.Uint64(b[80:])),
		NotAfter:   int64(binary.BigEndian.Uint64(b[88:])),
		Signature:  [signatureLen]byte(b[96:]),
	}
	if binary.BigEndian.Uint32(b[4:]) != 0 || !p.Service.Valid() {
		return Permit{}, fmt.Errorf("permit for %v: no service can be called so", p.Service)
	}
	return p, nil
}

// A Stand is what a host signs of each registration that needs a permit: in this session, whose challenge
// the controller made, it serves this triple.
type Stand struct {
	Challenge []byte
	Triple    sid.Triple
}

// Sign signs it with the host's key.
func (s Stand) Sign(host ed25519.PrivateKey) []byte { return ed25519.Sign(host, s.signed()) }

// Check says whether the host with the key signed it.
func (s Stand) Check(host ed25519.PublicKey, signature []byte) error {
	if !ed25519.Verify(host, s.signed(), signature) {
		return ErrPermitProof
	}
	return nil
}

func (s Stand) signed() []byte {
	b := append([]byte(registrationContext), byte(len(s.Challenge)))
	b = append(b, s.Challenge...)
	b = binary.BigEndian.AppendUint32(b, s.Triple.Service.SS)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Triple.Service.Suffix))
	b = append(b, byte(s.Triple.Proto))
	return binary.BigEndian.AppendUint16(b, s.Triple.Port)
}
