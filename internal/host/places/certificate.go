package places

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// TellTrust hands the keys and certificates of all locators to those who sign.
func (p *Places) TellTrust() {
	if p.home.NetworkKey == nil {
		if p.Member() {
			p.Log.Warn("this host has the credential of a network with keys, and was told that the network is open: its flows stay where they are, and no message between hosts counts", "network", p.home.Network)
			p.Flows.Distrusts()
			return
		}
		p.Flows.Trusts(nil)
		return
	}
	keys := &session.Keys{Host: p.Keys.Now(), Network: p.home.networkKeys(), Certificates: map[sid.Locator]wire.Certificate{}, Revoked: map[wire.Key]bool{}}
	for _, key := range p.home.Revoked {
		keys.Revoked[wire.Key(key)] = true
	}
	for _, f := range p.former {
		addCertificate(keys, f.Locator, f.Certificate)
	}
	for i := range p.list {
		addCertificate(keys, p.list[i].Locator, p.list[i].Certificate)
	}
	p.Keys.Sign(keys, p.home.Succession)
	p.Flows.Trusts(keys)
}

// NetworkKeys takes the keys of the network that count from now on.
func (p *Places) NetworkKeys(list [][]byte) {
	if p.home == nil || p.home.NetworkKey == nil || len(list) == 0 {
		return
	}
	p.home.NetworkKeys, p.unsaved = list, true
	p.TellTrust()
}

// networkKeys are those that certificates may be of.
func (h *Home) networkKeys() (list []ed25519.PublicKey) {
	for _, k := range h.NetworkKeys {
		if len(k) == ed25519.PublicKeySize {
			list = append(list, k)
		}
	}
	if len(list) == 0 {
		list = append(list, h.NetworkKey)
	}
	return list
}

// Revoked takes no certificate of the keys any more; all: there are no others.
func (p *Places) Revoked(list []*apiv1.Revocation, all bool) {
	if p.home == nil {
		return
	}
	var keys [][]byte
	if !all {
		keys = slices.Clone(p.home.Revoked)
	}
	for _, r := range list {
		known := slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, r.Key) })
		if len(r.Key) == ed25519.PublicKeySize && !known {
			keys = append(keys, r.Key)
		}
	}
	p.home.Revoked, p.unsaved = keys, true
	p.TellTrust()
}

func addCertificate(keys *session.Keys, l sid.Locator, b []byte) {
	if c, err := wire.ParseCertificate(b); err == nil { // it was checked when it came
		keys.Certificates[l] = c
	}
}

// CheckCertificate says what is wrong with a certificate that the controller gave. Without one flows cannot move
// to or from the locator.
func (h *Home) CheckCertificate(l sid.Locator, b []byte) error {
	if h.NetworkKey == nil {
		return nil
	}
	c, err := wire.ParseCertificate(b)
	if err == nil {
		err = wire.ErrCertificate
		for _, key := range h.networkKeys() {
			if err = c.Check(key, time.Now().Unix()); err == nil {
				break
			}
		}
	}
	if err == nil && c.Locator != l {
		err = fmt.Errorf("it is for locator %v", c.Locator)
	}
	return err
}

// Certified takes a fresh certificate, which the controller sends before the one of before ends.
func (p *Places) Certified(a *apiv1.Attached) {
	prefix, err := netip.ParsePrefix(a.Locator)
	if err != nil || p.home == nil {
		return
	}
	l := sid.LocatorOf(prefix.Addr())
	at, f := p.At(l), slices.IndexFunc(p.former, func(f Former) bool { return f.Locator == l })
	if at == nil && f < 0 {
		return // left meanwhile
	}
	if err := p.home.CheckCertificate(l, a.Certificate); err != nil {
		p.Log.Warn("a fresh certificate is of no use; the old one goes on", "locator", l, "error", err)
		return
	}
	if at != nil {
		at.Certificate = a.Certificate
	} else {
		p.former[f].Certificate = a.Certificate
	}
	if len(a.Succession) > 0 {
		p.home.Succession = a.Succession
	}
	p.unsaved = true
	p.TellTrust()
}

// CertificateValid is for how long a certificate was given. It begins JoinSkew before that, for clocks that are late.
func CertificateValid(c wire.Certificate) time.Duration {
	return time.Unix(c.NotAfter, 0).Sub(time.Unix(c.NotBefore, 0).Add(api.JoinSkew))
}

// CertificateLeft is the share of a certificate's time that is left.
func CertificateLeft(c wire.Certificate, now time.Time) float64 {
	return max(0, min(1, time.Unix(c.NotAfter, 0).Sub(now).Seconds()/max(1, CertificateValid(c).Seconds())))
}
