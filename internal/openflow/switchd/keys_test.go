package switchd

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/freeport"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// An issuer vouches for switches and their controller.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate for a name; the first is the issuer's own.
func (s *issuer) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: s.cert == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv6loopback}}
	parent, signing := s.cert, s.key
	if parent == nil {
		parent, signing = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signing)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if s.cert == nil {
		s.cert, s.key = made, key
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: made}
}

// Attack, a switch that lies and whoever else reaches the address: in a network with keys the daemon is told datapath ids
// that nobody listed, those of others, with certificates of others or of nobody. None becomes a router; the true ones do.
func TestOnlyListedSwitchesWithTheirOwnCertificatesAreRouters(t *testing.T) {
	defer func(d time.Duration) { sayEvery = d }(sayEvery)
	sayEvery = 0
	ours, theirs := &issuer{}, &issuer{}
	ours.issue(t, "authority")
	theirs.issue(t, "authority")
	server, pool := ours.issue(t, "controller"), x509.NewCertPool()
	pool.AddCert(ours.cert)
	pinned := ours.issue(t, "whatever")
	at := freeport.Address6(t)
	cfg := Config{Listen: []string{"ssl:" + at}, Silence: time.Second,
		TLS: &tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
		Switches: []Switch{{Name: "s1", Datapath: 1}, {Name: "s2", Datapath: 2}, {Name: "s3", Datapath: 3, Cert: fingerprint(pinned.Leaf)},
			{Name: "s4", Datapath: 4}}}
	if err := cfg.RequireKeys(); err != nil {
		t.Fatal(err)
	}
	d := drive(t, cfg)
	connect := func(id uint64, as ...tls.Certificate) {
		t.Helper()
		nc, err := tls.Dial("tcp", at, &tls.Config{Certificates: as, RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		go (&impostor{t, nc, bufio.NewReader(nc), id}).behave(never)
	}
	s1 := ours.issue(t, "s1 id:4cc0-11")
	for _, attack := range []struct {
		what string
		make func()
		want string
	}{
		{"no certificate", func() { connect(1) }, "certificate"},
		{"a certificate of another authority", func() { connect(1, theirs.issue(t, "s1")) }, "certificate"},
		{"an id that is not listed", func() { connect(9, s1) }, "0000000000000009 is not listed"},
		{"the id of s2 with the certificate of s1", func() { connect(2, s1) }, "is that of switch s2"},
		{"the id of s3 with a certificate for s3 that is not the one listed", func() { connect(3, ours.issue(t, "s3")) }, "listed with the certificate"},
		{"the id of s3 in the clear", func() { go d.impostor(3).behave(never) }, "shows none"},
	} {
		attack.make()
		d.note("switch.refused", attack.want)
	}
	select {
	case j := <-d.joins:
		t.Errorf("%s has become a router", j.join.Name)
	default:
	}
	for _, good := range []struct {
		name string
		make func()
	}{
		{"s1", func() { connect(1, s1) }},
		{"s2", func() { connect(2, ours.issue(t, "0000000000000002")) }},
		{"s3", func() { connect(3, pinned) }},
		{"s4", func() { go d.impostor(4).behave(never) }}, // by a socket that only root may open
	} {
		good.make()
		if j := d.accept(here); j.join.Name != good.name {
			t.Errorf("%s has joined, want %s", j.join.Name, good.name)
		}
	}
}

func TestANetworkWithKeysTakesSwitchesByTLS(t *testing.T) {
	safety.Test(t, safety.Door)
	listed := []Switch{{Name: "s1", Datapath: 1}}
	for what, c := range map[string]struct {
		Config
		why string // "": it is taken
	}{
		"tcp":                    {Config{Listen: []string{"tcp:[::]:6653"}, Switches: listed}, "--openflow-clear"},
		"tcp of this machine":    {Config{Listen: []string{"tcp:[::1]:6653"}, Switches: listed}, "--openflow-clear"},
		"tcp beside ssl":         {Config{Listen: []string{"ssl:[::]:6653", "tcp:[::1]:6653"}, Switches: listed}, "ssl:[::1]:6653"},
		"tcp, said":              {Config{Listen: []string{"tcp:[::]:6653"}, Switches: listed, Clear: true}, ""},
		"ssl":                    {Config{Listen: []string{"ssl:[::]:6653"}, Switches: listed}, ""},
		"a socket in the files":  {Config{Listen: []string{"unix:/run/of"}, Switches: listed}, ""},
		"nobody listed":          {Config{Listen: []string{"ssl:[::]:6653"}}, "--switch"},
		"no switches whatsoever": {Config{}, ""},
	} {
		err := c.RequireKeys()
		if c.why == "" && (err != nil || !c.OnlyListed) || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, only those listed %v; want %q", what, err, c.OnlyListed, c.why)
		}
	}
	if s, err := ParseSwitch("s1=7,cert=" + strings.Repeat("AB:", 31) + "cd"); err != nil || s.Cert != strings.Repeat("ab", 31)+"cd" {
		t.Errorf("a fingerprint as openssl shows it: %+v, %v", s, err)
	}
	if _, err := ParseSwitch("s1=7,cert=ab"); err == nil {
		t.Error("half a fingerprint was taken")
	}
}
