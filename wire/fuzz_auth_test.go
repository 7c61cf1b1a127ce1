package wire

import (
	"bytes"
	"crypto/ed25519"
	"testing"
)

// What the controller hands over and what comes in messages is read alike, and written again as it was.
func FuzzParseCertificate(f *testing.F) {
	c := Certify(newKey(1), newKey(2).Public().(ed25519.PublicKey), 0xfd5d000000010201, 1, 2)
	f.Add(c.Append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := ParseCertificate(in)
		if err == nil && !bytes.Equal(c.Append(nil), in) {
			t.Fatalf("%x became %x", in, c.Append(nil))
		}
	})
}

func FuzzParseSuccession(f *testing.F) {
	s := Succeed(newKey(2), newKey(1).Public().(ed25519.PublicKey), newKey(3).Public().(ed25519.PublicKey), 1, 2)
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := ParseSuccession(in)
		if err == nil && !bytes.Equal(s.Append(nil), in) {
			t.Fatalf("%x became %x", in, s.Append(nil))
		}
	})
}
