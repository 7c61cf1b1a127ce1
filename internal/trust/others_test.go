package trust

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAProgramThatKnowsTLSAloneIsAMember: what Prometheus and curl read, and how they look at the controller
// (docs/operate.md), is enough. A logout leaves none of it.
func TestAProgramThatKnowsTLSAloneIsAMember(t *testing.T) {
	a, now := newAuthority(t, 1, "net"), time.Now()
	dir := Directory(t.TempDir())
	key, err := dir.Key()
	if err != nil {
		t.Fatal(err)
	}
	der, err := a.Issue(Identity{Role: Admin, Name: "prometheus", Key: key.Public().(ed25519.PublicKey)}, now.Add(-time.Minute), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dir.Save(Credential{Certificate: der, Roots: [][]byte{a.Certificate()}}), dir.KeyForOthers()); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(dir.file("certificate.pem"), dir.file("key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(dir.file("network.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "controller.scaffold.internal", MinVersion: tls.VersionTLS13}
	seen, err := meet(t, NewServer(a, "c1").Config(), client)
	if err != nil || seen == nil || seen.URIs[0].Path != "/admin/prometheus" {
		t.Fatalf("the handshake: %v, the controller saw %+v", err, seen)
	}
	if info, err := os.Stat(dir.file("key.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	if err := dir.Forget(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(dir.file("*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left", left, err)
	}
	if _, err := os.Stat(dir.file("key.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
