package wire

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"scaffold.dev/scaffold/sid"
)

func keyPair(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

func TestAPermitIsGoodForOneHostOneServiceAndItsTime(t *testing.T) {
	servicePublic, service := keyPair(t)
	hostPublic, host := keyPair(t)
	otherPublic, other := keyPair(t)
	web, db := sid.ServiceID{SS: 1, Suffix: sid.Certified(servicePublic)}, sid.ServiceID{SS: 1, Suffix: 0x20000}
	good := Delegate(service, web, hostPublic, 100, 200)
	forged := good
	forged.NotAfter = 300
	for name, c := range map[string]struct {
		permit  Permit
		id      sid.ServiceID
		service []byte
		host    []byte
		now     int64
		want    error
	}{
		"good, first second":          {good, web, servicePublic, hostPublic, 100, nil},
		"good, last second":           {good, web, servicePublic, hostPublic, 200, nil},
		"early":                       {good, web, servicePublic, hostPublic, 99, ErrPermitEarly},
		"expired":                     {good, web, servicePublic, hostPublic, 201, ErrPermitLate},
		"lengthened":                  {forged, web, servicePublic, hostPublic, 250, ErrPermitForged},
		"of another host":             {good, web, servicePublic, otherPublic, 150, ErrPermitHost},
		"of another service":          {good, db, servicePublic, hostPublic, 150, ErrPermitService},
		"signed with another key":     {Delegate(other, web, hostPublic, 100, 200), web, servicePublic, hostPublic, 150, ErrPermitKey},
		"for a service of a new key":  {good, web, otherPublic, hostPublic, 150, ErrPermitKey},
		"signed by the host for self": {Delegate(host, web, hostPublic, 100, 200), web, servicePublic, hostPublic, 150, ErrPermitKey},
	} {
		read, err := ParsePermit(c.permit.Append(nil))
		if err != nil || read != c.permit {
			t.Errorf("%s: read back %+v, %v", name, read, err)
		}
		if err := read.Check(c.id, c.service, c.host, c.now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestARegistrationIsSignedForItsSessionAndItsTriple(t *testing.T) {
	hostPublic, host := keyPair(t)
	_, other := keyPair(t)
	web := sid.ServiceID{SS: 1, Suffix: 0x10000}
	said := Stand{[]byte("challenge"), sid.Triple{Service: web, Proto: sid.TCP, Port: 80}}
	if err := said.Check(hostPublic, said.Sign(host)); err != nil {
		t.Error(err)
	}
	for name, s := range map[string]Stand{
		"another session": {[]byte("challengE"), said.Triple},
		"another port":    {said.Challenge, sid.Triple{Service: web, Proto: sid.TCP, Port: 81}},
		"another service": {said.Challenge, sid.Triple{Service: sid.ServiceID{SS: 1, Suffix: 0x20000}, Proto: sid.TCP, Port: 80}},
	} {
		if err := said.Check(hostPublic, s.Sign(host)); !errors.Is(err, ErrPermitProof) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if err := said.Check(hostPublic, said.Sign(other)); !errors.Is(err, ErrPermitProof) {
		t.Errorf("signed by another host: %v, want a refusal", err)
	}
}

func FuzzParsePermit(f *testing.F) {
	_, service := keyPair(f)
	hostPublic, _ := keyPair(f)
	good := Delegate(service, sid.ServiceID{SS: 1, Suffix: 0x10000}, hostPublic, 1, 2)
	f.Add(good.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePermit(b)
		if err != nil {
			return
		}
		if again := p.Append(nil); string(again) != string(b) {
			t.Errorf("%x was read and is written as %x", b, again)
		}
		if p != good && p.Check(p.Service, p.ServiceKey[:], p.Host[:], p.NotBefore) == nil && p.ServiceKey == good.ServiceKey {
			t.Error("a permit that nobody signed passes")
		}
	})
}
