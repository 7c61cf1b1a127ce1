package controld

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
)

// tellAtOnce is how many sessions are certified anew before the loop does something else.
const tellAtOnce = 64

// certifyBy takes the network's keys: the one to certify by, and the second one while there is one.
func (n *network) certifyBy(seed []byte, second store.Authority) (err error) {
	if n.authority, err = n.gate.certify(seed, second, n.cfg.Network); err != nil {
		return err
	}
	n.key, n.second = n.authority.Key(), second
	n.keysEdition++
	return nil
}

// networkKeys are the public keys that hosts check certificates by.
func (n *network) networkKeys() (list [][]byte) {
	for _, a := range [][]byte{n.key.Seed(), n.second.Seed} {
		if len(a) > 0 {
			list = append(list, ed25519.NewKeyFromSeed(a).Public().(ed25519.PublicKey))
		}
	}
	return list
}

// outdated reports whether a credential was made before the network's keys changed last: its holder may not know them.
func (n *network) outdated(leaf *x509.Certificate) bool {
	return n.second.Since > 0 && leaf.NotBefore.Add(trust.Skew).Unix() <= n.second.Since
}

// GetAuthority shows the network's keys.
func (t *trustAPI) GetAuthority(ctx context.Context, _ *connect.Request[apiv1.GetAuthorityRequest]) (*connect.Response[apiv1.AuthorityState], error) {
	if err := t.n.needsKeys(); err != nil {
		return nil, err
	}
	return get(ctx, t.n, func() (*apiv1.AuthorityState, error) { return t.n.authorityState(), nil })
}

// RotateAuthority makes the network's next key.
func (t *trustAPI) RotateAuthority(ctx context.Context, _ *connect.Request[apiv1.RotateAuthorityRequest]) (*connect.Response[apiv1.AuthorityState], error) {
	return t.withKeys(ctx, func() (ed25519.PrivateKey, store.Authority, error) {
		n := t.n
		if len(n.second.Seed) > 0 {
			return nil, n.second, fmt.Errorf("%w: the network has two keys already: `scaffold net key retire` takes one away first", errConflict)
		}
		if who := n.unaware(); who != "" {
			return nil, n.second, fmt.Errorf("%w: %s knows one key of the network only: upgrade it first", errConflict, who)
		}
		_, next, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, n.second, err
		}
		return n.key, store.Authority{Seed: next.Seed(), Next: true, Since: time.Now().Unix(), Retired: n.second.Retired}, nil
	}, "the network has a next key: members learn it, and it certifies once all that are here know it")
}

// RetireAuthority takes away the network's second key.
func (t *trustAPI) RetireAuthority(ctx context.Context, req *connect.Request[apiv1.RetireAuthorityRequest]) (*connect.Response[apiv1.AuthorityState], error) {
	return t.withKeys(ctx, func() (ed25519.PrivateKey, store.Authority, error) {
		n := t.n
		state := n.authorityState()
		i := slices.IndexFunc(state.Keys, func(k *apiv1.AuthorityKey) bool { return k.Id == req.Msg.Id })
		switch {
		case i < 0:
			return nil, n.second, connect.NewError(connect.CodeNotFound, fmt.Errorf("the network has no key %.40q", req.Msg.Id))
		case state.Keys[i].State == "certifies":
			return nil, n.second, fmt.Errorf("%w: the key %s is the one that certifies: `scaffold net key rotate` makes another one first", errConflict, req.Msg.Id)
		case !n.second.Next && len(state.Behind) > 0 && !req.Msg.Force:
			return nil, n.second, fmt.Errorf("%w: %s not been here since the network has its new key, and would have to join again with a token: force goes on without them", errConflict, haveNames(state.Behind))
		}
		return n.key, n.withoutSecond(), nil
	}, "a key of the network is retired: nothing that it certified counts any more")
}

// mostRetired is how many keys that count no more are remembered.
const mostRetired = 16

// withoutSecond takes the second key away. One that certified is remembered: members that slept are told.
func (n *network) withoutSecond() store.Authority {
	now := time.Now().Unix()
	retired := slices.Clone(n.second.Retired)
	if !n.second.Next {
		retired = append(retired, store.RetiredKey{ID: pinOfSeed(n.second.Seed), At: now})
	}
	return store.Authority{Since: now, Retired: retired[max(0, len(retired)-mostRetired):]}
}

// haveNames lists a few members, and a verb that fits.
func haveNames(list []*apiv1.Member) string {
	var all []string
	for _, m := range list {
		all = append(all, m.Role+" "+m.Name)
	}
	if len(all) == 1 {
		return all[0] + " has"
	}
	if len(all) > 5 {
		all = append(all[:5], fmt.Sprintf("and %d more", len(list)-5))
	}
	return strings.Join(all, ", ") + " have"
}

// withKeys changes the network's keys: they are saved before anybody hears of them.
func (t *trustAPI) withKeys(ctx context.Context, choose func() (ed25519.PrivateKey, store.Authority, error), text string) (*connect.Response[apiv1.AuthorityState], error) {
	n := t.n
	if err := n.needsKeys(); err != nil {
		return nil, err
	}
	var failed error
	err := t.admin.do(ctx, func() (change, error) {
		key, second, err := choose()
		if err != nil {
			return change{}, err
		}
		return change{[]store.Change{store.PutKey(key.Seed()), store.PutSecondKey(second)}, func() {
			failed = n.changeKeys(key.Seed(), second, text)
		}}, nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	return t.GetAuthority(ctx, nil)
}

// changeKeys takes other keys, and tells everybody.
func (n *network) changeKeys(seed []byte, second store.Authority, text string) error {
	if err := n.certifyBy(seed, second); err != nil {
		return err
	}
	n.event("network.key", n.gate.pin().String(), text)
	n.tellKeys()
	n.watchAuthority()
	return nil
}

// watchAuthority has the next key certify as soon as everybody who is here knows it.
func (n *network) watchAuthority() {
	if n.gate == nil || !n.second.Next {
		return
	}
	edition := n.keysEdition
	wait := time.Until(time.Unix(n.second.Since, 0).Add(n.cfg.Announce))
	n.loop.after(max(wait, time.Second), func() {
		switch {
		case n.keysEdition != edition: // changed meanwhile
		case n.waitsForHeard():
			n.watchAuthority()
		default:
			go n.takeNextKey(context.Background()) // the loop does it: it ends with that
		}
	})
}

// waitsForHeard reports whether a host that is here does not know the keys of now.
func (n *network) waitsForHeard() bool { return len(n.unheard()) > 0 || n.grace != nil }

// unheard names the hosts that are here and do not know the keys of now.
func (n *network) unheard() (list []string) {
	for _, h := range n.hosts {
		if h.Here && (h.session == nil || h.heard != n.keysEdition) {
			list = append(list, h.Name)
		}
	}
	slices.Sort(list)
	return list
}

// takeNextKey certifies by the next key from now on, once that is saved.
func (n *network) takeNextKey(ctx context.Context) {
	_, err := (&trustAPI{n: n, admin: n.admin}).withKeys(ctx, func() (ed25519.PrivateKey, store.Authority, error) {
		if !n.second.Next {
			return nil, n.second, fmt.Errorf("%w: it is there no more", errConflict)
		}
		return ed25519.NewKeyFromSeed(n.second.Seed), store.Authority{Seed: n.key.Seed(), Since: time.Now().Unix(), Retired: n.second.Retired}, nil
	}, "the network's next key certifies now: the one of before counts until it is retired")
	if err != nil {
		n.log.Warn("the network's next key does not certify yet; trying again", "error", err)
		n.loop.post(n.watchAuthority)
	}
}

// tellKeys tells all sessions the network's keys, with certificates by the one of now; a few at a time.
func (n *network) tellKeys() {
	edition := n.keysEdition
	var all []func()
	for _, name := range slices.Sorted(maps.Keys(n.routers)) {
		if s := n.routers[name].session; s != nil {
			all = append(all, func() {
				if c := n.credentialOf(s.peer); c != nil {
					s.send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Credential{Credential: c}})
				}
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.hosts)) {
		if h := n.hosts[name]; h.session != nil {
			s := h.session
			all = append(all, func() {
				if h.session == s {
					n.tellHostKeys(h)
				}
			})
		}
	}
	n.inTurn(all, func() bool { return n.keysEdition == edition })
}

// inTurn does all of it, for as long as it is to be done, and lets the loop do other things between.
func (n *network) inTurn(all []func(), still func() bool) {
	if !still() {
		return
	}
	now := all[:min(tellAtOnce, len(all))]
	for _, f := range now {
		f()
	}
	if rest := all[len(now):]; len(rest) > 0 {
		n.loop.after(0, func() { n.inTurn(rest, still) })
	}
}

// tellHostKeys tells a host first whose certificates count, then what it has of those.
func (n *network) tellHostKeys(h *host) {
	s := h.session
	s.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_NetworkKeys{NetworkKeys: &apiv1.NetworkKeys{Keys: n.networkKeys()}}})
	n.certifyPlaces(h)
	n.certifyFormer(h)
	if c := n.credentialOf(s.peer); c != nil {
		s.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Credential{Credential: c}})
	}
	h.heard = n.keysEdition
}

// credentialOf is a fresh one for who showed one.
func (n *network) credentialOf(p peer) *apiv1.Credential {
	if p.leaf == nil {
		return nil
	}
	c, err := n.credential(p.Identity)
	if err != nil {
		n.log.Error("a credential could not be made anew", "of", p.Identity.String(), "error", err)
		return nil
	}
	return c
}

// authorityState is the network's keys and who has not followed.
func (n *network) authorityState() *apiv1.AuthorityState {
	now := n.gate.pin().String()
	state := &apiv1.AuthorityState{}
	certifies := &apiv1.AuthorityKey{Id: now, State: "certifies"}
	if len(n.second.Seed) == 0 || !n.second.Next {
		certifies.SinceUnix = n.second.Since
	}
	if len(n.second.Seed) > 0 {
		other := &apiv1.AuthorityKey{Id: pinOfSeed(n.second.Seed), State: "former", SinceUnix: n.second.Since}
		if n.second.Next {
			other.State, state.Unheard = "next", n.unheard()
		}
		state.Keys = append(state.Keys, other)
		for _, t := range n.tokens {
			if !n.second.Next && t.Pin != now && apiToken(t).State == "open" {
				state.Tokens++
			}
		}
	}
	state.Keys = append(state.Keys, certifies)
	for _, m := range n.members {
		if m.By != now && (m.By != "" || len(n.second.Seed) > 0 && !n.second.Next) {
			state.Behind = append(state.Behind, apiMember(m))
		}
	}
	slices.SortFunc(state.Behind, func(a, b *apiv1.Member) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name))
	})
	return state
}

func pinOfSeed(seed []byte) string {
	return trust.PinOf(ed25519.NewKeyFromSeed(bytes.Clone(seed)).Public().(ed25519.PublicKey)).String()
}
