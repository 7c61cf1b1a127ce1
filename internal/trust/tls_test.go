package trust

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"
)

func newAuthority(t *testing.T, seed byte, network string) *Authority {
	t.Helper()
	a, err := NewAuthority(append(make([]byte, ed25519.SeedSize-1), seed), network)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newMember(t *testing.T, a *Authority, who Identity, from, until time.Time) *Member {
	t.Helper()
	key := newKey(t)
	who.Key = key.Public().(ed25519.PublicKey)
	der, err := a.Issue(who, from, until)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMember(key, Credential{Certificate: der, Roots: [][]byte{a.Certificate()}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// meet shakes hands and returns what the server saw, and what the client made of it.
func meet(t *testing.T, server, client *tls.Config) (*x509.Certificate, error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	done := make(chan tls.ConnectionState, 1)
	go func() {
		s := tls.Server(a, server)
		s.Handshake()
		done <- s.ConnectionState()
		a.Close()
	}()
	c := tls.Client(b, client)
	err := c.Handshake()
	if err == nil {
		c.Read(make([]byte, 1)) // TLS 1.3: the server sees our certificate after we have done
	}
	b.Close()
	state := <-done
	if len(state.PeerCertificates) == 0 {
		return nil, err
	}
	return state.PeerCertificates[0], err
}

func TestMembersKnowTheirControllerAndItKnowsThem(t *testing.T) {
	a := newAuthority(t, 1, "net")
	now := time.Now()
	for _, want := range []Identity{{Role: Host, Name: "s1"}, {Role: Router, Name: "r1"}, {Role: Admin, Name: "ann"}} {
		m := newMember(t, a, want, now.Add(-time.Minute), now.Add(time.Hour))
		if m.Network() != "net" {
			t.Errorf("the network is called %q", m.Network())
		}
		leaf, err := meet(t, NewServer(a, "c1").Config(), m.Config())
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Roots().Verify(leaf, x509.ExtKeyUsageClientAuth, now)
		if err != nil || got.Role != want.Role || got.Name != want.Name || !got.Key.Equal(m.Who().Key) {
			t.Errorf("the controller sees %v, %v, want %v", got, err, want)
		}
	}
}

func TestWhoIsNotOfTheNetworkIsToldWhy(t *testing.T) {
	ours, theirs := newAuthority(t, 1, "net"), newAuthority(t, 2, "net") // of the same name
	now := time.Now()
	m := newMember(t, ours, Identity{Role: Host, Name: "s1"}, now.Add(-time.Minute), now.Add(time.Hour))
	if _, err := meet(t, NewServer(theirs, "c1").Config(), m.Config()); !errors.Is(err, ErrOtherNetwork) {
		t.Errorf("a controller of another network: %v", err)
	}
	roots, _ := NewRoots(theirs.Certificate())
	if _, err := roots.Verify(m.own.Leaf, x509.ExtKeyUsageClientAuth, now); !errors.Is(err, ErrOtherNetwork) {
		t.Errorf("a member of another network: %v", err)
	}
	for at, want := range map[time.Time]error{now.Add(2 * time.Hour): ErrExpired, now.Add(-time.Hour): ErrFuture} {
		_, err := m.Roots().Verify(m.own.Leaf, x509.ExtKeyUsageClientAuth, at)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), Stamp(at)) {
			t.Errorf("at %v: %v, want %v and the clock", at, err, want)
		}
	}
	// A member cannot pass for a controller, nor a certificate for clients for one of a server.
	key := newKey(t)
	der, _ := ours.Issue(Identity{Role: Host, Name: "s2", Key: key.Public().(ed25519.PublicKey)}, now.Add(-time.Minute), now.Add(time.Hour))
	posing := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der, ours.Certificate()}, PrivateKey: key}}}
	if _, err := meet(t, posing, m.Config()); err == nil {
		t.Error("a host passed for a controller")
	}
}

func TestAControllersCertificateIsMadeAnewInTime(t *testing.T) {
	a := newAuthority(t, 1, "net")
	s := NewServer(a, "c1")
	now := time.Now()
	s.now = func() time.Time { return now }
	first, _ := s.certificate("")
	again, _ := s.certificate("")
	now = now.Add(serverFor / 2)
	later, err := s.certificate("")
	if err != nil || first != again || first == later || !later.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Errorf("kept for a while: %v, fresh after half its time: %v, %v", first == again, first != later, err)
	}
	now = now.Add(-2 * serverFor) // the clock was set back
	if back, _ := s.certificate(""); current(back.Leaf, now) != nil {
		t.Error("after the clock was set back the certificate is of the future")
	}
}

func TestAJoinerTakesNoOtherNetworksController(t *testing.T) {
	ours, theirs := newAuthority(t, 1, "net"), newAuthority(t, 2, "net")
	key := newKey(t)
	j := NewJoiner(key, PinOf(ours.Public()))
	if _, err := meet(t, NewServer(theirs, "c").Config(), j.Config()); !errors.Is(err, ErrPin) {
		t.Errorf("another network: %v", err)
	}
	// One who shows the true network's certificate behind one of his own.
	posing := newKey(t)
	der, _ := theirs.Issue(Identity{Role: Controller, Name: "c", Key: posing.Public().(ed25519.PublicKey)}, time.Now(), time.Now().Add(time.Hour))
	chain := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der, ours.Certificate()}, PrivateKey: posing}}}
	if _, err := meet(t, chain, j.Meeting()); err == nil {
		t.Error("a controller with a borrowed certificate was taken")
	}
	leaf, err := meet(t, NewServer(ours, "c").Config(), j.Config())
	if err != nil || !key.Public().(ed25519.PublicKey).Equal(leaf.PublicKey) {
		t.Errorf("the network's own: %v, the key that it saw is ours: %v", err, leaf != nil)
	}
	early := NewServer(ours, "c")
	early.now = func() time.Time { return time.Now().Add(-72 * time.Hour) }
	if _, err := meet(t, early.Config(), j.Config()); !errors.Is(err, ErrExpired) {
		t.Errorf("a controller whose clock is three days late: %v", err)
	}
	if _, err := meet(t, early.Config(), j.Meeting()); err != nil {
		t.Errorf("a first meeting looks at the clock: %v", err)
	}
}

func TestACredentialIsReadAsItWasSaved(t *testing.T) {
	a, b := newAuthority(t, 1, "net"), newAuthority(t, 2, "net")
	d := Directory(filepath.Join(t.TempDir(), "state"))
	if _, err := d.Load(); !errors.Is(err, ErrNone) {
		t.Fatalf("an empty directory: %v", err)
	}
	key, err := d.Key()
	if err != nil {
		t.Fatal(err)
	}
	der, _ := a.Issue(Identity{Role: Host, Name: "s1", Key: key.Public().(ed25519.PublicKey)}, time.Now(), time.Now().Add(time.Hour))
	if err := d.Save(Credential{Certificate: der, Roots: [][]byte{b.Certificate(), a.Certificate()}}); err != nil {
		t.Fatal(err)
	}
	m, err := d.Load()
	if err != nil || m.Who().Name != "s1" || len(m.Roots().DER()) != 2 || m.Roots().Pin() != PinOf(a.Public()) {
		t.Errorf("%v, %v", m, err)
	}
	for _, name := range []string{keyFile, certificateFile, networkFile} {
		if info, err := os.Stat(d.file(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want it for its owner alone", name, info, err)
		}
	}
	if err := d.SaveKey(newKey(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Load(); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("with another key in its place: %v", err)
	}
	if err := d.Forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Load(); !errors.Is(err, ErrNone) {
		t.Errorf("after Forget: %v", err)
	}
}

// A controller that has just started may be called, and call, before it has learned the network's key.
func TestWithoutTheNetworksKeyNobodyIsTaken(t *testing.T) {
	safety.Test(t, safety.Door)
	a := newAuthority(t, 1, "net")
	s := NewServer(nil, "c2")
	conf := s.Client(func() *Roots { return nil })
	conf.GetClientCertificate = nil
	if _, err := meet(t, NewServer(a, "c1").Config(), conf); !errors.Is(err, ErrNoRoots) {
		t.Errorf("%v, want %v", err, ErrNoRoots)
	}
}

func TestAnAuthorityFollowsFromItsSeed(t *testing.T) {
	a, b := newAuthority(t, 7, "net"), newAuthority(t, 7, "net")
	if string(a.Certificate()) != string(b.Certificate()) {
		t.Error("two controllers of one key have two certificates")
	}
	if _, err := NewAuthority([]byte("short"), "net"); err == nil {
		t.Error("half a key was taken")
	}
}
