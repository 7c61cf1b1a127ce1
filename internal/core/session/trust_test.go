package session

import (
	"crypto/ed25519"
	"testing"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// TestACertificateThatPassedOnceCanStillExpire: what is remembered is the network's signature alone.
func TestACertificateThatPassedOnceCanStillExpire(t *testing.T) {
	a, b := certified(0), certified(1)
	l := locator(0, 0)
	a.Certificates[l] = wire.Certify(network, a.Host.Public().(ed25519.PublicKey), l, 100, 200)
	m := a.Sign(wire.FlowFail{Locator: l, Reason: wire.Draining, Flows: []wire.Failed{
		{Stable: l.Addr(1 << 63), Socket: sid.NewSocketID(1), Quote: sid.NewSocketID(2)}}}, l)
	for _, c := range []struct {
		now  int64
		fits bool
	}{{99, false}, {100, true}, {200, true}, {201, false}, {99, false}, {150, true}} {
		if _, err := b.Verify(time.Unix(c.now, 0), m, l); (err == nil) != c.fits {
			t.Errorf("at %d: %v", c.now, err)
		}
	}
	if len(b.passed) != 1 {
		t.Errorf("%d certificates are remembered", len(b.passed))
	}
}
