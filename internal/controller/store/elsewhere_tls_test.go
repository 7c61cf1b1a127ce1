package store

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"scaffold.dev/scaffold/internal/tests/freeport"
)

// pemFiles makes an authority and a certificate of it that is good for both ends, as files.
func pemFiles(t *testing.T) (ca, cert, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	make := func(c, by *x509.Certificate) []byte {
		c.NotBefore, c.NotAfter, c.SerialNumber = time.Now().Add(-time.Hour), time.Now().Add(time.Hour), big.NewInt(1)
		der, err := x509.CreateCertificate(rand.Reader, c, by, public, private)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	authority := &x509.Certificate{Subject: pkix.Name{CommonName: "etcd's"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "e"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("ca.pem", "CERTIFICATE", make(authority, authority)), write("c.pem", "CERTIFICATE", make(leaf, authority)), write("k.pem", "PRIVATE KEY", secret)
}

// A controller whose state is in three etcds elsewhere, all by TLS, writes on while one of them dies for good,
// the one that the others follow; what was acknowledged is there.
func TestADeathAmongThreeEtcdsElsewhereLosesNothing(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	ca, cert, key := pemFiles(t)
	var clients, peers []url.URL
	cluster := ""
	for i := range 3 {
		clients = append(clients, url.URL{Scheme: "https", Host: freeport.Address(t)})
		peers = append(peers, url.URL{Scheme: "http", Host: freeport.Address(t)})
		cluster += fmt.Sprintf("e%d=%s,", i, peers[i].String())
	}
	running := make([]*embed.Etcd, 3)
	for i := range running {
		cfg := embed.NewConfig()
		cfg.Name, cfg.Dir, cfg.InitialCluster = fmt.Sprintf("e%d", i), t.TempDir(), cluster[:len(cluster)-1]
		cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peers[i:i+1], peers[i:i+1]
		cfg.ListenClientUrls, cfg.AdvertiseClientUrls = clients[i:i+1], clients[i:i+1]
		x := &cfg.ClientTLSInfo
		x.CertFile, x.KeyFile, x.TrustedCAFile, x.ClientCertAuth = cert, key, ca, true
		cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		e, err := embed.StartEtcd(cfg)
		if err != nil {
			t.Fatal(err)
		}
		running[i] = e
		t.Cleanup(func() {
			if running[i] != nil {
				running[i].Close()
			}
		})
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	text, err := os.ReadFile(ca)
	if err != nil || !authorities.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	open := func(with *tls.Config) *Store {
		s, err := Open(t.Context(), Config{Endpoints: []string{clients[0].String(), clients[1].String(), clients[2].String()}, TLS: with, Network: "n", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open(&tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	lead(t, s)
	if _, err := s.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	acked := map[string]bool{}
	write := func(upTo int, when string) {
		for end := time.Now().Add(patience); len(acked) < upTo; {
			name := fmt.Sprintf("h%d", len(acked))
			if err := s.Commit(t.Context(), PutHost(Host{Name: name})); err == nil {
				acked[name] = true
			} else if time.Now().After(end) {
				t.Fatalf("%s nothing is saved: %v", when, err)
			} else if s.fence.Load().key == "" {
				lead(t, s) // its lease ended meanwhile
			}
		}
	}
	write(50, "at first")
	for i, e := range running { // the one that the others follow
		if e.Server.Leader() == e.Server.MemberID() {
			running[i] = nil
			e.Close()
			break
		}
	}
	write(100, "with one of three gone")
	state, err := s.Load(t.Context())
	if err != nil || len(state.Hosts) < len(acked) {
		t.Errorf("%d hosts, %v; %d were acknowledged", len(state.Hosts), err, len(acked))
	}
	for _, h := range state.Hosts {
		delete(acked, h.Name)
	}
	if len(acked) > 0 {
		t.Errorf("acknowledged, and gone: %v", acked)
	}
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := open(&tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}).Load(brief); err == nil {
		t.Error("who shows no certificate reads the state")
	}
}
