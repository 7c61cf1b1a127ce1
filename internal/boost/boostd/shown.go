package boostd

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"sync"
)

// shownKey is what the keeper has the agent's keys under: the seed of the one that it has, and of the one of before.
const shownKey = "keys"

// A shown is by which keys other agents know this one: the one that it has, and the one of before. A controller tells them of
// another key; those that are away from theirs then go on with the one that they know, until they hear of it, and their trunks
// are to stand again if they break meanwhile. What an agent knows another one by it says in TLS's server name, so the agent
// that is called shows that. The one that calls cannot know what the other one has heard: it tries one and the other in turn.
//
// The key of before is nowhere on disk: keepers hold it for workers. It is safe for use by several goroutines.
type shown struct {
	keep store

	mu     sync.Mutex
	now    *identity
	before *identity // nil: there was none
}

// An identity is a key with the certificate that carries it.
type identity struct {
	key    ed25519.PrivateKey
	public ed25519.PublicKey
	tls.Certificate
}

func newIdentity(key ed25519.PrivateKey) (*identity, error) {
	c, err := certificate(key)
	if err != nil {
		return nil, fmt.Errorf("the agent's certificate: %w", err)
	}
	return &identity{key, key.Public().(ed25519.PublicKey), c}, nil
}

// newShown begins with the key that the agent has now, and with what a worker before this one had.
func newShown(key ed25519.PrivateKey, keep store) (*shown, error) {
	s := &shown{keep: keep}
	seeds := foundText(keep, shownKey)
	for len(seeds) >= ed25519.SeedSize { // the one of before is last, so it is taken first
		last := len(seeds) - ed25519.SeedSize
		if err := s.take(ed25519.NewKeyFromSeed(seeds[last:])); err != nil {
			return nil, err
		}
		seeds = seeds[:last]
	}
	return s, s.Take(key)
}

// Take has the agent known by another key, beside the one that it had.
func (s *shown) Take(key ed25519.PrivateKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(key); err != nil {
		return err
	}
	seeds := s.now.key.Seed()
	if s.before != nil {
		seeds = append(seeds, s.before.key.Seed()...)
	}
	return holdText(s.keep, shownKey, seeds)
}

func (s *shown) take(key ed25519.PrivateKey) error {
	if s.now != nil && s.now.key.Equal(key) {
		return nil
	}
	next, err := newIdentity(key)
	if err != nil {
		return err
	}
	s.now, s.before = next, s.now
	return nil
}

// Key is the public half of the one that the agent has.
func (s *shown) Key() ed25519.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.public
}

// known is the certificate with the key that the other end says it knows.
func (s *shown) known(as string) *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil && as == serverName(s.before.public) {
		return &s.before.Certificate
	}
	return &s.now.Certificate
}

// try is the certificate for an agent that was called so often in vain.
func (s *shown) try(failed int) *tls.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil && failed%2 == 1 {
		return &s.before.Certificate
	}
	return &s.now.Certificate
}

// serverName is how a key is named in TLS (RFC 6066 §3), docs/protocol.md §9.
func serverName(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8]) + ".agent.scaffold.internal"
}
