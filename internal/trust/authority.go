package trust

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/url"
	"time"
)

// serverName is in every controller's certificate. Clients ask for it and not for an address: hosts reach the
// controller by their router, which has many.
const serverName = "controller.scaffold.internal"

// An authority's certificate has no end: the key is what is trusted, and it is rotated, not renewed. Both dates
// are constants so that the certificate follows from the key (RFC 5280 §4.1.2.5 has the second).
var (
	caBegin = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	caEnd   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// An Authority certifies the members of a network.
type Authority struct {
	network     string
	key         ed25519.PrivateKey
	certificate *x509.Certificate
}

// NewAuthority is the one of the network's key. Whoever makes it from the same seed and name makes the same.
func NewAuthority(seed []byte, network string) (*Authority, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("the network's key has %d bytes, want %d", len(seed), ed25519.SeedSize)
	}
	a := &Authority{network: network, key: ed25519.NewKeyFromSeed(seed)}
	pin := PinOf(a.Public())
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "scaffold network " + network},
		NotBefore: caBegin, NotAfter: caEnd, SubjectKeyId: pin[:20],
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("the network's certificate: %w", err)
	}
	a.certificate, err = x509.ParseCertificate(der)
	return a, err
}

// Public is the network's public key.
func (a *Authority) Public() ed25519.PublicKey { return a.key.Public().(ed25519.PublicKey) }

// Key signs locator certificates, docs/protocol.md §6.6.
func (a *Authority) Key() ed25519.PrivateKey { return a.key }

// Certificate is the authority's own, DER.
func (a *Authority) Certificate() []byte { return a.certificate.Raw }

// Issue certifies a member, DER.
func (a *Authority) Issue(who Identity, notBefore, notAfter time.Time) ([]byte, error) {
	if len(who.Key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("the key of %v has %d bytes, want %d (Ed25519)", who, len(who.Key), ed25519.PublicKeySize)
	}
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	var names []string
	if who.Role == Controller {
		usage, names = append(usage, x509.ExtKeyUsageServerAuth), []string{serverName}
	}
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: who.Name, OrganizationalUnit: []string{string(who.Role)}}, NotBefore: notBefore, NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usage, DNSNames: names, BasicConstraintsValid: true,
		URIs: []*url.URL{nameURI(a.network, who.Role, who.Name)},
	}, who.Key)
}

func (a *Authority) sign(c *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	c.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", c.Subject.CommonName, err)
	}
	return der, nil
}
