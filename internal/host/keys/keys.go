// Package keys holds the keys of a host: the one that it has, by which it signs, and those that it had, which it is known by.
package keys

import (
	"crypto/ed25519"
	"sync"
	"time"

	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// Keys are the host's own. It signs by the key that its certificates are of, which is that of before for the moment
// until the network has taken the new one. For every goroutine.
type Keys struct {
	mu     sync.Mutex
	key    ed25519.PrivateKey
	before ed25519.PrivateKey // nil where this daemon had no other
	former []ed25519.PublicKey
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// Now is the key that the host has.
func (k *Keys) Now() ed25519.PrivateKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key
}

// Public is the public half of it.
func (k *Keys) Public() ed25519.PublicKey { return publicOf(k.Now()) }

// Take makes the directory's key the host's.
func (k *Keys) Take(dir trust.Directory) error {
	key, err := dir.Key()
	if err != nil {
		return err
	}
	former, err := dir.Former()
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil && !k.key.Equal(key) {
		k.before = k.key
	}
	k.key, k.former = key, former
	return nil
}

// Origin is the first key that the host had: what others know it by follows from it.
func (k *Keys) Origin() ed25519.PublicKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.former) > 0 {
		return k.former[0]
	}
	return publicOf(k.key)
}

// All are the public keys that the host has and had.
func (k *Keys) All() []ed25519.PublicKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]ed25519.PublicKey{publicOf(k.key)}, k.former...)
}

// Sign sets by which key, and with which succession, the holder of the certificates signs.
func (k *Keys) Sign(s *session.Keys, succession []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range s.Certificates {
		if k.before != nil && c.Key == wire.Key(publicOf(k.before)) {
			s.Host = k.before
		}
		if c.Key == wire.Key(publicOf(k.key)) {
			s.Host = k.key
			break
		}
	}
	if by, err := wire.ParseSuccession(succession); err == nil && s.Host.Equal(k.key) {
		s.Succession = &by
	}
}

// Permitted says why a permit is not for this host; one for a key that it had before is.
func (k *Keys) Permitted(p wire.Permit, now time.Time) (err error) {
	all := k.All()
	for i := range all {
		if err = p.Check(p.Service, p.ServiceKey[:], all[len(all)-1-i], now.Unix()); err == nil { // the key of now is last: its error counts
			return nil
		}
	}
	return err
}
