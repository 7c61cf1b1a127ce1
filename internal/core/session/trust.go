package session

import (
	"crypto/ed25519"
	"errors"
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
	// Passed reports whether m has certificates for all the locators that Verify has found good before: it costs a lookup.
	Passed(m wire.Message, locators ...sid.Locator) bool
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
	checked   uint64
}

// Checked is how many signatures were checked.
func (k *Keys) Checked() uint64 { return k.checked }

// Inherit takes over what other keys of the same host remember: what passed need not be checked again because this
// host has another certificate. Where the network has got other keys, or some were revoked, only they decide.
func (k *Keys) Inherit(from *Keys) {
	same := slices.EqualFunc(k.Network, from.Network, func(a, b ed25519.PublicKey) bool { return a.Equal(b) })
	if same {
		k.passed, k.succeeded = from.passed, from.succeeded
	}
	k.checked = from.checked
}

// Passed implements Trust.
func (k *Keys) Passed(m wire.Message, locators ...sid.Locator) bool {
	auth, ok := wire.AuthOf(m)
	if !ok || auth.Signature == nil || len(auth.Certificates) == 0 {
		return false
	}
	for _, l := range locators {
		if !slices.ContainsFunc(auth.Certificates, func(c wire.Certificate) bool {
			_, ok := k.passed[c]
			return ok && c.Locator == l && c.Key == auth.Certificates[0].Key && !k.Revoked[c.Key]
		}) {
			return false
		}
	}
	return true
}

// Untold is the Trust of a host that has not been told yet whether its network has keys: it believes nobody, and what
// it says is unsigned.
type Untold struct{}

// ErrUntold is in the errors of Untold.
var ErrUntold = errors.New("the network's key is not known yet")

// Sign implements Trust.
func (Untold) Sign(m wire.Message, _ ...sid.Locator) wire.Message { return m }

// Verify implements Trust.
func (Untold) Verify(time.Time, wire.Message, ...sid.Locator) (wire.Key, error) {
	return wire.Key{}, ErrUntold
}

// Passed implements Trust.
func (Untold) Passed(wire.Message, ...sid.Locator) bool { return false }

// Succeeds implements Trust.
func (Untold) Succeeds() bool { return false }

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
	err := wire.VerifyBy(m, check, locators...)
	if err == nil || errors.Is(err, wire.ErrSignature) {
		k.checked++ // the message's own
	}
	if err != nil {
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
		k.checked++
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

// A Proof is what a message has proved about its sender.
type Proof struct{ key wire.Key } // zero in an open network, and of what is never signed

// Prove checks the signatures of a message, nothing else; what does not pass is counted and of no use. It may cost a
// hundred microseconds for each certificate that was not seen before, and as much for the message.
func (e *Engine) Prove(now time.Time, m wire.Message) (Proof, bool) {
	locators, signed := needed(m)
	if !signed || e.cfg.Trust == nil {
		return Proof{}, true
	}
	key, err := e.cfg.Trust.Verify(now, m, locators...)
	if err != nil {
		e.count("not_authentic")
	}
	return Proof{key}, err == nil
}

// Open reports whether the network has no keys.
func (e *Engine) Open() bool { return e.cfg.Trust == nil }

// Acquainted reports whether the certificates that a signed message needs have all passed before: it is from a member,
// or from who has seen one's messages.
func (e *Engine) Acquainted(m wire.Message) bool {
	locators, signed := needed(m)
	return signed && e.cfg.Trust != nil && e.cfg.Trust.Passed(m, locators...)
}

// needed are the locators that the sender of a message must own; signed: of a kind that proves it.
func needed(m wire.Message) (locators []sid.Locator, signed bool) {
	switch m := m.(type) {
	case wire.Renegotiate:
		return []sid.Locator{m.Locator, m.Old}, true
	case wire.Resume:
		return []sid.Locator{m.Locator, AddrOf(m.Claim.Stable).Locator}, true
	case wire.FlowFail:
		return []sid.Locator{m.Locator}, true
	}
	return nil, false
}

// trusts: the key, a host's first, is the one that moved the peer before or, the first time, that owns where the peer is.
func (e *Engine) trusts(f *flow, key wire.Key, locators ...sid.Locator) bool {
	if e.cfg.Trust == nil || f.peerKey != (wire.Key{}) && f.peerKey == key {
		return true
	}
	return f.peerKey == (wire.Key{}) && slices.Contains(locators, f.Peer.Locator)
}
