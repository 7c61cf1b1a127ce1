package members

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
)

// Take takes the network's keys: the one to certify by, and the second one while there is one.
func (x *Members) Take(seed []byte, second store.Authority) (err error) {
	if x.authority, err = x.gate.Certify(seed, second, x.cfg.Network); err != nil {
		return err
	}
	x.key, x.second = x.authority.Key(), second
	x.edition++
	return nil
}

// PublicKeys are the public keys that hosts check certificates by.
func (x *Members) PublicKeys() (list [][]byte) {
	for _, a := range [][]byte{x.key.Seed(), x.second.Seed} {
		if len(a) > 0 {
			list = append(list, ed25519.NewKeyFromSeed(a).Public().(ed25519.PublicKey))
		}
	}
	return list
}

// outdated reports whether a credential was made before the network's keys changed last: its holder may not know them.
func (x *Members) outdated(leaf *x509.Certificate) bool {
	return x.second.Since > 0 && leaf.NotBefore.Add(trust.Skew).Unix() <= x.second.Since
}

// GetAuthority shows the network's keys.
func (t *Trust) GetAuthority(ctx context.Context, _ *connect.Request[apiv1.GetAuthorityRequest]) (*connect.Response[apiv1.AuthorityState], error) {
	if err := t.x.needsKeys(); err != nil {
		return nil, err
	}
	return get(ctx, t.x, func() (*apiv1.AuthorityState, error) { return t.x.authorityState(), nil })
}

// RotateAuthority makes the network's next key.
func (t *Trust) RotateAuthority(ctx context.Context, _ *connect.Request[apiv1.RotateAuthorityRequest]) (*connect.Response[apiv1.AuthorityState], error) {
	return t.withKeys(ctx, func() (ed25519.PrivateKey, store.Authority, error) {
		x := t.x
		if len(x.second.Seed) > 0 {
			return nil, x.second, conflict("the network has two keys already: `scaffold net key retire` takes one away first")
		}
		if who := x.network.Unaware(); who != "" {
			return nil, x.second, conflict("%s knows one key of the network only: upgrade it first", who)
		}
		_, next, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, x.second, err
		}
		return x.key, store.Authority{Seed: next.Seed(), Next: true, Since: time.Now().Unix(), Retired: x.second.Retired}, nil
	}, "the network has a next key: members learn it, and it certifies once all that are here know it")
}

// RetireAuthority takes away the network's second key.
func (t *Trust) RetireAuthority(ctx context.Context, req *connect.Request[apiv1.RetireAuthorityRequest]) (*connect.Response[apiv1.AuthorityState], error) {
	return t.withKeys(ctx, func() (ed25519.PrivateKey, store.Authority, error) {
		x := t.x
		state := x.authorityState()
		i := slices.IndexFunc(state.Keys, func(k *apiv1.AuthorityKey) bool { return k.Id == req.Msg.Id })
		switch {
		case i < 0:
			return nil, x.second, connect.NewError(connect.CodeNotFound, fmt.Errorf("the network has no key %.40q", req.Msg.Id))
		case state.Keys[i].State == "certifies":
			return nil, x.second, conflict("the key %s is the one that certifies: `scaffold net key rotate` makes another one first", req.Msg.Id)
		case !x.second.Next && len(state.Behind) > 0 && !req.Msg.Force:
			return nil, x.second, conflict("%s not been here since the network has its new key, and would have to join again with a token: force goes on without them", haveNames(state.Behind))
		}
		return x.key, x.withoutSecond(), nil
	}, "a key of the network is retired: nothing that it certified counts any more")
}

// mostRetired is how many keys that count no more are remembered.
const mostRetired = 16

// withoutSecond takes the second key away. One that certified is remembered: members that slept are told.
func (x *Members) withoutSecond() store.Authority {
	now := time.Now().Unix()
	retired := slices.Clone(x.second.Retired)
	if !x.second.Next {
		retired = append(retired, store.RetiredKey{ID: pinOfSeed(x.second.Seed), At: now})
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
func (t *Trust) withKeys(ctx context.Context, choose func() (ed25519.PrivateKey, store.Authority, error), text string) (*connect.Response[apiv1.AuthorityState], error) {
	x := t.x
	if err := x.needsKeys(); err != nil {
		return nil, err
	}
	var failed error
	err := t.x.orders.Do(ctx, func() (orders.Change, error) {
		key, second, err := choose()
		if err != nil {
			return orders.Change{}, err
		}
		before, after := x.gate.Pin().String(), pinOfSeed(key.Seed())
		says := events.New("network.key", after, text)
		if before != after {
			events.Changed(says, &apiv1.FieldChange{Field: "key", From: before, To: after})
		}
		return orders.Change{Records: []store.Change{store.PutKey(key.Seed()), store.PutSecondKey(second)}, Effect: func() {
			failed = x.changeKeys(key.Seed(), second)
		}, Says: []*apiv1.Event{says}}, nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	return t.GetAuthority(ctx, nil)
}

// changeKeys takes other keys, and tells everybody.
func (x *Members) changeKeys(seed []byte, second store.Authority) error {
	if err := x.Take(seed, second); err != nil {
		return err
	}
	x.network.TellKeys()
	x.Watch()
	return nil
}

// Watch has the next key certify as soon as everybody who is here knows it.
func (x *Members) Watch() {
	if x.gate == nil || !x.second.Next {
		return
	}
	edition := x.edition
	wait := time.Until(time.Unix(x.second.Since, 0).Add(x.cfg.Announce))
	x.loop.After(max(wait, time.Second), func() {
		switch {
		case x.edition != edition: // changed meanwhile
		case len(x.network.Unheard()) > 0 || x.network.Settling():
			x.Watch()
		default:
			go x.takeNextKey(context.Background()) // the loop does it: it ends with that
		}
	})
}

// takeNextKey certifies by the next key from now on, once that is saved.
func (x *Members) takeNextKey(ctx context.Context) {
	_, err := (&Trust{x: x}).withKeys(ctx, func() (ed25519.PrivateKey, store.Authority, error) {
		if !x.second.Next {
			return nil, x.second, conflict("it is there no more")
		}
		return ed25519.NewKeyFromSeed(x.second.Seed), store.Authority{Seed: x.key.Seed(), Since: time.Now().Unix(), Retired: x.second.Retired}, nil
	}, "the network's next key certifies now: the one of before counts until it is retired")
	if err != nil {
		x.log.Warn("the network's next key does not certify yet; trying again", "error", err)
		x.loop.Post(x.Watch)
	}
}

// Renewed is a fresh one for who showed one.
func (x *Members) Renewed(p gate.Peer) *apiv1.Credential {
	if p.Leaf == nil {
		return nil
	}
	c, err := x.credential(p.Identity)
	if err != nil {
		x.log.Error("a credential could not be made anew", "of", p.Identity.String(), "error", err)
		return nil
	}
	return c
}

// authorityState is the network's keys and who has not followed.
func (x *Members) authorityState() *apiv1.AuthorityState {
	now := x.gate.Pin().String()
	state := &apiv1.AuthorityState{}
	certifies := &apiv1.AuthorityKey{Id: now, State: "certifies"}
	if len(x.second.Seed) == 0 || !x.second.Next {
		certifies.SinceUnix = x.second.Since
	}
	if len(x.second.Seed) > 0 {
		other := &apiv1.AuthorityKey{Id: pinOfSeed(x.second.Seed), State: "former", SinceUnix: x.second.Since}
		if x.second.Next {
			other.State, state.Unheard = "next", x.network.Unheard()
		}
		state.Keys = append(state.Keys, other)
		for _, t := range x.tokens {
			if !x.second.Next && t.Pin != now && apiToken(t).State == "open" {
				state.Tokens++
			}
		}
	}
	state.Keys = append(state.Keys, certifies)
	for _, m := range x.members {
		if m.By != now && (m.By != "" || len(x.second.Seed) > 0 && !x.second.Next) {
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
