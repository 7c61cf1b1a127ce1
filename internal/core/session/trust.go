package session

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// Trust signs and checks messages, docs/protocol.md §6.6. Keys is the one that hosts use.
type Trust interface {
	// Sign completes a message with certificates for the locators and a signature.
	Sign(m wire.Message, locators ...sid.Locator) wire.Message
	// Verify returns the key by which the sender of m is known, its first one, if it signed m and owns all the locators
	// at time now.
	Verify(now time.Time, m wire.Message, locators ...sid.Locator) (wire.Key, error)
	// Succeeds reports whether what is signed carries a succession beside the certificates.
	Succeeds() bool
}

// Keys are a host's key, the network's public key and the host's certificates by locator.
type Keys struct {
	Host         ed25519.PrivateKey
	Network      []ed25519.PublicKey // more than one while it is rotated
	Certificates map[sid.Locator]wire.Certificate
	Succession   *wire.Succession  // nil where Host is the first key that this host has
	Revoked      map[wire.Key]bool // whose certificates count no more, whatever they say

	passed    map[wire.Certificate]struct{} // others' that the network did sign
	succeeded map[succeeded]struct{}        // likewise
}

// A succeeded is a succession and the key that it is about.
type succeeded struct {
	key wire.Key
	by  wire.Succession
}

// mostPassed bounds the memory of certificates: the next ones are checked anew.
const mostPassed = 4096

// Sign implements Trust. Locators without a certificate are left out, and then nobody takes the message.
func (k *Keys) Sign(m wire.Message, locators ...sid.Locator) wire.Message {
	var list []wire.Certificate
	for i, l := range locators {
		if c, ok := k.Certificates[l]; ok && !slices.Contains(locators[:i], l) {
			list = append(list, c)
		}
	}
	switch x := m.(type) {
	case wire.Renegotiate:
		x.Auth.Certificates, x.Auth.Succession = list, k.Succession
		m = x
	case wire.Resume:
		x.Auth.Certificates, x.Auth.Succession = list, k.Succession
		m = x
	case wire.FlowFail:
		x.Auth.Certificates, x.Auth.Succession = list, k.Succession
		m = x
	}
	return wire.Sign(m, k.Host)
}

// Succeeds implements Trust.
func (k *Keys) Succeeds() bool { return k.Succession != nil }

// Verify implements Trust.
func (k *Keys) Verify(now time.Time, m wire.Message, locators ...sid.Locator) (wire.Key, error) {
	check := func(c *wire.Certificate) error { return k.check(c, now.Unix()) }
	if err := wire.VerifyBy(m, check, locators...); err != nil {
		return wire.Key{}, fmt.Errorf("session: %w", err)
	}
	auth, _ := wire.AuthOf(m)
	return k.origin(auth, now.Unix())
}

// origin is the first key of the host that signed: flows know their peer by it, whichever it has now.
func (k *Keys) origin(auth wire.Auth, now int64) (wire.Key, error) {
	key := auth.Certificates[0].Key
	if auth.Succession == nil {
		return key, nil
	}
	x := succeeded{key, *auth.Succession}
	if _, ok := k.succeeded[x]; ok {
		return x.by.Origin, x.by.Current(now)
	}
	if err := k.byNetwork(func(network ed25519.PublicKey) error { return x.by.Check(network, key, now) }); err != nil {
		return wire.Key{}, fmt.Errorf("session: %w", err)
	}
	if k.succeeded == nil || len(k.succeeded) >= mostPassed {
		k.succeeded = map[succeeded]struct{}{}
	}
	k.succeeded[x] = struct{}{}
	return x.by.Origin, nil
}

// byNetwork is what the check says with the one of the network's keys that passes, or with the last.
func (k *Keys) byNetwork(check func(ed25519.PublicKey) error) error {
	err := wire.ErrCertificate
	for _, network := range k.Network {
		if err = check(network); err == nil {
			return nil
		}
	}
	return err
}

// check spares the network's signature on a certificate that has passed before: a host that moves ten
// thousand flows sends its certificates a thousand times.
func (k *Keys) check(c *wire.Certificate, now int64) error {
	if k.Revoked[c.Key] {
		return fmt.Errorf("%v: %w", c.Locator, wire.ErrRevoked)
	}
	if _, ok := k.passed[*c]; ok {
		return c.Current(now)
	}
	if err := k.byNetwork(func(network ed25519.PublicKey) error { return c.Check(network, now) }); err != nil {
		return err
	}
	if k.passed == nil || len(k.passed) >= mostPassed {
		k.passed = map[wire.Certificate]struct{}{}
	}
	k.passed[*c] = struct{}{}
	return nil
}

func (e *Engine) sign(m wire.Message, locators ...sid.Locator) wire.Message {
	if e.cfg.Trust == nil {
		return m
	}
	return e.cfg.Trust.Sign(m, locators...)
}

// Authentic reports whether a FLOW-FAIL is its sender's own, and counts one that is not.
func (e *Engine) Authentic(now time.Time, m wire.Message) bool {
	f, ok := m.(wire.FlowFail)
	if ok {
		_, ok = e.verify(now, f, f.Locator)
	}
	return ok
}

func (e *Engine) verify(now time.Time, m wire.Message, locators ...sid.Locator) (wire.Key, bool) {
	if e.cfg.Trust == nil {
		return wire.Key{}, true
	}
	key, err := e.cfg.Trust.Verify(now, m, locators...)
	if err != nil {
		e.count("not_authentic")
	}
	return key, err == nil
}

// trusts: the key, a host's first, is the one that moved the peer before or, the first time, that owns where the peer is.
func (e *Engine) trusts(f *flow, key wire.Key, locators ...sid.Locator) bool {
	if e.cfg.Trust == nil || f.peerKey != (wire.Key{}) && f.peerKey == key {
		return true
	}
	return f.peerKey == (wire.Key{}) && slices.Contains(locators, f.Peer.Locator)
}
