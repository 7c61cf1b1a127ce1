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
	// Verify returns the key that signed m and that owns all the locators at time now.
	Verify(now time.Time, m wire.Message, locators ...sid.Locator) (wire.Key, error)
}

// Keys are a host's key, the network's public key and the host's certificates by locator.
type Keys struct {
	Host         ed25519.PrivateKey
	Network      ed25519.PublicKey
	Certificates map[sid.Locator]wire.Certificate
	Revoked      map[wire.Key]bool // whose certificates count no more, whatever they say

	passed map[wire.Certificate]struct{} // others' that the network did sign
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
		x.Auth.Certificates = list
		m = x
	case wire.Resume:
		x.Auth.Certificates = list
		m = x
	case wire.FlowFail:
		x.Auth.Certificates = list
		m = x
	}
	return wire.Sign(m, k.Host)
}

// Verify implements Trust.
func (k *Keys) Verify(now time.Time, m wire.Message, locators ...sid.Locator) (wire.Key, error) {
	check := func(c *wire.Certificate) error { return k.check(c, now.Unix()) }
	if err := wire.VerifyBy(m, check, locators...); err != nil {
		return wire.Key{}, fmt.Errorf("session: %w", err)
	}
	auth, _ := wire.AuthOf(m)
	return auth.Certificates[0].Key, nil
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
	if err := c.Check(k.Network, now); err != nil {
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

// trusts: the key is the one that moved the peer before or, the first time, that owns where the peer is.
func (e *Engine) trusts(f *flow, key wire.Key, locators ...sid.Locator) bool {
	if e.cfg.Trust == nil || f.peerKey != (wire.Key{}) && f.peerKey == key {
		return true
	}
	return f.peerKey == (wire.Key{}) && slices.Contains(locators, f.Peer.Locator)
}
