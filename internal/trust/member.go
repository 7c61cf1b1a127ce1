package trust

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Member is one end that has a credential. What it has may be replaced while connections are made.
type Member struct {
	now   func() time.Time
	mu    sync.Mutex
	own   *tls.Certificate
	roots *Roots
	who   Identity
}

// NewMember checks that the credential is for the key; not its dates, for the clock may be wrong for a while.
func NewMember(key ed25519.PrivateKey, c Credential) (*Member, error) {
	m := &Member{now: time.Now}
	return m, m.Replace(key, c)
}

// Replace takes a fresh credential; connections made from now on show it.
func (m *Member) Replace(key ed25519.PrivateKey, c Credential) error {
	leaf, roots, who, err := checkOwn(key, c)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own, m.roots, m.who = pair(key, leaf), roots, who
	return nil
}

// Who says whom the credential names.
func (m *Member) Who() Identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.who
}

// Network is the name of the network.
func (m *Member) Network() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own.Leaf.URIs[0].Host
}

// Roots are the network's keys.
func (m *Member) Roots() *Roots {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.roots
}

// Same reports whether another has the same credential.
func (m *Member) Same(other *Member) bool {
	other.mu.Lock()
	leaf := other.own.Leaf
	other.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own.Leaf.Equal(leaf)
}

// Since is when the credential was made.
func (m *Member) Since() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own.Leaf.NotBefore.Add(Skew)
}

// Until is when the credential ends.
func (m *Member) Until() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own.Leaf.NotAfter
}

// Config is TLS towards a controller of the network.
func (m *Member) Config() *tls.Config {
	own := func() (*tls.Certificate, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.own, nil
	}
	return clientConfig(func() string { return m.Roots().wanted() }, own, func(chain []*x509.Certificate) error { return m.check(chain[0]) })
}

// check takes a controller of the network. One of another network of the same name may be one of this network, with a
// key that this member slept through.
func (m *Member) check(controller *x509.Certificate) error {
	m.mu.Lock()
	roots, own := m.roots, m.own
	m.mu.Unlock()
	err := checkServer(roots, controller, m.now())
	if errors.Is(err, ErrOtherNetwork) && roots.sameName(controller) {
		return fmt.Errorf("%w: if it was given another key while this member was away: %s", err, ComeBack(own.Leaf))
	}
	return err
}

// Stale reports whether a third of the certificate's time is over: then a fresh one is due.
func Stale(c *x509.Certificate, now time.Time) bool {
	return now.Sub(c.NotBefore) > c.NotAfter.Sub(c.NotBefore)/3
}
