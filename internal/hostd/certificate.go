package hostd

import (
	"fmt"
	"net/netip"
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
	keys := &session.Keys{Host: d.key, Network: d.home.NetworkKey, Certificates: map[sid.Locator]wire.Certificate{}}
	for _, f := range d.former {
		addCertificate(keys, f.Locator, f.Certificate)
	}
	for i := range d.places {
		addCertificate(keys, d.places[i].Locator, d.places[i].Certificate)
	}
	d.sessions.trusts(keys)
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
		err = c.Check(h.NetworkKey, time.Now().Unix())
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
	p := d.placeWith(sid.LocatorOf(prefix.Addr()))
	if p == nil {
		return // left meanwhile
	}
	if err := d.home.checkCertificate(p.Locator, a.Certificate); err != nil {
		d.log.Warn("a fresh certificate is of no use; the old one goes on", "locator", p.Locator, "error", err)
		return
	}
	p.Certificate, d.unsaved = a.Certificate, true
	d.tellTrust()
}
