package session

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// another is a key that is made of a number.
func another(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// A host that has got another key is the same to whoever knew it by the first one, and nobody else becomes it by one.
func TestASuccessorIsKnownByTheFirstKey(t *testing.T) {
	const here = sid.Locator(0xfd5d000000010201)
	now := time.Now()
	from, to := now.Unix()-60, now.Unix()+60
	network, elsewhere, first, second, third := another(1), another(2), another(3), another(4), another(5)
	certificates := func(k ed25519.PrivateKey) map[sid.Locator]wire.Certificate {
		return map[sid.Locator]wire.Certificate{here: wire.Certify(network, public(k), here, from, to)}
	}
	succeed := func(by, key, origin ed25519.PrivateKey, to int64) *wire.Succession {
		s := wire.Succeed(by, public(key), public(origin), from, to)
		return &s
	}
	peer := &Keys{Host: another(9), Network: []ed25519.PublicKey{public(network)}, Revoked: map[wire.Key]bool{wire.Key(public(first)): true}}
	for name, c := range map[string]struct {
		key  ed25519.PrivateKey
		by   *wire.Succession
		want ed25519.PrivateKey
		err  error
	}{
		"one that never had another key": {third, nil, third, nil},
		"the second":                     {second, succeed(network, second, first, to), first, nil},
		"the third":                      {third, succeed(network, third, first, to), first, nil},
		"the first, which was revoked":   {first, nil, nil, wire.ErrRevoked},
		"one that says so itself":        {third, succeed(third, third, first, to), nil, wire.ErrSuccession},
		"of another network":             {third, succeed(elsewhere, third, first, to), nil, wire.ErrSuccession},
		"with the succession of another": {third, succeed(network, second, first, to), nil, wire.ErrSuccession},
		"with one of yesterday":          {second, succeed(network, second, first, from+1), nil, wire.ErrExpired},
	} {
		own := &Keys{Host: c.key, Certificates: certificates(c.key), Succession: c.by}
		m := own.Sign(wire.FlowFail{Locator: here, Reason: wire.ProcessDied, Flows: []wire.Failed{{Stable: here.Addr(1<<63 | 1), Socket: 1<<63 | 2, Quote: 1<<63 | 3}}}, here)
		m, err := wire.Parse(m.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from memory
			got, err := peer.Verify(now, m, here)
			if !errors.Is(err, c.err) || c.err == nil && (err != nil || got != wire.Key(public(c.want))) {
				t.Errorf("%s: known by %x, %v; want %v", name, got[:4], err, c.err)
			}
		}
	}
	both := &Keys{Host: another(9), Network: []ed25519.PublicKey{public(elsewhere), public(network)}}
	own := &Keys{Host: second, Certificates: certificates(second), Succession: succeed(elsewhere, second, first, to)}
	m := own.Sign(wire.FlowFail{Locator: here}, here)
	if got, err := both.Verify(now, m, here); err != nil || got != wire.Key(public(first)) {
		t.Errorf("while the network's key is rotated: %x, %v", got[:4], err)
	}
	if _, err := (&Keys{}).Verify(now, m, here); !errors.Is(err, wire.ErrCertificate) {
		t.Errorf("without a key of a network: %v", err)
	}
}

// rotate gives a host another key, with certificates of all its places.
func (w *world) rotate(h *host, n byte) {
	old := h.cfg.Trust.(*Keys)
	origin := public(old.Host)
	if old.Succession != nil {
		origin = ed25519.PublicKey(old.Succession.Origin[:])
	}
	k := &Keys{Host: another(n), Network: old.Network, Certificates: map[sid.Locator]wire.Certificate{}}
	for l := range old.Certificates {
		k.Certificates[l] = wire.Certify(network, public(k.Host), l, 0, 1<<40)
	}
	s := wire.Succeed(network, public(k.Host), origin, 0, 1<<40)
	k.Succession, h.cfg.Trust = &s, k
	for _, o := range w.hosts {
		if keys := o.cfg.Trust.(*Keys); o != h {
			keys.Revoked = map[wire.Key]bool{wire.Key(public(old.Host)): true}
		}
	}
}

// Flows that were moved under one key are moved under the next ones, and fail over.
func TestFlowsOutliveTheKeysOfTheirHosts(t *testing.T) {
	w, k := newFailover(t)
	for n := byte(20); n < 24; n++ {
		for _, h := range w.hosts[:2] {
			w.move(h)
			w.heal()
			w.believe(k, w.hosts[0], w.hosts[1])
			w.rotate(h, n+byte(h.n)*10)
		}
	}
	w.move(w.hosts[0])
	w.heal()
	w.believe(k, w.hosts[0], w.hosts[1])
	w.died(k)
	w.heal2()
	w.read(w.hosts[0])
	w.heal()
	w.move(w.hosts[0])
	w.heal()
	at := w.hosts[2]
	if at.flows[Key{k.Stable, Server}] == nil {
		at = w.hosts[3]
	}
	w.believe(k, w.hosts[0], at)
}
