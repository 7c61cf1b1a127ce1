package members

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// A memberName is unique among those of a role.
type memberName struct{ role, name string }

// recallFor is how long a revoked key is remembered after the last certificate of it must have ended.
const recallFor = 24 * time.Hour

// admissible says why the key cannot become the member.
func (x *Members) admissible(role trust.Role, name string, key []byte) error {
	if len(key) != ed25519.PublicKeySize {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("a key of %d bytes, want an Ed25519 one of %d", len(key), ed25519.PublicKeySize))
	}
	if clean, err := names.Clean(name, ""); err != nil || clean != name {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s name %.80q: want letters, digits and hyphens, in lower case", role, name))
	}
	if r, gone := x.gate.IsRevoked(key); gone {
		return connect.NewError(connect.CodePermissionDenied, gate.WasRevoked(r))
	}
	have := x.members[memberName{string(role), name}].Key
	if have == nil && role == trust.Host {
		have, _ = x.network.HostKey(name) // it was there before there were credentials
	}
	if have != nil && !bytes.Equal(have, key) {
		return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf(
			"the name is taken: there is a %s %s with the key %08x: choose another name (--name), or free this one with `scaffold %s forget %s` if that machine is gone for good", role, name, wire.KeyID(have), role, name))
	}
	return nil
}

// credential certifies a member from now on.
func (x *Members) credential(who trust.Identity) (*apiv1.Credential, error) {
	now := time.Now()
	until := now.Add(x.cfg.CredentialFor)
	der, err := x.authority.Issue(who, now.Add(-trust.Skew), until)
	if err != nil {
		return nil, err
	}
	x.gate.Granted(who, until)
	if m, known := x.members[memberName{string(who.Role), who.Name}]; known {
		m.By, m.Issued = x.gate.Pin().String(), now.Unix()
		x.enrol(m)
		x.saver.Later(store.PutMember(m))
	}
	return &apiv1.Credential{
		Certificate: der, Roots: x.gate.Roots(), Role: string(who.Role), Name: who.Name,
		Network: x.cfg.Network, UntilUnix: until.Unix(), Domain: x.cfg.Domain,
	}, nil
}

// enrol makes somebody a member.
func (x *Members) enrol(m store.Member) {
	x.members[memberName{m.Role, m.Name}] = m
}

// Fresh is a credential to replace one that has had a third of its time; nil where there is no need.
func (x *Members) Fresh(p gate.Peer) *apiv1.Credential {
	if p.Leaf == nil || x.gate == nil || !trust.Stale(p.Leaf, time.Now()) && !x.outdated(p.Leaf) {
		return nil
	}
	return x.Renewed(p)
}

// RenewLater sends a member fresh credentials for as long as its session lasts, which ends with the context. Sessions are
// far shorter than credentials: what waited on after their end would keep all that they had for a month.
func (x *Members) RenewLater(session context.Context, p gate.Peer, send func(*apiv1.Credential)) {
	if p.Leaf == nil || x.gate == nil {
		return
	}
	x.loop.During(session, x.cfg.CredentialFor/3, func() {
		if c := x.Renewed(p); c != nil {
			send(c)
		}
		x.RenewLater(session, p, send)
	})
}

// Forget revokes a member's key and frees its name.
func (t *Trust) Forget(ctx context.Context, req *connect.Request[apiv1.ForgetRequest]) (*connect.Response[apiv1.ForgetResponse], error) {
	x, m := t.x, req.Msg
	answer := &apiv1.ForgetResponse{}
	role, err := trust.ParseRole(m.Role)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if p := gate.PeerOf(ctx); !p.Rules() && !p.Is(role, m.Name) {
		return nil, gate.Forbidden(p, fmt.Sprintf("forget %s %.80q", role, m.Name))
	}
	err = t.x.orders.Do(ctx, func() (orders.Change, error) {
		gone, known := x.whoIs(role, m.Name)
		if !known {
			return orders.Change{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("no %s %.80q: `scaffold token members` lists them all", role, m.Name))
		}
		if role == trust.Router && !m.Force {
			if err := x.network.Needed(m.Name); err != nil {
				return orders.Change{}, err
			}
		}
		if len(gone.Key) > 0 {
			answer.Key = fmt.Sprintf("%08x", wire.KeyID(gone.Key))
		}
		return x.forgetting(role, m.Name, gone, &answer.Sessions), nil
	})
	if err != nil {
		return nil, err
	}
	t.x.orders.Await(ctx)
	return connect.NewResponse(answer), nil
}

// whoIs finds a member, or a host or router that came before there were credentials or to an open network.
func (x *Members) whoIs(role trust.Role, name string) (store.Member, bool) {
	m, known := x.members[memberName{string(role), name}]
	switch {
	case known:
		return m, true
	case role == trust.Host:
		key, here := x.network.HostKey(name)
		return store.Member{Role: string(role), Name: name, Key: key}, here
	case role == trust.Router:
		return store.Member{Role: string(role), Name: name}, x.network.HasRouter(name)
	case role == trust.Agent:
		return store.Member{Role: string(role), Name: name}, x.network.HasAgent(name)
	}
	return m, false
}

// forgetting is the change by which somebody is no member any more.
func (x *Members) forgetting(role trust.Role, name string, m store.Member, sessions *uint32) orders.Change {
	c := orders.Change{Records: []store.Change{store.DeleteMember(m)}}
	var gone []store.Revoked
	if x.gate != nil {
		keys := [][]byte{m.Key, m.Next}
		if len(m.Former) > 0 { // within the time in which it counts beside the new one
			keys = append(keys, m.Former[len(m.Former)-1])
		}
		for _, key := range keys {
			if _, already := x.gate.IsRevoked(key); len(key) > 0 && !already {
				r := store.Revoked{Key: key, Role: m.Role, Name: name, At: time.Now().Unix()}
				gone, c.Records = append(gone, r), append(c.Records, store.PutRevoked(r))
			}
		}
	}
	if role == trust.Host {
		c.Records = append(c.Records, store.DeleteHost(name))
	}
	c.Effect = func() {
		delete(x.members, memberName{m.Role, name})
		for _, r := range gone {
			*sessions += uint32(x.gate.Revoke(r))
		}
		if len(gone) > 0 {
			x.network.TellRevoked(revocations(gone))
		}
		x.network.Forget(role, name)
	}
	c.Says = []*apiv1.Event{events.New(string(role)+".forget", name, string(role)+" was forgotten: its key is revoked, its name is free")}
	return c
}

func revocations(list []store.Revoked) (out []*apiv1.Revocation) {
	for _, r := range list {
		out = append(out, &apiv1.Revocation{Key: r.Key, Role: r.Role, Name: r.Name, AtUnix: r.At})
	}
	return out
}

// RevokedForHosts are the keys of which a locator's certificate may still be valid.
func (x *Members) RevokedForHosts() []*apiv1.Revocation {
	if x.gate == nil {
		return nil
	}
	oldest := time.Now().Add(-x.cfg.CertifyFor - 2*trust.Skew).Unix()
	list := slices.DeleteFunc(x.gate.Revoked(), func(r store.Revoked) bool { return r.At < oldest || r.Role != string(trust.Host) })
	return revocations(list)
}

// Restore takes up what the store holds, and forgets what cannot matter any more.
func (x *Members) Restore(state store.State) {
	for _, m := range state.Members {
		x.enrol(m)
	}
	if x.gate == nil {
		return
	}
	oldest := time.Now().Add(-x.cfg.CredentialFor - recallFor).Unix()
	for _, r := range state.Revoked {
		if r.At < oldest {
			x.saver.Later(store.DeleteRevoked(r))
			continue
		}
		x.gate.Revoke(r)
	}
	for _, m := range state.Members {
		if m.Rotated > oldest {
			x.retireLater(m)
		}
	}
	for _, t := range state.Tokens {
		x.tokens[t.ID] = t
	}
	x.pruneTokens()
}

// ListMembers lists who has a credential, and whose keys are revoked.
func (t *Trust) ListMembers(ctx context.Context, _ *connect.Request[apiv1.ListMembersRequest]) (*connect.Response[apiv1.ListMembersResponse], error) {
	return get(ctx, t.x, func() (*apiv1.ListMembersResponse, error) {
		list := new(apiv1.ListMembersResponse)
		sorted := slices.SortedFunc(maps.Values(t.x.members), func(a, b store.Member) int {
			return strings.Compare(a.Role+" "+a.Name, b.Role+" "+b.Name)
		})
		for _, m := range sorted {
			list.Members = append(list.Members, apiMember(m))
		}
		if t.x.gate != nil {
			list.Revoked = revocations(t.x.gate.Revoked())
		}
		return list, nil
	})
}

func apiMember(m store.Member) *apiv1.Member {
	out := &apiv1.Member{Role: m.Role, Name: m.Name, Key: fmt.Sprintf("%08x", wire.KeyID(m.Key)), SinceUnix: m.Since, Rotations: uint32(len(m.Former)), KeySinceUnix: m.Rotated}
	if len(m.Next) > 0 {
		out.Next = fmt.Sprintf("%08x", wire.KeyID(m.Next))
	}
	return out
}
