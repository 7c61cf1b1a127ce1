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
	"scaffold.dev/scaffold/internal/controller/controld/certificates"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// takeKey makes the network's key, or takes it up.
func (n *network) takeKey(ctx context.Context, state store.State) error {
	if err := n.cfg.Disagrees(n.process.store, state); err != nil {
		return err
	}
	seed, second := state.Key, state.Second
	if n.cfg.Trust != config.TrustKeys {
		n.log.Warn("this network is open: anybody who reaches it may join it and rule it; --trust keys lets members alone in (docs/install.md#an-open-network-becomes-one-with-keys)")
		return nil
	}
	if len(seed) != ed25519.SeedSize {
		if len(seed) != 0 {
			return fmt.Errorf("the network's key in the store has %d bytes, want %d: it was damaged", len(seed), ed25519.SeedSize)
		}
		seed = make([]byte, ed25519.SeedSize)
		rand.Read(seed) // never fails (crypto/rand)
		if err := n.saver.Now(ctx, store.PutKey(seed), store.PutTrust(config.TrustKeys)); err != nil {
			return fmt.Errorf("save the network's key: %w", err)
		}
		n.events.Tell("controller.key", n.cfg.Name, "the network has a key now: it certifies hosts' locators")
	}
	return n.members.Take(seed, second)
}

// proves says why a Join does not show that it comes from the host whose name it bears; nil where it does, or
// where nobody is asked to.
func (n *network) proves(p gate.Peer, h *host, j *apiv1.Join) *apiv1.Refused {
	if n.members.Key() == nil {
		return nil
	}
	if err := gate.Itself(p, trust.Host, j.Name, j.Key); err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	if err := api.CheckJoin(j, time.Now()); err != nil {
		return &apiv1.Refused{Reason: fmt.Sprintf("%v (this network has trust: keys)", err), Retry: errors.Is(err, api.ErrJoinOld)}
	}
	if h == nil {
		return nil
	}
	if len(h.Key) > 0 && !bytes.Equal(h.Key, j.Key) && !n.members.IsNext(trust.Host, j.Name, j.Key) {
		return &apiv1.Refused{Reason: fmt.Sprintf("the name %s belongs to the host with the key %08x, this one has %08x: give it another name, or the state directory of the first", j.Name, wire.KeyID(h.Key), wire.KeyID(j.Key))}
	}
	if h.signed.Used(j.Signature, j.SignedUnix) {
		return &apiv1.Refused{Reason: "the request was taken already: sign a new one", Retry: true}
	}
	return nil
}

// pinned is the key that the host's name is bound to. An open network binds none, since it checks none.
func (n *network) pinned(h *host, j *apiv1.Join) []byte {
	if n.members.Key() == nil {
		return h.Key
	}
	return j.Key
}

// newCertificates are those of the network's hosts, and what they need of the other rooms.
func newCertificates(n *network) *certificates.Certificates {
	return certificates.New(certificates.Config{
		Longest: n.cfg.CertifyFor, Pledges: n.pledges, Hosts: certified{n}, Members: n.members, Saver: n.saver, Loop: n.loop,
	})
}

// certified are the hosts that certificates are for.
type certified struct{ n *network }

func (c certified) Key(host string) []byte         { return c.n.hosts[host].Key }
func (c certified) Left(host string) []sid.Locator { return c.n.locators.Left()[host] }

func (c certified) Locators(host string) (list []sid.Locator) {
	for _, p := range c.n.hosts[host].All() {
		list = append(list, p.Locator)
	}
	return list
}

func (c certified) Attached(host string, a *apiv1.Attached) {
	c.n.hosts[host].session.Send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Attached{Attached: a}})
}
