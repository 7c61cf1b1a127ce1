package controld

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
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// A memberName is unique among those of a role.
type memberName struct{ role, name string }

func publicKey(b []byte) ed25519.PublicKey { return ed25519.PublicKey(b) }

// recallFor is how long a revoked key is remembered after the last certificate of it must have ended.
const recallFor = 24 * time.Hour

// admissible says why the key cannot become the member.
func (n *network) admissible(role trust.Role, name string, key []byte) error {
	if len(key) != ed25519.PublicKeySize {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("a key of %d bytes, want an Ed25519 one of %d", len(key), ed25519.PublicKeySize))
	}
	if clean, err := names.Clean(name, ""); err != nil || clean != name {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s name %.80q: want letters, digits and hyphens, in lower case", role, name))
	}
	if r, gone := n.gate.isRevoked(key); gone {
		return connect.NewError(connect.CodePermissionDenied, wasRevoked(r))
	}
	have := n.members[memberName{string(role), name}].Key
	if h := n.hosts[name]; have == nil && role == trust.Host && h != nil {
		have = h.Key // it was there before there were credentials
	}
	if have != nil && !bytes.Equal(have, key) {
		return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf(
			"the name is taken: there is a %s %s with the key %08x: choose another name (--name), or free this one with `scaffold %s forget %s` if that machine is gone for good", role, name, wire.KeyID(have), role, name))
	}
	return nil
}

// credential certifies a member from now on.
func (n *network) credential(who trust.Identity) (*apiv1.Credential, error) {
	now := time.Now()
	until := now.Add(n.cfg.CredentialFor)
	der, err := n.authority.Issue(who, now.Add(-trust.Skew), until)
	if err != nil {
		return nil, err
	}
	n.gate.granted(who, until)
	if m, known := n.members[memberName{string(who.Role), who.Name}]; known && m.By != n.gate.pin().String() {
		m.By = n.gate.pin().String()
		n.enrol(m)
		n.saver.later(store.PutMember(m))
	}
	return &apiv1.Credential{
		Certificate: der, Roots: n.gate.rootsDER(), Role: string(who.Role), Name: who.Name,
		Network: n.cfg.Network, UntilUnix: until.Unix(), Domain: n.cfg.Domain,
	}, nil
}

// enrol makes somebody a member.
func (n *network) enrol(m store.Member) {
	n.members[memberName{m.Role, m.Name}] = m
}

// freshIfDue is a credential to replace one that has had a third of its time; nil where there is no need.
func (n *network) freshIfDue(p peer) *apiv1.Credential {
	if p.leaf == nil || n.gate == nil || !trust.Stale(p.leaf, time.Now()) && !n.outdated(p.leaf) {
		return nil
	}
	return n.credentialOf(p)
}

// renewLater sends a member fresh credentials for as long as its session lasts.
func (n *network) renewLater(p peer, here func() bool, send func(*apiv1.Credential)) {
	if p.leaf == nil || n.gate == nil {
		return
	}
	n.loop.after(n.cfg.CredentialFor/3, func() {
		if !here() {
			return
		}
		if c := n.credentialOf(p); c != nil {
			send(c)
		}
		n.renewLater(p, here, send)
	})
}

// Forget revokes a member's key and frees its name.
func (t *trustAPI) Forget(ctx context.Context, req *connect.Request[apiv1.ForgetRequest]) (*connect.Response[apiv1.ForgetResponse], error) {
	n, m := t.n, req.Msg
	answer := &apiv1.ForgetResponse{}
	role, err := trust.ParseRole(m.Role)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if p := peerOf(ctx); !p.rules() && !p.is(role, m.Name) {
		return nil, forbidden(p, fmt.Sprintf("forget %s %.80q", role, m.Name))
	}
	err = t.admin.do(ctx, func() (change, error) {
		gone, known := n.whoIs(role, m.Name)
		if !known {
			return change{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("no %s %.80q: `scaffold token members` lists them all", role, m.Name))
		}
		if len(gone.Key) > 0 {
			answer.Key = fmt.Sprintf("%08x", wire.KeyID(gone.Key))
		}
		return n.forgetting(role, m.Name, gone, &answer.Sessions), nil
	})
	if err != nil {
		return nil, err
	}
	t.admin.await(ctx)
	return connect.NewResponse(answer), nil
}

// whoIs finds a member, or a host or router that came before there were credentials or to an open network.
func (n *network) whoIs(role trust.Role, name string) (store.Member, bool) {
	m, known := n.members[memberName{string(role), name}]
	h, r := n.hosts[name], n.routers[name]
	switch {
	case known:
		return m, true
	case role == trust.Host && h != nil:
		return store.Member{Role: string(role), Name: name, Key: h.Key}, true
	case role == trust.Router && r != nil:
		return store.Member{Role: string(role), Name: name}, true
	}
	return m, false
}

// forgetting is the change by which somebody is no member any more.
func (n *network) forgetting(role trust.Role, name string, m store.Member, sessions *uint32) change {
	c := change{records: []store.Change{store.DeleteMember(m)}}
	var gone []store.Revoked
	if n.gate != nil {
		keys := [][]byte{m.Key, m.Next}
		if len(m.Former) > 0 { // within the time in which it counts beside the new one
			keys = append(keys, m.Former[len(m.Former)-1])
		}
		for _, key := range keys {
			if _, already := n.gate.isRevoked(key); len(key) > 0 && !already {
				r := store.Revoked{Key: key, Role: m.Role, Name: name, At: time.Now().Unix()}
				gone, c.records = append(gone, r), append(c.records, store.PutRevoked(r))
			}
		}
	}
	if role == trust.Host {
		c.records = append(c.records, store.DeleteHost(name))
	}
	c.effect = func() {
		delete(n.members, memberName{m.Role, name})
		for _, r := range gone {
			*sessions += uint32(n.gate.revoke(r))
		}
		n.tellRevoked(gone)
		switch role {
		case trust.Host:
			n.forgetHost(name)
		case trust.Router:
			n.forgetRouter(name)
		}
		n.event(string(role)+".forget", name, string(role)+" was forgotten: its key is revoked, its name is free")
	}
	return c
}

// forgetHost takes a host out of the network for good.
func (n *network) forgetHost(name string) {
	h := n.hosts[name]
	if h == nil {
		return
	}
	if s := h.session; s != nil {
		h.session = nil
		s.end(errRevoked)
	}
	n.leave(h, "it was forgotten", true)
	for l, held := range n.quarantine {
		if held.host == name { // another machine of the name is another host
			n.hold(l, name+" (forgotten)")
		}
	}
	for key, o := range n.overrides {
		if o.Host == name {
			delete(n.overrides, key)
			n.plan.SetOverride(o.Service, name, plan.Override{})
			n.saver.later(store.DeleteOverride(o))
		}
	}
	delete(n.hosts, name)
	delete(n.news, h)
	n.saver.later(store.DeleteHost(name)) // leave has saved it
}

// forgetRouter takes a router out of the network, unless hosts hang on it: they go on, and who comes under the
// name takes its place.
func (n *network) forgetRouter(name string) {
	r := n.routers[name]
	if r == nil {
		return
	}
	if s := r.session; s != nil {
		n.lostRouter(name, s, errRevoked)
		s.end(errRevoked)
	}
	if n.hasHosts(name) {
		return
	}
	delete(n.routers, name)
	delete(n.blocks, r.Block)
	n.plan.RemoveRouter(name)
	n.saver.later(store.DeleteRouter(name), store.DeleteLinks(name))
}

func (n *network) hasHosts(router string) bool {
	for _, at := range n.places {
		if at.Router == router {
			return true
		}
	}
	return false
}

// tellRevoked has hosts take no certificate of the keys any more.
func (n *network) tellRevoked(list []store.Revoked) {
	if len(list) == 0 {
		return
	}
	order := &apiv1.HostOrder{Order: &apiv1.HostOrder_Revoked{Revoked: &apiv1.Revocations{List: revocations(list)}}}
	for _, h := range n.hosts {
		if h.session != nil {
			h.session.send(order)
		}
	}
}

func revocations(list []store.Revoked) (out []*apiv1.Revocation) {
	for _, r := range list {
		out = append(out, &apiv1.Revocation{Key: r.Key, Role: r.Role, Name: r.Name, AtUnix: r.At})
	}
	return out
}

// revokedForHosts are the keys of which a locator's certificate may still be valid.
func (n *network) revokedForHosts() []*apiv1.Revocation {
	if n.gate == nil {
		return nil
	}
	oldest := time.Now().Add(-n.cfg.CertifyFor - 2*trust.Skew).Unix()
	list := slices.DeleteFunc(n.gate.allRevoked(), func(r store.Revoked) bool { return r.At < oldest || r.Role != string(trust.Host) })
	return revocations(list)
}

// restoreMembers takes up what the store holds, and forgets what cannot matter any more.
func (n *network) restoreMembers(state store.State) {
	for _, m := range state.Members {
		n.enrol(m)
	}
	if n.gate == nil {
		return
	}
	oldest := time.Now().Add(-n.cfg.CredentialFor - recallFor).Unix()
	for _, r := range state.Revoked {
		if r.At < oldest {
			n.saver.later(store.DeleteRevoked(r))
			continue
		}
		n.gate.revoke(r)
	}
	for _, m := range state.Members {
		if m.Rotated > oldest {
			n.retireLater(m)
		}
	}
	for _, t := range state.Tokens {
		n.tokens[t.ID] = t
	}
	n.pruneTokens()
}

// ListMembers lists who has a credential, and whose keys are revoked.
func (t *trustAPI) ListMembers(ctx context.Context, _ *connect.Request[apiv1.ListMembersRequest]) (*connect.Response[apiv1.ListMembersResponse], error) {
	return get(ctx, t.n, func() (*apiv1.ListMembersResponse, error) {
		list := new(apiv1.ListMembersResponse)
		sorted := slices.SortedFunc(maps.Values(t.n.members), func(a, b store.Member) int {
			return strings.Compare(a.Role+" "+a.Name, b.Role+" "+b.Name)
		})
		for _, m := range sorted {
			list.Members = append(list.Members, apiMember(m))
		}
		if t.n.gate != nil {
			list.Revoked = revocations(t.n.gate.allRevoked())
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
