package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

// protocols are what the API speaks, docs/protocol.md §5.5.
var protocols = []string{"h2", "http/1.1"}

// serverFor is how long a controller's certificate is valid. It is made anew long before, and at each start.
const serverFor = 24 * time.Hour

// Skew is how far the clocks of two machines may be apart.
const Skew = 5 * time.Minute

// A Server is a controller's end of TLS. Its certificate's key never leaves the process.
type Server struct {
	name  string
	now   func() time.Time
	mu    sync.Mutex
	by    *Authority
	leaf  *tls.Certificate
	fresh time.Time // when the next one is due
}

// NewServer is the end of the controller of the name.
func NewServer(by *Authority, name string) *Server { return &Server{by: by, name: name, now: time.Now} }

// Certify has certificates signed by another key of the network from now on.
func (s *Server) Certify(by *Authority) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by, s.leaf = by, nil
}

// Config asks clients for a certificate and takes any, or none: who it is, and so what he may do, the API says
// (Roots.Verify), in words that TLS has no room for.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate() },
	}
}

// Client is the end by which this controller calls others of the network.
func (s *Server) Client(roots func() *Roots) *tls.Config {
	return clientConfig(s.certificate, func(chain []*x509.Certificate) error { return checkServer(roots(), chain[0], s.now()) })
}

func (s *Server) certificate() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.by == nil {
		return nil, errors.New("this controller does not have the network's key yet")
	}
	if s.leaf != nil && now.Before(s.fresh) && now.After(s.leaf.Leaf.NotBefore) {
		return s.leaf, nil
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := s.by.Issue(Identity{Role: Controller, Name: s.name, Key: public}, now.Add(-Skew), now.Add(serverFor))
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	s.leaf = &tls.Certificate{Certificate: [][]byte{der, s.by.Certificate()}, PrivateKey: key, Leaf: leaf}
	s.fresh = now.Add(serverFor / 3)
	return s.leaf, nil
}

// clientConfig is TLS towards a controller. It does not verify names of hosts, but check does the whole chain.
func clientConfig(own func() (*tls.Certificate, error), check func([]*x509.Certificate) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, ServerName: serverName,
		InsecureSkipVerify: true, // VerifyConnection does it, and says what is wrong
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return ErrNoCertificate
			}
			return check(c.PeerCertificates)
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own() },
	}
}

func checkServer(roots *Roots, leaf *x509.Certificate, now time.Time) error {
	who, err := roots.Verify(leaf, x509.ExtKeyUsageServerAuth, now)
	if err == nil && who.Role != Controller {
		err = fmt.Errorf("it is %v and no controller", who)
	}
	if err != nil {
		return fmt.Errorf("the controller: %w", err)
	}
	return nil
}

// ErrPin says that a controller is not of the network that a token is for.
var ErrPin = errors.New("the controller that answers is not of the network that the token is for")

// A Joiner is TLS for somebody who has a token and is not a member yet: it shows its key by a certificate of its
// own, and takes a controller that has the network's key.
type Joiner struct {
	key   ed25519.PrivateKey
	pin   Pin
	now   func() time.Time
	mu    sync.Mutex
	roots *Roots
}

// NewJoiner is for a member's key and the network that the token names.
func NewJoiner(key ed25519.PrivateKey, pin Pin) *Joiner {
	return &Joiner{key: key, pin: pin, now: time.Now}
}

// Roots are the network's, once a controller was met.
func (j *Joiner) Roots() *Roots {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.roots
}

// Meeting is for a first call, which says no secret: it does not look at the clock, so that who calls can compare.
func (j *Joiner) Meeting() *tls.Config {
	return clientConfig(j.own, func(c []*x509.Certificate) error { return j.check(c, false) })
}

// Config is for the call that does.
func (j *Joiner) Config() *tls.Config {
	return clientConfig(j.own, func(c []*x509.Certificate) error { return j.check(c, true) })
}

func (j *Joiner) check(chain []*x509.Certificate, clock bool) error {
	roots, err := NewRoots(chain[len(chain)-1].Raw)
	if err != nil || roots.Pin() != j.pin {
		return fmt.Errorf("%w: its key is %s, the token's %v", ErrPin, shown(roots), j.pin)
	}
	now := j.now()
	if !clock {
		now = chain[0].NotBefore
	}
	if err := checkServer(roots, chain[0], now); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.roots = roots
	return nil
}

func shown(r *Roots) string {
	if r == nil {
		return "none of a network"
	}
	return r.Pin().String()
}

// own is a certificate that says nothing but the key: the handshake shows that we have it.
func (j *Joiner) own() (*tls.Certificate, error) { return selfSigned(j.key, j.now()) }

func selfSigned(key ed25519.PrivateKey, now time.Time) (*tls.Certificate, error) {
	a := &Authority{key: key, certificate: &x509.Certificate{}}
	der, err := a.sign(&x509.Certificate{NotBefore: now.Add(-Skew), NotAfter: now.Add(serverFor)}, key.Public())
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
