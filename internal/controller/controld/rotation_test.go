package controld

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

func publicOf(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// aware is a host's request of now, of a version that knows successions.
func aware(j *apiv1.Join, key ed25519.PrivateKey) *apiv1.Join {
	j.Succeeds = true
	return signed(j, key)
}

// rotate asks for another key as a member.
func rotate(t *testing.T, at string, m *trust.Member, key ed25519.PrivateKey) (*trust.Member, error) {
	t.Helper()
	answer, err := call(t, at, m.Config()).trust.Rotate(t.Context(), connect.NewRequest(api.SignRotation(key, m.Who().Key)))
	if err != nil {
		return nil, err
	}
	return trust.NewMember(key, trust.Credential{Certificate: answer.Msg.Certificate, Roots: answer.Msg.Roots})
}

func (h *fakeHost) isIn() {
	h.t.Helper()
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
}

// A host that gets another key keeps its place, its registrations and what it is known by; the key of before counts for
// a while, and never again.
func TestAHostWithAnotherKeyIsTheSameHost(t *testing.T) {
	c, at := keyed(t, config.Config{KeyOverlap: 500 * time.Millisecond})
	c.router("r1")
	id := c.create("web")
	first, second := newKey(t), newKey(t)
	m, err := redeem(t, at, c.token(&apiv1.CreateTokenRequest{Role: "host"}), "s1", first)
	if err != nil {
		t.Fatal(err)
	}
	other, otherKey := c.member(at, "host", "s2")
	witness := c.hostOver(call(t, at, other.Config()).agent, aware(join("s2", "r1"), otherKey))
	witness.isIn()
	h := c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), first))
	h.isIn()
	h.serves(web(id))
	c.await("it serves", func() bool { return len(c.service("web").Instances) == 1 })

	// Both ends have to agree to a key, and nobody brings one that somebody has.
	forged := api.SignRotation(second, m.Who().Key)
	forged.Signature[0] ^= 1
	_, err = call(t, at, m.Config()).trust.Rotate(t.Context(), connect.NewRequest(forged))
	refusedWith(t, "without having the key", err, connect.CodeInvalidArgument, "not signed by the key")
	_, err = rotate(t, at, m, first)
	refusedWith(t, "to the same key", err, connect.CodeFailedPrecondition, "has, or had")
	dropped := newKey(t)
	if _, err := rotate(t, at, m, dropped); err != nil {
		t.Fatal(err)
	}
	next, err := rotate(t, at, m, second) // the answer to the one before was lost, and so was its key
	if err != nil {
		t.Fatal(err)
	}
	_, err = rotate(t, at, m, dropped)
	refusedWith(t, "to one that was dropped", err, connect.CodePermissionDenied, "that of before")
	again := c.hostOver(call(t, at, next.Config()).agent, aware(join("s1", "r1"), second))
	again.isIn()
	if again.locator() != h.locator() {
		t.Errorf("it was at %v and is at %v", h.locator(), again.locator())
	}
	if len(c.service("web").Instances) != 1 {
		t.Error("its registrations are gone before it has told them again")
	}
	network := again.joined.NetworkKey
	checkCertificate(t, network, second, again.locator(), again.joined.Certificate)
	s, err := wire.ParseSuccession(again.joined.Succession)
	if err == nil {
		err = s.Check(network, wire.Key(publicOf(second)), time.Now().Unix())
	}
	if err != nil || s.Origin != wire.Key(publicOf(first)) {
		t.Errorf("the succession: %+v, %v", s, err)
	}
	witness.told("not to take certificates of the key of before", func(o *apiv1.HostOrder) bool {
		return len(o.GetRevoked().GetList()) == 1 && bytes.Equal(o.GetRevoked().List[0].Key, publicOf(first))
	})
	_, err = call(t, at, m.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	refusedWith(t, "a copy of before", err, connect.CodeUnauthenticated, "has another one since")
	if again.over() {
		t.Error("the host with the new key lost its stream")
	}

	// A controller that starts anew knows all of it.
	c.kill()
	c.run(config.Config{Trust: config.TrustKeys, Listen: []string{"https://" + at}, Grace: time.Millisecond})
	c.router("r1")
	third := newKey(t)
	back := c.hostOver(call(t, at, next.Config()).agent, aware(join("s1", "r1"), second))
	back.isIn()
	if s, err := wire.ParseSuccession(back.joined.Succession); err != nil || s.Origin != wire.Key(publicOf(first)) {
		t.Errorf("after a restart: %+v, %v", s, err)
	}
	last, err := rotate(t, at, next, third)
	if err != nil {
		t.Fatal(err)
	}
	// Everything of it is revoked with it, also the key that it has not joined with.
	answer, err := c.local().trust.Forget(t.Context(), connect.NewRequest(&apiv1.ForgetRequest{Role: "host", Name: "s1"}))
	if err != nil || answer.Msg.Sessions == 0 {
		t.Errorf("%v, %v", answer, err)
	}
	for name, m := range map[string]*trust.Member{"its key": next, "its next one": last} {
		_, err = call(t, at, m.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
		refusedWith(t, name, err, connect.CodeUnauthenticated, "was revoked")
	}
}

// Who knows a host by a locator that it left hears of its new key there too.
func TestLocatorsOfBeforeAreCertifiedForTheNewKey(t *testing.T) {
	c, at := keyed(t, config.Config{})
	c.linked()
	m, key := c.member(at, "host", "s1")
	h := c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), key))
	h.isIn()
	left := h.locator()
	moved := aware(join("s1", "r2"), key)
	h = c.hostOver(call(t, at, m.Config()).agent, moved)
	h.isIn()
	next := newKey(t)
	n, err := rotate(t, at, m, next)
	if err != nil {
		t.Fatal(err)
	}
	h = c.hostOver(call(t, at, n.Config()).agent, aware(join("s1", "r2"), next))
	h.isIn()
	h.told("a certificate for the locator that it left", func(o *apiv1.HostOrder) bool {
		a := o.GetAttached()
		if a == nil || parseLocator(a.Locator) != left {
			return false
		}
		checkCertificate(t, h.joined.NetworkKey, next, left, a.Certificate)
		return len(a.Succession) == wire.SuccessionLen
	})
	c.refusedJoin(call(t, at, m.Config()).agent, aware(join("s1", "r2"), key), "belongs to the host with the key")
}

// A permit names a host by its key, and is the host's when that has another one.
func TestPermitsOutliveTheKeyOfTheirHost(t *testing.T) {
	c, at := keyed(t, config.Config{})
	c.router("r1")
	service := newKey(t)
	id := c.keyed("web", service)
	m, first := c.member(at, "host", "s1")
	p := wire.Delegate(service, id, publicOf(first), 0, time.Now().Unix()+3600)
	h := c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), first))
	h.isIn()
	serve := func(h *fakeHost, key ed25519.PrivateKey) {
		r := registration(web(id), true)
		r.Permit, r.Signature = p.Append(nil), wire.Stand{Challenge: h.joined.Challenge, Triple: web(id)}.Sign(key)
		h.delta(r)
	}
	serve(h, first)
	c.await("it serves", func() bool { return len(c.service("web").Instances) == 1 })
	second := newKey(t)
	next, err := rotate(t, at, m, second)
	if err != nil {
		t.Fatal(err)
	}
	h = c.hostOver(call(t, at, next.Config()).agent, aware(join("s1", "r1"), second))
	h.isIn()
	if len(c.service("web").Instances) != 1 {
		t.Error("it serves no more with its new key")
	}
	serve(h, second)
	serve(h, first) // the key of before proves nothing any more
	h.told("that this does not count", func(o *apiv1.HostOrder) bool { return o.GetRegistrationRefused() != nil })
	serve(h, second)
	c.await("it serves again", func() bool { return len(c.service("web").Instances) == 1 })
}

func TestNoKeyIsReplacedWhileAHostWouldNotUnderstand(t *testing.T) {
	c, at := keyed(t, config.Config{})
	c.router("r1")
	old, oldKey := c.member(at, "host", "old")
	c.hostOver(call(t, at, old.Config()).agent, signed(join("old", "r1"), oldKey)).isIn()
	m, key := c.member(at, "host", "s1")
	c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), key)).isIn()
	_, err := rotate(t, at, m, newKey(t))
	refusedWith(t, "beside a host of an older version", err, connect.CodeFailedPrecondition, "host old")
	admin, _ := c.member(at, "admin", "ann")
	_, err = rotate(t, at, admin, newKey(t))
	refusedWith(t, "of an administrator", err, connect.CodeFailedPrecondition, "in again")
}

func TestARouterGetsAnotherKey(t *testing.T) {
	c, at := keyed(t, config.Config{KeyOverlap: 300 * time.Millisecond})
	m, _ := c.member(at, "router", "r1")
	joinAs := func(m *trust.Member) *apiv1.RouterOrder {
		stream := call(t, at, m.Config()).agent.Router(t.Context())
		stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: &apiv1.RouterJoin{Name: "r1", BootId: "x"}}})
		first, err := stream.Receive()
		if err != nil {
			return &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Refused{Refused: &apiv1.Refused{Reason: err.Error()}}}
		}
		return first
	}
	before := joinAs(m)
	next, err := rotate(t, at, m, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	now := joinAs(next)
	if now.GetJoined() == nil || now.GetJoined().Locator != before.GetJoined().Locator {
		t.Errorf("%v, before %v", now, before)
	}
	if refused := joinAs(m); refused.GetRefused() == nil {
		t.Errorf("with the key of before: %v", refused)
	}
	c.await("the key of before is revoked", func() bool {
		_, err := call(t, at, m.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
		return connect.CodeOf(err) == connect.CodeUnauthenticated
	})
	list, err := c.local().trust.ListMembers(t.Context(), connect.NewRequest(&apiv1.ListMembersRequest{}))
	if err != nil || len(list.Msg.Members) != 1 || list.Msg.Members[0].Rotations != 1 || list.Msg.Members[0].Next != "" {
		t.Errorf("%v, %v", list, err)
	}
}

// An agent of boost gets another key as hosts and routers do; the agents of other sites hear of it.
func TestAnAgentGetsAnotherKey(t *testing.T) {
	c, at := keyed(t, config.Config{KeyOverlap: 300 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	m, key := c.member(at, "agent", "a1")
	o, otherKey := c.member(at, "agent", "b1")
	boost := apiv1connect.NewBoostClient(c.local().http, api.BaseURL())
	for _, s := range []*apiv1.BoostSite{{Name: "a", Prefixes: []string{"192.0.2.0/24"}, Agents: []string{"a1"}}, {Name: "b", Prefixes: []string{"198.51.100.0/24"}, Agents: []string{"b1"}}} {
		if _, err := boost.SetBoostSite(ctx, connect.NewRequest(s)); err != nil {
			t.Fatal(err)
		}
	}
	joins := func(m *trust.Member, key ed25519.PrivateKey, name, door string) func() *apiv1.BoostOrder {
		stream := apiv1connect.NewBoostStreamClient(call(t, at, m.Config()).http, api.BaseURL()).Agent(ctx)
		stream.Send(&apiv1.BoostReport{Report: &apiv1.BoostReport_Join{Join: &apiv1.BoostJoin{Name: name, Door: door, Key: publicOf(key), BootId: name}}})
		return func() *apiv1.BoostOrder {
			t.Helper()
			order, err := stream.Receive()
			if err != nil { // a key that counts no more comes no further than the door
				return &apiv1.BoostOrder{Order: &apiv1.BoostOrder_Refused{Refused: &apiv1.Refused{Reason: err.Error()}}}
			}
			return order
		}
	}
	told := joins(o, otherKey, "b1", "198.51.100.1:23731")
	hears := func(key ed25519.PrivateKey) {
		t.Helper()
		for {
			order := told()
			if no := order.GetRefused(); no != nil {
				t.Fatal(no)
			}
			if l := order.GetLanes(); len(l.GetAgents()) == 1 && bytes.Equal(l.Agents[0].Key, publicOf(key)) {
				return
			}
		}
	}
	if first := joins(m, key, "a1", "192.0.2.1:23731")(); first.GetJoined() == nil {
		t.Fatal(first)
	}
	hears(key)
	second := newKey(t)
	next, err := rotate(t, at, m, second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rotate(t, at, next, newKey(t))
	refusedWith(t, "before it has joined with that", err, connect.CodeFailedPrecondition, "has not joined with the key")
	if now := joins(next, second, "a1", "192.0.2.1:23731")(); now.GetJoined() == nil {
		t.Fatal(now)
	}
	hears(second)
	if refused := joins(m, key, "a1", "192.0.2.1:23731")(); refused.GetRefused() == nil {
		t.Errorf("with the key of before: %v", refused)
	}
	c.await("the key of before is revoked", func() bool {
		_, err := call(t, at, m.Config()).admin.GetStatus(ctx, connect.NewRequest(&apiv1.GetStatusRequest{}))
		return connect.CodeOf(err) == connect.CodeUnauthenticated
	})
}
