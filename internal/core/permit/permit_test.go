package permit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

func sample(t testing.TB) (wire.Permit, ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Delegate(key, sid.ServiceID{SS: 1, Suffix: 0x12345678}, key.Public().(ed25519.PublicKey), 1, 2_000_000_000), key
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	p, key := sample(t)
	text := Format(p, "web", "s1")
	if !strings.Contains(string(text), "Service: web\n") || !strings.Contains(string(text), "Not-After: 2033-05-18T03:33:20Z\n") {
		t.Errorf("a person reads\n%s", text)
	}
	got, err := Parse(append([]byte("a note\n"), append(text, text...)...))
	if err != nil || len(got) != 2 || got[0] != p || got[1] != p {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Parse(Format(p, "bad\nname: x", "")); err != nil || got[0] != p {
		t.Errorf("%v, %v", got, err)
	}
	private, err := ParsePrivate(FormatPrivate(key))
	if err != nil || !private.Equal(key) {
		t.Errorf("the key: %v", err)
	}
	for _, text := range [][]byte{FormatPrivate(key), FormatPublic(key.Public().(ed25519.PublicKey))} {
		if public, err := ParsePublic(text); err != nil || !public.Equal(key.Public()) {
			t.Errorf("the public key: %v", err)
		}
	}
}

func TestWhatIsNotAKeyOrAPermitIsSaidToBeNone(t *testing.T) {
	safety.Test(t, safety.Door)
	p, key := sample(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(other)
	short := pem.EncodeToMemory(&pem.Block{Type: permitBlock, Bytes: p.Append(nil)[1:]})
	for _, text := range [][]byte{nil, []byte("x"), short, FormatPublic(key.Public().(ed25519.PublicKey)), make([]byte, MaxFile+1)} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%.20q is a permit", text)
		}
	}
	for _, text := range [][]byte{nil, []byte("x"), pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), Format(p, "", "")} {
		if _, err := ParsePrivate(text); err == nil {
			t.Errorf("%.20q is a key", text)
		}
		if _, err := ParsePublic(text); err == nil {
			t.Errorf("%.20q is a public key", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	p, key := sample(f)
	f.Add(Format(p, "web", "s1"))
	f.Add(FormatPrivate(key))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Parse(text)
		for _, p := range all {
			again, err := Parse(Format(p, "", ""))
			if err != nil || len(again) != 1 || again[0] != p {
				t.Errorf("%v is read again as %v, %v", p, again, err)
			}
		}
		if err == nil && len(all) == 0 {
			t.Error("no permit and no error")
		}
		if k, err := ParsePrivate(text); err == nil && !bytes.Equal(FormatPrivate(k), FormatPrivate(k)) {
			t.Error("a key that is written in two ways")
		}
		_, _ = ParsePublic(text)
	})
}
