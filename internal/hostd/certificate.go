package hostd

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"net/netip"
	"slices"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// tellTrust hands the keys and certificates of all locators to those who sign.
func (d *daemon) tellTrust() {
	if d.home.NetworkKey == nil {
		d.sessions.trusts(nil)
		return
	}
	keys := &session.Keys{Host: d.keys.now(), Network: d.home.networkKeys(), Certificates: map[sid.Locator]wire.Certificate{}, Revoked: map[wire.Key]bool{}}
	for _, key := range d.home.Revoked {
		keys.Revoked[wire.Key(key)] = true
	}
	for _, f := range d.former {
		addCertificate(keys, f.Locator, f.Certificate)
	}
	for i := range d.places {
		addCertificate(keys, d.places[i].Locator, d.places[i].Certificate)
	}
	d.keys.sign(keys, d.home.Succession)
	d.sessions.trusts(keys)
}

// networkKeys takes the keys of the network that count from now on.
func (d *daemon) networkKeys(list [][]byte) {
	if d.home == nil || d.home.NetworkKey == nil || len(list) == 0 {
		return
	}
	d.home.NetworkKeys, d.unsaved = list, true
	d.tellTrust()
}

// networkKeys are those that certificates may be of.
func (h *home) networkKeys() (list []ed25519.PublicKey) {
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

// renewed keeps a fresh credential, for the connections to come.
func (d *daemon) renewed(fresh *apiv1.Credential) {
	if err := d.credentials.Take(fresh); err != nil {
		d.log.Error("credential", "error", err)
	}
}

// revoked takes no certificate of the keys any more; all: there are no others.
func (d *daemon) revoked(list []*apiv1.Revocation, all bool) {
	if d.home == nil {
		return
	}
	var keys [][]byte
	if !all {
		keys = slices.Clone(d.home.Revoked)
	}
	for _, r := range list {
		known := slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, r.Key) })
		if len(r.Key) == ed25519.PublicKeySize && !known {
			keys = append(keys, r.Key)
		}
	}
	d.home.Revoked, d.unsaved = keys, true
	d.tellTrust()
}

func addCertificate(keys *session.Keys, l sid.Locator, b []byte) {
	if c, err := wire.ParseCertificate(b); err == nil { // it was checked when it came
		keys.Certificates[l] = c
	}
}

// checkCertificate says what is wrong with a certificate that the controller gave. Without one flows cannot move
// to or from the locator.
func (h *home) checkCertificate(l sid.Locator, b []byte) error {
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

// certified takes a fresh certificate, which the controller sends before the one of before ends.
func (d *daemon) certified(a *apiv1.Attached) {
	prefix, err := netip.ParsePrefix(a.Locator)
	if err != nil || d.home == nil {
		return
	}
	l := sid.LocatorOf(prefix.Addr())
	p, f := d.placeWith(l), slices.IndexFunc(d.former, func(f former) bool { return f.Locator == l })
	if p == nil && f < 0 {
		return // left meanwhile
	}
	if err := d.home.checkCertificate(l, a.Certificate); err != nil {
		d.log.Warn("a fresh certificate is of no use; the old one goes on", "locator", l, "error", err)
		return
	}
	if p != nil {
		p.Certificate = a.Certificate
	} else {
		d.former[f].Certificate = a.Certificate
	}
	if len(a.Succession) > 0 {
		d.home.Succession = a.Succession
	}
	d.unsaved = true
	d.tellTrust()
}
