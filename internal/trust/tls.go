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
	name string
	now  func() time.Time
	mu   sync.Mutex
	by   []*Authority // the one by which it is known to who does not say
	leaf map[Pin]*leaf
}

// A leaf is a certificate by one of the network's keys.
type leaf struct {
	*tls.Certificate
	fresh time.Time // when the next one is due
}

// NewServer is the end of the controller of the name.
func NewServer(by *Authority, name string) *Server {
	s := &Server{name: name, now: time.Now}
	if by != nil {
		s.Certify(by)
	}
	return s
}

// Certify has certificates signed by these keys of the network from now on: by the one that the other end asks for, the
// first where it asks for none.
func (s *Server) Certify(by ...*Authority) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by, s.leaf = by, map[Pin]*leaf{}
}

// Config asks clients for a certificate and takes any, or none: who it is, and so what he may do, the API says
// (Roots.Verify), in words that TLS has no room for.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate(h.ServerName) },
	}
}

// Client is the end by which this controller calls others of the network. It shows a certificate by the key that certifies
// now, which outlives the former one.
func (s *Server) Client(roots func() *Roots) *tls.Config {
	own := func() (*tls.Certificate, error) {
		if r := roots(); r != nil {
			return s.certificate(r.wanted())
		}
		return s.certificate("")
	}
	return clientConfig(func() string { return serverName }, own, func(chain []*x509.Certificate) error { return checkServer(roots(), chain[0], s.now()) })
}

// certificate is one by the key that the other end wants.
func (s *Server) certificate(wanted string) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if len(s.by) == 0 {
		return nil, errors.New("this controller does not have the network's key yet")
	}
	by := s.by[0]
	for _, a := range s.by {
		if wantedOf(PinOf(a.Public())) == wanted {
			by = a
		}
	}
	pin := PinOf(by.Public())
	if l := s.leaf[pin]; l != nil && now.Before(l.fresh) && now.After(l.Leaf.NotBefore) {
		return l.Certificate, nil
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := by.Issue(Identity{Role: Controller, Name: s.name, Key: public}, now.Add(-Skew), now.Add(serverFor))
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	made := &tls.Certificate{Certificate: [][]byte{der, by.Certificate()}, PrivateKey: key, Leaf: parsed}
	s.leaf[pin] = &leaf{made, now.Add(serverFor / 3)}
	return made, nil
}

// wantedOf is the name by which somebody asks for a controller that shows the key with that hash: he knows no other.
func wantedOf(p Pin) string { return p.String() + "." + serverName }

// wanted is that of the key that certifies now.
func (r *Roots) wanted() string { return wantedOf(r.Pin()) }

// clientConfig is TLS towards a controller. It does not verify names of hosts, but check does the whole chain.
func clientConfig(wanted func() string, own func() (*tls.Certificate, error), check func([]*x509.Certificate) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, ServerName: wanted(),
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
	key ed25519.PrivateKey
	pin Pin
	now func() time.Time
}

// NewJoiner is for a member's key and the network that the token names.
func NewJoiner(key ed25519.PrivateKey, pin Pin) *Joiner {
	return &Joiner{key: key, pin: pin, now: time.Now}
}

// Meeting is for a first call, which says no secret: it does not look at the clock, so that who calls can compare.
func (j *Joiner) Meeting() *tls.Config {
	return clientConfig(j.wanted, j.own, func(c []*x509.Certificate) error { return j.check(c, false) })
}

// Config is for the call that does.
func (j *Joiner) Config() *tls.Config {
	return clientConfig(j.wanted, j.own, func(c []*x509.Certificate) error { return j.check(c, true) })
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
	return nil
}

func shown(r *Roots) string {
	if r == nil {
		return "none of a network"
	}
	return r.Pin().String()
}

func (j *Joiner) wanted() string { return wantedOf(j.pin) }

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
