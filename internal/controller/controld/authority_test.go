package controld

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/trust"
)

func (c *controller) keysOfNetwork() *apiv1.AuthorityState {
	c.t.Helper()
	state, err := c.local().trust.GetAuthority(c.t.Context(), connect.NewRequest(&apiv1.GetAuthorityRequest{}))
	if err != nil {
		c.t.Fatal(err)
	}
	return state.Msg
}

// certifies waits until the state of the keys is this, the certifying one last.
func (c *controller) certifies(first string) (ids []string) {
	c.t.Helper()
	c.await("the first key is "+first, func() bool {
		state := c.keysOfNetwork()
		ids = nil
		for _, k := range state.Keys {
			ids = append(ids, k.Id)
		}
		return state.Keys[0].State == first
	})
	return ids
}

// take keeps a credential that came by the stream.
func (h *fakeHost) take(m *trust.Member, key ed25519.PrivateKey, what string, want func(*trust.Roots) bool) {
	h.t.Helper()
	h.told(what, func(o *apiv1.HostOrder) bool {
		c := o.GetCredential()
		if c == nil || m.Replace(key, trust.Credential{Certificate: c.Certificate, Roots: c.Roots}) != nil {
			return false
		}
		return want(m.Roots())
	})
}

// The network gets another key while all goes on: who is here learns it over the old one, who was away comes in with the
// old one until it is retired, and nobody after that.
func TestTheNetworkGetsAnotherKey(t *testing.T) {
	c, at := keyed(t, config.Config{Announce: time.Second})
	c.router("r1")
	m, key := c.member(at, "host", "s1")
	away, awayKey := c.member(at, "host", "away")
	late := c.token(&apiv1.CreateTokenRequest{Role: "host", Uses: 2})
	h := c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), key))
	h.isIn()
	before := h.joined.NetworkKey
	start, err := c.local().trust.RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{}))
	if err != nil || len(start.Msg.Keys) != 2 || start.Msg.Keys[0].State != "next" {
		t.Fatalf("%v, %v", start, err)
	}
	_, err = c.local().trust.RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{}))
	refusedWith(t, "twice", err, connect.CodeFailedPrecondition, "two keys already")
	next := start.Msg.Keys[0].Id
	h.told("both keys", func(o *apiv1.HostOrder) bool { return len(o.GetNetworkKeys().GetKeys()) == 2 })
	ids := c.certifies("former")
	if len(ids) != 2 || ids[1] != next {
		t.Fatalf("the keys are %v, the next one was %s", ids, next)
	}
	h.take(m, key, "a credential by the next key", func(r *trust.Roots) bool { return r.Pin().String() == next && len(r.DER()) == 2 })
	var fresh []byte
	var after ed25519.PublicKey
	h.told("a certificate of its locator by the next key", func(o *apiv1.HostOrder) bool {
		if k := o.GetNetworkKeys().GetKeys(); len(k) == 2 && !bytes.Equal(k[0], before) {
			after = k[0] // the one that certifies is first
		}
		if a := o.GetAttached(); a != nil && after != nil {
			fresh = a.Certificate
		}
		return fresh != nil
	})
	checkCertificate(t, after, key, h.locator(), fresh)
	if h.over() {
		t.Error("its stream ended")
	}
	// Calls by either credential, and tokens of either time.
	for name, who := range map[string]*trust.Member{"who learned it": m, "who was away": away} {
		if _, err := call(t, at, who.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	newToken := c.token(&apiv1.CreateTokenRequest{Role: "host", Uses: 2})
	for name, token := range map[string]trust.Token{"before": late, "after": newToken} {
		if _, err := redeem(t, at, token, name, newKey(t)); err != nil {
			t.Errorf("a token of %s: %v", name, err)
		}
	}
	state := c.keysOfNetwork()
	if len(state.Behind) != 1 || state.Behind[0].Name != "away" || state.Tokens != 1 {
		t.Errorf("behind are %v, and %d tokens; want the host that is away, and one", state.Behind, state.Tokens)
	}
	retire := func(id string, force bool) error {
		_, err := c.local().trust.RetireAuthority(t.Context(), connect.NewRequest(&apiv1.RetireAuthorityRequest{Id: id, Force: force}))
		return err
	}
	refusedWith(t, "the one that certifies", retire(next, true), connect.CodeFailedPrecondition, "is the one that certifies")
	refusedWith(t, "one that is not there", retire("0000", true), connect.CodeNotFound, "no key")
	refusedWith(t, "while somebody is behind", retire(ids[0], false), connect.CodeFailedPrecondition, "host away has not been here")
	// A controller that starts anew has both, and who was away learns on coming.
	c.kill()
	c.run(config.Config{Trust: config.TrustKeys, Listen: []string{"https://" + at}, Grace: time.Millisecond})
	c.router("r1")
	over := call(t, at, away.Config())
	back := c.hostOver(over.agent, aware(join("away", "r1"), awayKey))
	back.isIn()
	cred := back.joined.Credential
	if cred == nil || len(back.joined.NetworkKeys) != 2 || away.Replace(awayKey, trust.Credential{Certificate: cred.Certificate, Roots: cred.Roots}) != nil || away.Roots().Pin().String() != next {
		t.Errorf("who was away is told %v, %d keys", cred, len(back.joined.NetworkKeys))
	}
	c.await("nobody is behind", func() bool { return len(c.keysOfNetwork().Behind) == 0 })
	if err := retire(ids[0], false); err != nil {
		t.Fatal(err)
	}
	back.told("one key", func(o *apiv1.HostOrder) bool { return len(o.GetNetworkKeys().GetKeys()) == 1 })
	if _, err := over.admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{})); err != nil {
		t.Errorf("by the connection that shows the credential of before: %v", err)
	}
	if _, err := call(t, at, away.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{})); err != nil {
		t.Error(err)
	}
	if _, err := redeem(t, at, late, "x", newKey(t)); err == nil || !strings.Contains(err.Error(), "not of the network that the token is for") {
		t.Errorf("a token for the key that was retired: %v", err)
	}
	if _, err := redeem(t, at, newToken, "y", newKey(t)); err != nil {
		t.Error(err)
	}
}

// Rotating is undone by retiring the next key, and refused while a host would not understand.
func TestTheNextKeyOfTheNetworkIsTakenBack(t *testing.T) {
	c, at := keyed(t, config.Config{})
	c.router("r1")
	m, key := c.member(at, "host", "old")
	old := c.hostOver(call(t, at, m.Config()).agent, signed(join("old", "r1"), key))
	old.isIn()
	_, err := c.local().trust.RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{}))
	refusedWith(t, "beside an old host", err, connect.CodeFailedPrecondition, "host old")
	h := c.hostOver(call(t, at, m.Config()).agent, aware(join("old", "r1"), key))
	h.isIn()
	start, err := c.local().trust.RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.local().trust.RetireAuthority(t.Context(), connect.NewRequest(&apiv1.RetireAuthorityRequest{Id: start.Msg.Keys[0].Id})); err != nil {
		t.Fatal(err)
	}
	h.told("one key, as before", func(o *apiv1.HostOrder) bool { return len(o.GetNetworkKeys().GetKeys()) == 1 })
	if state := c.keysOfNetwork(); len(state.Keys) != 1 || state.Keys[0].Id != start.Msg.Keys[1].Id || len(state.Behind) != 0 {
		t.Errorf("%v", state)
	}
	_, err = call(t, at, m.Config()).trust.GetAuthority(t.Context(), connect.NewRequest(&apiv1.GetAuthorityRequest{}))
	refusedWith(t, "asked by a host", err, connect.CodePermissionDenied, "may not")
}

// A host that is here and has not heard of the next key holds it up, and is named.
func TestTheNextKeyNamesWhomItWaitsFor(t *testing.T) {
	c, at := keyed(t, config.Config{Announce: time.Second})
	c.router("r1")
	m, key := c.member(at, "host", "s1")
	h := c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), key))
	h.isIn()
	h.cancel()
	c.await("its stream has ended", func() bool {
		state := c.keysOfNetwork()
		if len(state.Keys) == 1 {
			if _, err := c.local().trust.RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{})); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Equal(state.Unheard, []string{"s1"})
	})
	again := c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), key))
	again.isIn()
	c.certifies("former")
	if state := c.keysOfNetwork(); len(state.Unheard) != 0 {
		t.Errorf("it waits for %v", state.Unheard)
	}
}

// Who has a certificate by a key that was retired is told that it was, and becomes the same member again by a token.
// A host that is cut off while its stream stands has not heard of what is sent to it.
func TestAHostThatIsGoneHasNotHeardOfTheNextKey(t *testing.T) {
	c, at := keyed(t, config.Config{Announce: time.Second})
	r := c.router("r1")
	m, key := c.member(at, "host", "s1")
	h := c.hostOver(call(t, at, m.Config()).agent, aware(join("s1", "r1"), key))
	h.isIn()
	r.state(h.locator(), "up")
	r.state(h.locator(), "gone")
	c.event("host.gone")
	if _, err := c.local().trust.RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{})); err != nil {
		t.Fatal(err)
	}
	if state := c.keysOfNetwork(); !slices.Equal(state.Unheard, []string{"s1"}) {
		t.Errorf("it waits for %v, want s1", state.Unheard)
	}
	r.state(h.locator(), "up")
	h.told("both keys", func(o *apiv1.HostOrder) bool { return len(o.GetNetworkKeys().GetKeys()) == 2 })
	c.certifies("former")
}

func TestAfterAKeyIsRetiredMembersAreToldAndComeBack(t *testing.T) {
	c, at := keyed(t, config.Config{Announce: time.Second})
	m, key := c.member(at, "host", "s1")
	trustAPI := c.local().trust
	state, err := trustAPI.RotateAuthority(t.Context(), connect.NewRequest(&apiv1.RotateAuthorityRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	former := c.certifies("former")[0]
	if _, err := trustAPI.RetireAuthority(t.Context(), connect.NewRequest(&apiv1.RetireAuthorityRequest{Id: former, Force: true})); err != nil {
		t.Fatal(err)
	}
	c.kill()
	c.run(config.Config{Trust: config.TrustKeys, Listen: []string{"https://" + at}, Grace: time.Millisecond})
	_, err = call(t, at, m.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	refusedWith(t, "one that slept", err, connect.CodeUnavailable, "`scaffold join --token T` on this machine makes it a member again")
	unaware := m.Config()
	unaware.VerifyConnection = nil // it takes any controller
	_, err = call(t, at, unaware).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	refusedWith(t, "one that does not look", err, connect.CodeUnauthenticated, "the key "+former+", by which it was certified, was retired")
	met, err := c.local().trust.Meet(t.Context(), connect.NewRequest(&apiv1.MeetRequest{}))
	if err != nil || !m.Roots().Any(met.Msg.Retired) || slices.Contains(met.Msg.Retired, state.Msg.Keys[0].Id) {
		t.Errorf("%v, %v: want the key that was retired, and not the one of now", met, err)
	}
	again, err := redeem(t, at, c.token(&apiv1.CreateTokenRequest{Role: "host"}), "s1", key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, at, again.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{})); err != nil {
		t.Error(err)
	}
}
