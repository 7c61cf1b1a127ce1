package members

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// Rotate gives a host, a router or an agent of boost a credential for another key. Until it joins with that, nothing has
// changed.
func (t *Trust) Rotate(ctx context.Context, req *connect.Request[apiv1.RotateRequest]) (*connect.Response[apiv1.Credential], error) {
	x, m, p := t.x, req.Msg, gate.PeerOf(ctx)
	if err := x.needsKeys(); err != nil {
		return nil, err
	}
	if p.Leaf == nil || p.Role != trust.Host && p.Role != trust.Router && p.Role != trust.Agent {
		return nil, conflict("only a host, a router or an agent of boost gets another key so: an administrator logs out and in again")
	}
	if err := api.CheckRotation(m, p.Key); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var answer *apiv1.Credential
	err := t.x.orders.Do(ctx, func() (c orders.Change, err error) {
		answer, c, err = x.rotating(p, m.Key)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// rotating is the change by which a member may join with another key.
func (x *Members) rotating(p gate.Peer, key []byte) (*apiv1.Credential, orders.Change, error) {
	m := x.members[memberName{string(p.Role), p.Name}]
	refuse := func(format string, args ...any) (*apiv1.Credential, orders.Change, error) {
		return nil, orders.Change{}, conflict(format, args...)
	}
	switch r, gone := x.gate.IsRevoked(key); {
	case len(p.Key) > 0 && bytes.Equal(m.Next, p.Key):
		return refuse("%v has not joined with the key that it got last: start its daemon, and then ask again", p)
	case !bytes.Equal(m.Key, p.Key):
		return refuse("%v has another key by now", p)
	case gone:
		return nil, orders.Change{}, connect.NewError(connect.CodePermissionDenied, gate.WasRevoked(r))
	case bytes.Equal(key, m.Key) || slices.ContainsFunc(m.Former, func(k []byte) bool { return bytes.Equal(k, key) }):
		return refuse("this is the key that %v has, or had", p)
	case p.Role == trust.Host && x.network.Unaware() != "":
		return refuse("%s does not know successions of keys: flows with %s would not move any more: upgrade it first", x.network.Unaware(), p.Name)
	}
	who := p.Identity
	who.Key = key
	answer, err := x.credential(who)
	if err != nil {
		return nil, orders.Change{}, err
	}
	before := m.Next
	m.Next = key
	c := orders.Change{Records: []store.Change{store.PutMember(m)}, Says: []*apiv1.Event{events.New("member.key", m.Name, "it may join with another key from now on", "role", m.Role)}}
	if dropped := len(before) > 0 && !bytes.Equal(before, key); dropped {
		r := store.Revoked{Key: before, Role: m.Role, Name: m.Name, At: time.Now().Unix(), Replaced: true}
		c.Records = append(c.Records, store.PutRevoked(r))
		c.Effect = func() { x.enrol(m); x.gate.Revoke(r) }
		return answer, c, nil
	}
	c.Effect = func() { x.enrol(m) }
	return answer, c, nil
}

// IsNext reports whether a member was given the key in the place of its own.
func (x *Members) IsNext(role trust.Role, name string, key []byte) bool {
	m := x.members[memberName{string(role), name}]
	return len(key) > 0 && bytes.Equal(m.Next, key)
}

// Succeeded makes the next key of a member its own: it has joined with it.
func (x *Members) Succeeded(role trust.Role, name string, key []byte) (happened bool) {
	if x.gate == nil || !x.IsNext(role, name, key) {
		return false
	}
	m := x.members[memberName{string(role), name}]
	m.Former = append(slices.Clone(m.Former), m.Key)
	m.Key, m.Next, m.Rotated = key, nil, time.Now().Unix()
	x.enrol(m)
	x.saver.Later(store.PutMember(m))
	x.events.Tell(string(role)+".rotate", name, string(role)+" has another key", "key", apiMember(m).Key, "former", fmt.Sprintf("%08x", wire.KeyID(m.Former[len(m.Former)-1])))
	x.retireLater(m)
	return true
}

// retireLater revokes the key of before when its time beside the new one is over.
func (x *Members) retireLater(m store.Member) {
	if len(m.Former) == 0 || x.gate == nil {
		return
	}
	last := m.Former[len(m.Former)-1]
	if _, gone := x.gate.IsRevoked(last); gone {
		return
	}
	over := time.Unix(m.Rotated, 0).Add(x.cfg.KeyOverlap)
	x.loop.After(max(0, time.Until(over)), func() { x.retire(m, last) })
}

func (x *Members) retire(m store.Member, key []byte) {
	if now := x.members[memberName{m.Role, m.Name}]; bytes.Equal(now.Key, key) {
		return // forgotten, and enrolled anew from a backup
	}
	if _, gone := x.gate.IsRevoked(key); gone {
		return
	}
	r := store.Revoked{Key: key, Role: m.Role, Name: m.Name, At: time.Now().Unix(), Replaced: true}
	x.gate.Revoke(r)
	x.saver.Later(store.PutRevoked(r))
	x.network.TellRevoked(revocations([]store.Revoked{r}))
}

// Succession is the network's word that the host's key took the place of its first one; nil where it is that.
func (x *Members) Succession(host string, key []byte) []byte {
	m := x.members[memberName{string(trust.Host), host}]
	if x.key == nil || len(m.Former) == 0 || !bytes.Equal(m.Key, key) {
		return nil
	}
	now := time.Now()
	s := wire.Succeed(x.key, key, m.Origin(), now.Add(-api.JoinSkew).Unix(), now.Add(x.cfg.CertifyFor).Unix())
	return s.Append(nil)
}

// Keys are those that a host, whose session showed one, has and had, as far as the network knows: a permit for one of them is the host's.
func (x *Members) Keys(host string, shown []byte) [][]byte {
	keys := [][]byte{shown}
	if m := x.members[memberName{string(trust.Host), host}]; x.key != nil && bytes.Equal(m.Key, shown) {
		keys = append(keys, m.Former...)
	}
	return keys
}
