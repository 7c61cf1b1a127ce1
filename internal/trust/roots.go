package trust

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of Verify.
var (
	ErrNoRoots       = errors.New("the network's key is not known here yet: a moment later it is")
	ErrNoCertificate = errors.New("no certificate was shown")
	ErrOtherNetwork  = errors.New("its certificate is of another network")
	ErrExpired       = errors.New("its certificate has expired")
	ErrFuture        = errors.New("its certificate is not valid yet")
)

// Roots are the keys of one network: more than one while its key is rotated.
type Roots struct{ list []*x509.Certificate }

// NewRoots reads authorities' certificates, DER.
func NewRoots(ders ...[]byte) (*Roots, error) {
	r := &Roots{}
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("the network's certificate: %w", err)
		}
		if _, ok := c.PublicKey.(ed25519.PublicKey); !ok || !c.IsCA {
			return nil, errors.New("the network's certificate is not one of a network")
		}
		r.list = append(r.list, c)
	}
	if len(r.list) == 0 {
		return nil, errors.New("the network's certificate is missing")
	}
	return r, nil
}

// DER are the authorities' certificates.
func (r *Roots) DER() (ders [][]byte) {
	for _, c := range r.list {
		ders = append(ders, c.Raw)
	}
	return ders
}

// Pin is that of the key that certifies now: the last one.
func (r *Roots) Pin() Pin { return pinOf(r.list[len(r.list)-1]) }

// Has reports whether the key with that hash is one of them.
func (r *Roots) Has(p Pin) bool {
	return slices.ContainsFunc(r.list, func(c *x509.Certificate) bool { return pinOf(c) == p })
}

func pinOf(c *x509.Certificate) Pin {
	key, _ := c.PublicKey.(ed25519.PublicKey)
	return PinOf(key)
}

// Verify reads whom the certificate names if one of the roots vouches for it at time now. Errors say what is
// wrong in words for people, with the clocks where those may be the cause.
func (r *Roots) Verify(c *x509.Certificate, usage x509.ExtKeyUsage, now time.Time) (Identity, error) {
	who, err := r.verifyEver(c, usage)
	if err != nil {
		return Identity{}, err
	}
	return who, current(c, now)
}

// IssuerOf is the id, as Pin.String gives it, of the network's key by which a certificate says that it was made.
func IssuerOf(c *x509.Certificate) string {
	return hex.EncodeToString(c.AuthorityKeyId[:min(8, len(c.AuthorityKeyId))])
}

// Names reports whether a certificate says of its holder what is known of him, whoever signed it.
func Names(c *x509.Certificate, who Identity) bool {
	said, err := identityOf(c)
	return err == nil && said.Role == who.Role && said.Name == who.Name && said.Key.Equal(who.Key)
}

// ComeBack says how the holder of a certificate becomes a member again, where the network's key was replaced.
func ComeBack(c *x509.Certificate) string {
	const token = " (`scaffold token create` where the controller runs makes one)"
	if who, err := identityOf(c); err == nil && who.Role == Admin {
		return "`scaffold login --token T` lets you in again" + token
	}
	return "`scaffold join --token T` on this machine makes it a member again, under the same name" + token
}

// sameName reports whether a certificate says that it is of a network of this name.
func (r *Roots) sameName(c *x509.Certificate) bool {
	return slices.ContainsFunc(r.list, func(own *x509.Certificate) bool { return own.Subject.CommonName == c.Issuer.CommonName })
}

// Any reports whether one of the keys has one of the ids.
func (r *Roots) Any(ids []string) bool {
	return slices.ContainsFunc(r.list, func(c *x509.Certificate) bool { return slices.Contains(ids, pinOf(c).String()) })
}

// verifyEver is Verify but for the time.
func (r *Roots) verifyEver(c *x509.Certificate, usage x509.ExtKeyUsage) (Identity, error) {
	if r == nil {
		return Identity{}, ErrNoRoots
	}
	pool := x509.NewCertPool()
	for _, ca := range r.list {
		pool.AddCert(ca)
	}
	_, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: c.NotBefore, KeyUsages: []x509.ExtKeyUsage{usage}})
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return Identity{}, fmt.Errorf("%w (issued by %q with the key %s, ours is %v)", ErrOtherNetwork, c.Issuer.CommonName, IssuerOf(c), r.Pin())
	}
	if err != nil {
		return Identity{}, fmt.Errorf("its certificate cannot be used: %w", err)
	}
	return identityOf(c)
}

func current(c *x509.Certificate, now time.Time) error {
	why := error(nil)
	switch {
	case now.After(c.NotAfter):
		why = ErrExpired
	case now.Before(c.NotBefore):
		why = ErrFuture
	default:
		return nil
	}
	return fmt.Errorf("%w: it is valid from %s until %s, and this machine's clock says %s", why, Stamp(c.NotBefore), Stamp(c.NotAfter), Stamp(now))
}

// Stamp is a time as messages of all daemons write it: clocks of two machines are compared by it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }
