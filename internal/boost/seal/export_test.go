package seal_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/boost/seal"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// The two ends of a TLS connection export the same secret, and two connections have two.
func TestBothEndsExportTheSameSecret(t *testing.T) {
	near, far := handshake(t, tls.VersionTLS13)
	a, err := seal.Export(near)
	if err != nil {
		t.Fatal(err)
	}
	b, err := seal.Export(far)
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Error("the two ends have two secrets")
	}
	other, _ := handshake(t, tls.VersionTLS13)
	if c, err := seal.Export(other); err != nil || c == a {
		t.Errorf("another connection has the same secret (%v)", err)
	}
}

// A secret of TLS 1.2 would be as good as its handshake, which is not what a network's keys promise.
func TestOlderTLSHasNoSecret(t *testing.T) {
	safety.Test(t, safety.Door)
	near, _ := handshake(t, tls.VersionTLS12)
	if _, err := seal.Export(near); err == nil {
		t.Error("TLS 1.2 gave a secret")
	}
}

func handshake(t *testing.T, version uint16) (near, far tls.ConnectionState) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan tls.ConnectionState, 1)
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}, MaxVersion: version})
		if s.Handshake() == nil {
			done <- s.ConnectionState()
		}
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	far, ok := <-done
	if !ok {
		t.Fatal("the handshake failed at the other end")
	}
	return c.ConnectionState(), far
}
