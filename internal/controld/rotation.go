package controld

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// keyOverlap is how long a member's key of before counts beside the one that took its place: what it signed is still
// under way, and other hosts hear of neither at once.
const keyOverlap = time.Minute

// Rotate gives a host or router a credential for another key. Until it joins with that, nothing has changed.
func (t *trustAPI) Rotate(ctx context.Context, req *connect.Request[apiv1.RotateRequest]) (*connect.Response[apiv1.Credential], error) {
	n, m, p := t.n, req.Msg, peerOf(ctx)
	if err := n.needsKeys(); err != nil {
		return nil, err
	}
	if p.leaf == nil || p.Role != trust.Host && p.Role != trust.Router {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%w: only a host or a router gets another key so: an administrator logs out and in again", errConflict))
	}
	if err := api.CheckRotation(m, p.Key); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var answer *apiv1.Credential
	err := t.admin.do(ctx, func() (c change, err error) {
		answer, c, err = n.rotating(p, m.Key)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// rotating is the change by which a member may join with another key.
func (n *network) rotating(p peer, key []byte) (*apiv1.Credential, change, error) {
	m := n.members[memberName{string(p.Role), p.Name}]
	refuse := func(format string, args ...any) (*apiv1.Credential, change, error) {
		return nil, change{}, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%w: "+format, append([]any{errConflict}, args...)...))
	}
	switch r, gone := n.gate.isRevoked(key); {
	case !bytes.Equal(m.Key, p.Key):
		return refuse("%v has another key by now", p)
	case gone:
		return nil, change{}, connect.NewError(connect.CodePermissionDenied, wasRevoked(r))
	case bytes.Equal(key, m.Key) || slices.ContainsFunc(m.Former, func(k []byte) bool { return bytes.Equal(k, key) }):
		return refuse("this is the key that %v has, or had", p)
	case p.Role == trust.Host && n.unaware() != "":
		return refuse("%s does not know successions of keys: flows with %s would not move any more: upgrade it first", n.unaware(), p.Name)
	}
	who := p.Identity
	who.Key = key
	answer, err := n.credential(who)
	if err != nil {
		return nil, change{}, err
	}
	before := m.Next
	m.Next = key
	c := change{records: []store.Change{store.PutMember(m)}}
	if dropped := len(before) > 0 && !bytes.Equal(before, key); dropped {
		r := store.Revoked{Key: before, Role: m.Role, Name: m.Name, At: time.Now().Unix(), Replaced: true}
		c.records = append(c.records, store.PutRevoked(r))
		c.effect = func() { n.enrol(m); n.gate.revoke(r) }
		return answer, c, nil
	}
	c.effect = func() { n.enrol(m) }
	return answer, c, nil
}

// unaware names a host that is here and of a version that knows no successions; "" where there is none.
func (n *network) unaware() string {
	for _, name := range slices.Sorted(maps.Keys(n.hosts)) {
		if h := n.hosts[name]; h.session != nil && !h.succeeds {
			return fmt.Sprintf("host %s (version %s)", name, cmp.Or(h.version, "unknown"))
		}
	}
	return ""
}

// isNext reports whether a member was given the key in the place of its own.
func (n *network) isNext(role trust.Role, name string, key []byte) bool {
	m := n.members[memberName{string(role), name}]
	return len(key) > 0 && bytes.Equal(m.Next, key)
}

// succeeded makes the next key of a member its own: it has joined with it.
func (n *network) succeeded(role trust.Role, name string, key []byte) (happened bool) {
	if n.gate == nil || !n.isNext(role, name, key) {
		return false
	}
	m := n.members[memberName{string(role), name}]
	m.Former = append(slices.Clone(m.Former), m.Key)
	m.Key, m.Next, m.Rotated = key, nil, time.Now().Unix()
	n.enrol(m)
	n.saver.later(store.PutMember(m))
	n.event(string(role)+".rotate", name, string(role)+" has another key", "key", apiMember(m).Key, "former", fmt.Sprintf("%08x", wire.KeyID(m.Former[len(m.Former)-1])))
	n.retireLater(m)
	return true
}

// retireLater revokes the key of before when its time beside the new one is over.
func (n *network) retireLater(m store.Member) {
	if len(m.Former) == 0 || n.gate == nil {
		return
	}
	last := m.Former[len(m.Former)-1]
	if _, gone := n.gate.isRevoked(last); gone {
		return
	}
	over := time.Unix(m.Rotated, 0).Add(n.cfg.KeyOverlap)
	n.loop.after(max(0, time.Until(over)), func() { n.retire(m, last) })
}

func (n *network) retire(m store.Member, key []byte) {
	if now := n.members[memberName{m.Role, m.Name}]; bytes.Equal(now.Key, key) {
		return // forgotten, and enrolled anew from a backup
	}
	if _, gone := n.gate.isRevoked(key); gone {
		return
	}
	r := store.Revoked{Key: key, Role: m.Role, Name: m.Name, At: time.Now().Unix(), Replaced: true}
	n.gate.revoke(r)
	n.saver.later(store.PutRevoked(r))
	n.tellRevoked([]store.Revoked{r})
}

// succession is the network's word that the host's key took the place of its first one; nil where it is that.
func (n *network) succession(h *host) []byte {
	m := n.members[memberName{string(trust.Host), h.Name}]
	if n.key == nil || len(m.Former) == 0 || !bytes.Equal(m.Key, h.Key) {
		return nil
	}
	now := time.Now()
	s := wire.Succeed(n.key, h.Key, m.Origin(), now.Add(-api.JoinSkew).Unix(), now.Add(n.cfg.CertifyFor).Unix())
	return s.Append(nil)
}

// certifyFormer gives a host that has another key certificates for the locators that it left lately: who knows it by one
// of them takes no word of it that names another key.
func (n *network) certifyFormer(h *host) {
	for l, held := range n.quarantine {
		if held.host == h.Name && !h.has(l) {
			h.session.send(&apiv1.HostOrder{Order: &apiv1.HostOrder_Attached{Attached: &apiv1.Attached{
				Locator: l.String(), Certificate: n.certificate(h.Key, l), Succession: n.succession(h)}}})
		}
	}
}

// keysOf are those that a host has and had, as far as the network knows: a permit for one of them is the host's.
func (n *network) keysOf(h *host) [][]byte {
	keys := [][]byte{h.shown}
	if m := n.members[memberName{string(trust.Host), h.Name}]; n.key != nil && bytes.Equal(m.Key, h.shown) {
		keys = append(keys, m.Former...)
	}
	return keys
}

// permitFor checks a permit for one of the host's keys.
func (n *network) permitFor(h *host, p *wire.Permit, id sid.ServiceID, service []byte, now int64) (err error) {
	for _, key := range n.keysOf(h) {
		if err = p.Check(id, service, key, now); err == nil {
			return nil
		}
	}
	return p.Check(id, service, h.shown, now)
}
