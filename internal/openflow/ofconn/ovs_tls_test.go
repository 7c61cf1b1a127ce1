package ofconn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A signer makes certificates for one network.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	s := &signer{}
	s.cert, s.key = s.certificate(t, "authority", true)
	return s
}

func (s *signer) certificate(t *testing.T, name string, authority bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: authority, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv6loopback}}
	parent, signing := s.cert, s.key
	if authority {
		parent, signing = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signing)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// config is a controller that takes switches of this network alone.
func (s *signer) config(t *testing.T) *tls.Config {
	t.Helper()
	cert, key := s.certificate(t, "controller", false)
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, RootCAs: pool}
}

// files writes what a switch needs, as Open vSwitch wants it.
func (s *signer) files(t *testing.T) (key, cert, authority string) {
	t.Helper()
	dir := t.TempDir()
	c, k := s.certificate(t, "switch", false)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("key", "PRIVATE KEY", der), write("cert", "CERTIFICATE", c.Raw), write("ca", "CERTIFICATE", s.cert.Raw)
}

// TestOpenVSwitchComesByTLS: a switch of ours comes in, one that another signed does not.
func TestOpenVSwitchComesByTLS(t *testing.T) {
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	ours, others := newSigner(t), newSigner(t)
	var l net.Listener
	var err error
	ns.Do(func() { l, err = Listen(t.Context(), "ssl:[::1]:0", ours.config(t)) })
	if err != nil {
		t.Fatal(err)
	}
	g := newGate()
	g.open(t, l)
	ovs.Bridge(t, "s1", "OpenFlow13,OpenFlow15")
	key, cert, _ := others.files(t)
	_, _, authority := ours.files(t)
	ovs.Vsctl(t, "set-ssl", key, cert, authority, "--", "set-controller", "s1", "ssl:"+l.Addr().String(),
		"--", "set", "controller", "s1", "max_backoff=1000")
	var unknown *tls.CertificateVerificationError
	if err := nstest.Receive(t, "Conn.Err", g.refused); !errors.As(err, &unknown) {
		t.Errorf("a switch without a certificate of the network was refused by %v, want its certificate", err)
	}
	key, cert, authority = ours.files(t)
	ovs.Vsctl(t, "del-ssl", "--", "set-ssl", key, cert, authority)
	c := nstest.Receive(t, "Conn.Err", g.switches)
	if err := c.Do(t.Context(), ofp.FlowMod{Match: ofp.Match{ofp.Uint(ofp.InPort, 1)}}); err != nil {
		t.Error(err)
	}
}
