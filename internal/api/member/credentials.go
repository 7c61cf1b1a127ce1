package member

import (
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// Credentials are a daemon's: what makes it a member of a network with keys. Those that come while it runs, by
// `scaffold join` or from the controller, count for the connections that are made afterwards. It is safe for
// use by several goroutines.
type Credentials struct {
	Directory trust.Directory // "": none, for an open network

	mu     sync.Mutex
	member *trust.Member

	taking sync.Mutex // a fresh credential is there before it is in the files: who reads these meanwhile would go back
}

// Member is who the daemon is; nil without a credential.
func (c *Credentials) Member() (*trust.Member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.member != nil || c.Directory == "" {
		return c.member, nil
	}
	m, err := c.Directory.Load()
	if errors.Is(err, trust.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the credential: %w", err)
	}
	c.member = m
	return m, nil
}

// TLS is how the controller is spoken to; nil: in the clear.
func (c *Credentials) TLS() (*tls.Config, error) {
	m, err := c.Member()
	if m == nil {
		return nil, err
	}
	return m.Config(), nil
}

// Take keeps a fresh credential that the controller sent.
func (c *Credentials) Take(fresh *apiv1.Credential) error {
	if fresh == nil || c.Directory == "" {
		return nil
	}
	c.taking.Lock()
	defer c.taking.Unlock()
	credential := trust.Credential{Certificate: fresh.Certificate, Roots: fresh.Roots}
	m, err := c.Member()
	if err != nil || m == nil {
		return err
	}
	err = c.Directory.Renew(credential, func(key ed25519.PrivateKey) error {
		if !m.Who().Key.Equal(key.Public()) {
			return trust.ErrReplaced
		}
		if err := m.Replace(key, credential); err != nil {
			return fmt.Errorf("a fresh credential is of no use; the old one goes on: %w", err)
		}
		return nil
	})
	if errors.Is(err, trust.ErrReplaced) { // the next session gets a credential for the key that there is
		return nil
	}
	return err
}

// Reload takes up a credential that somebody put into the directory since, by `scaffold join` or `rotate`, and reports
// whether there is another one.
func (c *Credentials) Reload() bool {
	if c.Directory == "" {
		return false
	}
	c.taking.Lock()
	defer c.taking.Unlock()
	m, err := c.Directory.Load()
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.member == nil || c.member.Same(m) {
		return false // Member reads the first one
	}
	c.member = m
	return true
}
