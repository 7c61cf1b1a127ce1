package controld

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// How much hosts are trusted: whoever comes, or members, whom tokens make such.
const (
	TrustOpen = "open"
	TrustKeys = "keys"
)

// certifyAgain is the share of its validity after which a certificate is replaced: well before half.
const certifyAgain = 0.4

// takeKey makes the network's key, or takes it up.
func (n *network) takeKey(ctx context.Context, seed []byte, second store.Authority) error {
	if n.cfg.Trust != TrustKeys {
		n.log.Warn("this network is open: anybody who reaches it may join it and rule it; --trust keys lets members alone in")
		return nil
	}
	if len(seed) != ed25519.SeedSize {
		if len(seed) != 0 {
			return fmt.Errorf("the network's key in the store has %d bytes, want %d: it was damaged", len(seed), ed25519.SeedSize)
		}
		seed = make([]byte, ed25519.SeedSize)
		rand.Read(seed) // never fails (crypto/rand)
		if err := n.saver.now(ctx, store.PutKey(seed)); err != nil {
			return fmt.Errorf("save the network's key: %w", err)
		}
		n.event("controller.key", n.cfg.Name, "the network has a key now: it certifies hosts' locators")
	}
	return n.certifyBy(seed, second)
}

// proves says why a Join does not show that it comes from the host whose name it bears; nil where it does, or
// where nobody is asked to.
func (n *network) proves(p peer, h *host, j *apiv1.Join) *apiv1.Refused {
	if n.key == nil {
		return nil
	}
	if err := itself(p, trust.Host, j.Name, j.Key); err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	if err := api.CheckJoin(j, time.Now()); err != nil {
		return &apiv1.Refused{Reason: fmt.Sprintf("%v (this network has trust: keys)", err), Retry: errors.Is(err, api.ErrJoinOld)}
	}
	if h == nil {
		return nil
	}
	if len(h.Key) > 0 && !bytes.Equal(h.Key, j.Key) && !n.isNext(trust.Host, j.Name, j.Key) {
		return &apiv1.Refused{Reason: fmt.Sprintf("the name %s belongs to the host with the key %08x, this one has %08x: give it another name, or the state directory of the first", j.Name, wire.KeyID(h.Key), wire.KeyID(j.Key))}
	}
	if j.SignedUnix < h.signed.unix || h.signed.used(j) {
		return &apiv1.Refused{Reason: "the request was made before one that was taken already: sign a new one", Retry: true}
	}
	return nil
}

// pinned is the key that the host's name is bound to. An open network binds none, since it checks none.
func (n *network) pinned(h *host, j *apiv1.Join) []byte {
	if n.key == nil {
		return h.Key
	}
	return j.Key
}

// signatures are those of a host's requests of the latest second: nobody can use one again, nor an older one.
type signatures struct {
	unix int64
	list [][]byte
}

func (s *signatures) used(j *apiv1.Join) bool {
	for _, have := range s.list {
		if s.unix == j.SignedUnix && bytes.Equal(have, j.Signature) {
			return true
		}
	}
	return false
}

func (s *signatures) note(j *apiv1.Join) {
	if j.SignedUnix != s.unix {
		s.unix, s.list = j.SignedUnix, nil
	}
	s.list = append(s.list, j.Signature)
}

// certificate says that the host owns the locator; nil in an open network.
func (n *network) certificate(key []byte, l sid.Locator) []byte {
	if n.key == nil || len(key) != ed25519.PublicKeySize {
		return nil
	}
	now := time.Now()
	c := wire.Certify(n.key, key, l, now.Add(-api.JoinSkew).Unix(), now.Add(n.cfg.CertifyFor).Unix())
	return c.Append(nil)
}

// certifyLater sends a host fresh certificates for as long as the session lasts.
func (n *network) certifyLater(h *host, s *hostSession) {
	if n.key == nil {
		return
	}
	n.loop.after(time.Duration(certifyAgain*float64(n.cfg.CertifyFor)), func() {
		if h.session != s {
			return
		}
		n.certifyPlaces(h)
		n.certifyLater(h, s)
	})
}

// certifyPlaces sends a host fresh certificates for where it is.
func (n *network) certifyPlaces(h *host) {
	for _, p := range h.all() {
		a := n.attached(h.Key, 0, p, nil)
		a.Succession = n.succession(h)
		h.session.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Attached{Attached: a}})
	}
}

// holdable says why a policy cannot hold in this network.
func (n *network) holdable(p names.Policy) error {
	if p.Failover == names.Continue && n.key == nil {
		return fmt.Errorf("%w: failover=continue needs hosts that prove who they are, or anybody could claim a flow, and this network is open: start the controller with --trust keys (in a lab file, network: trust: keys), or keep failover=reset", errConflict)
	}
	return nil
}
