package session

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/wire"
)

func TestNoCertificateOfARevokedKeyCounts(t *testing.T) {
	safety.Test(t, safety.Door)
	_, network, _ := ed25519.GenerateKey(nil)
	host, _, _ := ed25519.GenerateKey(nil)
	now := time.Now().Unix()
	c := wire.Certify(network, host, 1, now-1, now+60)
	k := &Keys{Network: []ed25519.PublicKey{network.Public().(ed25519.PublicKey)}}
	if err := k.check(&c, now); err != nil {
		t.Fatal(err)
	}
	k.Revoked = map[wire.Key]bool{wire.Key(host): true} // it has passed before
	if err := k.check(&c, now); !errors.Is(err, wire.ErrRevoked) {
		t.Errorf("%v, want that it was revoked", err)
	}
}
