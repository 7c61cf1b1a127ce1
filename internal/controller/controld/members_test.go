package controld

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/tests/freeport"
	"scaffold.dev/scaffold/internal/trust"
)

// A caller is somebody at the controller's TCP port.
type caller struct {
	admin apiv1connect.AdminClient
	agent apiv1connect.AgentClient
	trust apiv1connect.TrustClient
	http  *http.Client
}

// keyed runs a controller with keys and a port.
func keyed(t *testing.T, cfg config.Config) (c *controller, at string) {
	t.Helper()
	at = freeport.Address(t)
	cfg.Trust, cfg.Listen = config.TrustKeys, []string{"https://" + at}
	return start(t, cfg), at
}

// call connects as somebody; nil: in the clear.
func call(t *testing.T, at string, who *tls.Config) caller {
	t.Helper()
	client, base, err := api.DialAs("http://"+at, who)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return caller{apiv1connect.NewAdminClient(client, base), apiv1connect.NewAgentClient(client, base), apiv1connect.NewTrustClient(client, base), client}
}

func (c *controller) local() caller {
	client, base, err := api.Dial("unix:" + c.socket)
	if err != nil {
		c.t.Fatal(err)
	}
	return caller{apiv1connect.NewAdminClient(client, base), apiv1connect.NewAgentClient(client, base), apiv1connect.NewTrustClient(client, base), client}
}

func (c *controller) token(m *apiv1.CreateTokenRequest) trust.Token {
	c.t.Helper()
	answer, err := c.local().trust.CreateToken(c.t.Context(), connect.NewRequest(m))
	if err != nil {
		c.t.Fatal(err)
	}
	token, err := trust.ParseToken(answer.Msg.Token)
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}

// redeem tries a token for a key.
func redeem(t *testing.T, at string, token trust.Token, name string, key ed25519.PrivateKey) (*trust.Member, error) {
	t.Helper()
	joiner := trust.NewJoiner(key, token.Pin)
	answer, err := call(t, at, joiner.Config()).trust.Redeem(t.Context(), connect.NewRequest(&apiv1.RedeemRequest{Id: token.ID[:], Secret: token.Secret[:], Name: name}))
	if err != nil {
		return nil, err
	}
	return trust.NewMember(key, trust.Credential{Certificate: answer.Msg.Certificate, Roots: answer.Msg.Roots})
}

// member lets somebody in.
func (c *controller) member(at, role, name string) (*trust.Member, ed25519.PrivateKey) {
	c.t.Helper()
	key := newKey(c.t)
	m, err := redeem(c.t.(*testing.T), at, c.token(&apiv1.CreateTokenRequest{Role: role}), name, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return m, key
}

func refusedWith(t *testing.T, what string, err error, code connect.Code, says string) {
	t.Helper()
	if connect.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v; want code %v and %q", what, err, code, says)
	}
}

func TestATokenMakesOneMember(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c, at := keyed(t, config.Config{})
	token := c.token(&apiv1.CreateTokenRequest{Role: "host"})
	key := newKey(t)
	m, err := redeem(t, at, token, "s1", key)
	if err != nil {
		t.Fatal(err)
	}
	if who := m.Who(); who.Role != trust.Host || who.Name != "s1" || m.Network() != "test" {
		t.Errorf("the credential is for %v of %s", who, m.Network())
	}
	if _, err := redeem(t, at, token, "s1", key); err != nil {
		t.Errorf("the same host again, as if the answer had been lost: %v", err)
	}
	for name, k := range map[string]ed25519.PrivateKey{"s1": newKey(t), "s2": newKey(t), "s3": key} {
		_, err := redeem(t, at, token, name, k)
		refusedWith(t, "used again as "+name, err, connect.CodePermissionDenied, "used already, by host s1")
	}
	forged := token
	forged.Secret[3] ^= 1
	_, err = redeem(t, at, forged, "s2", newKey(t))
	refusedWith(t, "forged", err, connect.CodePermissionDenied, "knows no such token")
	other := trust.NewToken(trust.Host, token.Pin)
	_, err = redeem(t, at, other, "s2", newKey(t))
	refusedWith(t, "made up", err, connect.CodePermissionDenied, "knows no such token")
	second := c.token(&apiv1.CreateTokenRequest{Role: "host"})
	_, err = redeem(t, at, second, "s1", newKey(t))
	refusedWith(t, "for a name that is taken", err, connect.CodeAlreadyExists, "scaffold host forget s1")
	_, err = redeem(t, at, second, "a b", newKey(t))
	refusedWith(t, "for a bad name", err, connect.CodeInvalidArgument, "letters, digits")
	if _, err := redeem(t, at, second, "s2", newKey(t)); err != nil {
		t.Errorf("refusals have used it up: %v", err)
	}
	if c.metric("tokens_refused_total") != 7 {
		t.Errorf("%v refusals were counted, want 7", c.metric("tokens_refused_total"))
	}
}

func TestTokensAreForWhomTheyAreMade(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c, at := keyed(t, config.Config{})
	named := c.token(&apiv1.CreateTokenRequest{Role: "router", Name: "r1"})
	_, err := redeem(t, at, named, "r2", newKey(t))
	refusedWith(t, "of another name", err, connect.CodePermissionDenied, "for router r1 alone")
	if m, err := redeem(t, at, named, "r1", newKey(t)); err != nil || m.Who().Role != trust.Router {
		t.Errorf("%v, %v", m, err)
	}
	thrice := c.token(&apiv1.CreateTokenRequest{Role: "host", Uses: 3})
	for i, name := range []string{"a", "b", "c", "d"} {
		if _, err := redeem(t, at, thrice, name, newKey(t)); (err == nil) != (i < 3) {
			t.Errorf("use %d of a token for three: %v", i+1, err)
		}
	}
	twice, key := c.token(&apiv1.CreateTokenRequest{Role: "host", Uses: 2}), newKey(t)
	for i, name := range []string{"k1", "k1", "k2", "k3"} {
		if _, err := redeem(t, at, twice, name, key); (err == nil) != (i < 3) {
			t.Errorf("a token for two, by one key as %s: %v; want each name counted once", name, err)
		}
	}
	gone := c.token(&apiv1.CreateTokenRequest{Role: "host"})
	if _, err := c.local().trust.RevokeToken(t.Context(), connect.NewRequest(&apiv1.RevokeTokenRequest{Id: gone.ID.String()})); err != nil {
		t.Fatal(err)
	}
	_, err = redeem(t, at, gone, "e", newKey(t))
	refusedWith(t, "revoked", err, connect.CodePermissionDenied, "it was revoked")
	brief := c.token(&apiv1.CreateTokenRequest{Role: "host", ValidMs: 1000})
	c.await("the token expires", func() bool {
		list, err := c.local().trust.ListTokens(t.Context(), connect.NewRequest(&apiv1.ListTokensRequest{}))
		for _, l := range list.Msg.Tokens {
			if l.Id == brief.ID.String() {
				return l.State == "expired"
			}
		}
		t.Fatal("it is not listed", err)
		return false
	})
	_, err = redeem(t, at, brief, "f", newKey(t))
	refusedWith(t, "expired", err, connect.CodePermissionDenied, "expired")
	for _, bad := range []*apiv1.CreateTokenRequest{
		{Role: "king"}, {Role: "controller"}, {Role: "host", Name: "A B"}, {Role: "host", ValidMs: 1}, {Role: "host", ValidMs: -1}, {Role: "host", Uses: 1 << 30},
		{Role: "host", Name: "a", Uses: 2}, {Role: "host", ValidMs: 1 << 62}, {Role: "host", Addresses: []string{"nowhere"}}, {Role: "host", Addresses: []string{strings.Repeat("x", 600) + ":1"}},
	} {
		if _, err := c.local().trust.CreateToken(t.Context(), connect.NewRequest(bad)); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%v: %v, want it refused", bad, err)
		}
	}
}

func TestTokensAndMembersOutliveTheController(t *testing.T) {
	safety.Test(t, safety.Record)
	t.Parallel()
	c, at := keyed(t, config.Config{})
	used, open := c.token(&apiv1.CreateTokenRequest{Role: "host"}), c.token(&apiv1.CreateTokenRequest{Role: "host"})
	if _, err := redeem(t, at, used, "s1", newKey(t)); err != nil {
		t.Fatal(err)
	}
	gone, _ := c.member(at, "host", "s2")
	if _, err := c.local().trust.Forget(t.Context(), connect.NewRequest(&apiv1.ForgetRequest{Role: "host", Name: "s2"})); err != nil {
		t.Fatal(err)
	}
	c.kill()
	c.run(config.Config{Trust: config.TrustKeys, Listen: []string{at}})
	_, err := redeem(t, at, used, "s3", newKey(t))
	refusedWith(t, "used before the restart", err, connect.CodePermissionDenied, "used already")
	_, err = redeem(t, at, open, "s1", newKey(t))
	refusedWith(t, "a name that was taken before", err, connect.CodeAlreadyExists, "taken")
	if _, err := redeem(t, at, open, "s3", newKey(t)); err != nil {
		t.Error(err)
	}
	_, err = call(t, at, gone.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	refusedWith(t, "revoked before the restart", err, connect.CodeUnauthenticated, "was revoked")
}

func TestWhoIsNoMemberIsToldWhy(t *testing.T) {
	t.Parallel()
	c, at := keyed(t, config.Config{})
	other, otherAt := keyed(t, config.Config{})
	status := func(who *tls.Config) error {
		_, err := call(t, at, who).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
		return err
	}
	refusedWith(t, "in the clear", status(nil), connect.CodeUnauthenticated, "scaffold join --token")
	token := c.token(&apiv1.CreateTokenRequest{Role: "host"})
	refusedWith(t, "no member", status(trust.NewJoiner(newKey(t), token.Pin).Config()), connect.CodeUnauthenticated, "no member")
	// Its network has the same name, and another key.
	foreign, _ := other.member(otherAt, "host", "s1")
	refusedWith(t, "a member of another network", status(foreign.Config()), connect.CodeUnavailable, "of another network")
	unaware := foreign.Config()
	unaware.VerifyConnection = nil // it takes any controller
	refusedWith(t, "one that does not look", status(unaware), connect.CodeUnauthenticated, "of another network")
	_, err := redeem(t, at, other.token(&apiv1.CreateTokenRequest{Role: "host"}), "s1", newKey(t))
	if err == nil || !strings.Contains(err.Error(), "not of the network that the token is for") {
		t.Errorf("a token of another network: %v", err)
	}
	answer, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("metrics in the clear: %v", answer)
	}
}

func TestRolesAreHeld(t *testing.T) {
	t.Parallel()
	c, at := keyed(t, config.Config{})
	c.create("web")
	c.router("r1")
	host, key := c.member(at, "host", "s1")
	router, _ := c.member(at, "router", "r2")
	admin, _ := c.member(at, "admin", "ann")
	as := map[string]caller{"host": call(t, at, host.Config()), "router": call(t, at, router.Config()), "admin": call(t, at, admin.Config())}
	ctx := t.Context()
	for name, is := range map[string]ed25519.PrivateKey{"s1": key, "s2": newKey(t)} {
		h := c.joinHost(signed(join(name, "r1"), is)) // on the socket everybody is who he says
		h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	}
	for who, can := range as {
		if _, err := can.admin.ListServices(ctx, connect.NewRequest(&apiv1.ListServicesRequest{})); err != nil {
			t.Errorf("a %s cannot read: %v", who, err)
		}
		if _, err := can.trust.Renew(ctx, connect.NewRequest(&apiv1.RenewRequest{})); err != nil {
			t.Errorf("a %s cannot renew its credential: %v", who, err)
		}
	}
	for what, try := range map[string]func(caller, context.Context) error{
		"create a service": func(c caller, ctx context.Context) error {
			_, err := c.admin.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: "x"}))
			return err
		},
		"make a token": func(c caller, ctx context.Context) error {
			_, err := c.trust.CreateToken(ctx, connect.NewRequest(&apiv1.CreateTokenRequest{Role: "admin"}))
			return err
		},
		"list tokens": func(c caller, ctx context.Context) error {
			_, err := c.trust.ListTokens(ctx, connect.NewRequest(&apiv1.ListTokensRequest{}))
			return err
		},
		"take a backup, which has the network's key": func(c caller, ctx context.Context) error {
			pieces, err := c.admin.BackupState(ctx, connect.NewRequest(&apiv1.BackupStateRequest{}))
			if err != nil {
				return err
			}
			defer pieces.Close()
			for pieces.Receive() {
			}
			return pieces.Err()
		},
		"weigh another host": func(c caller, ctx context.Context) error {
			_, err := c.admin.SetWeight(ctx, connect.NewRequest(&apiv1.SetWeightRequest{Name: "web", Host: "s2", Weight: 3}))
			return err
		},
	} {
		for _, who := range []string{"host", "router"} {
			refusedWith(t, who+" wants to "+what, try(as[who], ctx), connect.CodePermissionDenied, "may not")
		}
		if err := try(as["admin"], ctx); err != nil {
			t.Errorf("an administrator cannot %s: %v", what, err)
		}
	}
	if _, err := as["host"].admin.SetWeight(ctx, connect.NewRequest(&apiv1.SetWeightRequest{Name: "web", Host: "s1", Weight: 3})); err != nil {
		t.Errorf("a host cannot weigh itself: %v", err)
	}
	_, err := as["host"].trust.Forget(ctx, connect.NewRequest(&apiv1.ForgetRequest{Role: "router", Name: "r2"}))
	refusedWith(t, "a host wants to forget a router", err, connect.CodePermissionDenied, "may not")
	// Nobody takes a name or a part that is not his.
	c.refusedJoin(as["host"].agent, signed(join("s2", "r1"), key), "it calls itself host \"s2\"")
	c.refusedJoin(as["host"].agent, signed(join("s1", "r1"), newKey(t)), "another key")
	c.refusedJoin(as["admin"].agent, signed(join("s3", "r1"), newKey(t)), "this is admin ann") // he rules, and is no machine
	machine := as["admin"].agent.Router(ctx)
	machine.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: &apiv1.RouterJoin{Name: "r3", BootId: "x"}}})
	if first, err := machine.Receive(); err != nil || !strings.Contains(first.GetRefused().GetReason(), "this is admin ann") {
		t.Errorf("an administrator that wants to be a router: %v, %v", first, err)
	}
	stream := as["router"].agent.Host(ctx)
	stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: signed(join("r2", "r1"), key)}})
	_, err = stream.Receive()
	refusedWith(t, "a router wants to be a host", err, connect.CodePermissionDenied, "may not")
	impostor := as["router"].agent.Router(ctx)
	impostor.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: &apiv1.RouterJoin{Name: "r1", BootId: "x"}}})
	if first, err := impostor.Receive(); err != nil || !strings.Contains(first.GetRefused().GetReason(), "another name") {
		t.Errorf("a router that takes another's name: %v, %v", first, err)
	}
}

func (c *controller) refusedJoin(agent apiv1connect.AgentClient, j *apiv1.Join, says string) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	stream := agent.Host(ctx)
	defer hangUpStream(stream)
	if err := stream.Send(&apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: j}}); err != nil {
		c.t.Fatal(err)
	}
	first, err := stream.Receive()
	if err != nil || !strings.Contains(first.GetRefused().GetReason(), says) {
		c.t.Errorf("%s: %v, %v; want a refusal that says %q", j.Name, first, err, says)
	}
}

// A host that is forgotten loses its stream at once, its name and its key; the others are told not to take its
// certificates.
func TestAForgottenHostIsOutAtOnceAndStaysOut(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c, at := keyed(t, config.Config{})
	c.router("r1")
	host, key := c.member(at, "host", "s1")
	witness, witnessKey := c.member(at, "host", "s2")
	other := c.hostOver(call(t, at, witness.Config()).agent, signed(join("s2", "r1"), witnessKey))
	other.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	h := c.hostOver(call(t, at, host.Config()).agent, signed(join("s1", "r1"), key))
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	locator := h.locator()
	answer, err := c.local().trust.Forget(t.Context(), connect.NewRequest(&apiv1.ForgetRequest{Role: "host", Name: "s1"}))
	if err != nil || answer.Msg.Sessions != 1 {
		t.Fatalf("%v, %v; want one session ended", answer, err)
	}
	c.await("its stream ends", h.over)
	other.told("not to take its certificates", func(o *apiv1.HostOrder) bool {
		return len(o.GetRevoked().GetList()) == 1 && key.Public().(ed25519.PublicKey).Equal(ed25519.PublicKey(o.GetRevoked().List[0].Key))
	})
	if c.hosts()["s1"] != nil {
		t.Error("it is still listed")
	}
	_, err = call(t, at, host.Config()).admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	refusedWith(t, "it comes back", err, connect.CodeUnauthenticated, "was revoked")
	_, err = redeem(t, at, c.token(&apiv1.CreateTokenRequest{Role: "host"}), "s1", key)
	refusedWith(t, "its key with a new token", err, connect.CodePermissionDenied, "was revoked")
	// The name is free for another machine, which does not get the place of the one before.
	fresh, freshKey := c.member(at, "host", "s1")
	again := c.hostOver(call(t, at, fresh.Config()).agent, signed(join("s1", "r1"), freshKey))
	again.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	if again.locator() == locator {
		t.Error("another machine got the locator of the one that was forgotten")
	}
	if len(again.joined.Revoked) != 1 {
		t.Errorf("who joins later hears of %d revoked keys, want 1", len(again.joined.Revoked))
	}
	_, err = c.local().trust.Forget(t.Context(), connect.NewRequest(&apiv1.ForgetRequest{Role: "host", Name: "nobody"}))
	refusedWith(t, "forget one who is not there", err, connect.CodeNotFound, "no host")
}

func TestAForgottenRouterLosesItsStreamAndItsBlock(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c, at := keyed(t, config.Config{})
	m, _ := c.member(at, "router", "r1")
	stream := call(t, at, m.Config()).agent.Router(t.Context())
	stream.Send(&apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: &apiv1.RouterJoin{Name: "r1", BootId: "x"}}})
	if first, err := stream.Receive(); err != nil || first.GetJoined().GetTrust() != config.TrustKeys {
		t.Fatal(first, err)
	}
	if _, err := c.local().trust.Forget(t.Context(), connect.NewRequest(&apiv1.ForgetRequest{Role: "router", Name: "r1"})); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Receive(); err == nil {
		t.Error("its stream goes on")
	}
	list, err := c.admin.ListRouters(t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil || len(list.Msg.Routers) != 0 {
		t.Errorf("%v, %v: want no routers", list, err)
	}
}

// Daemons get fresh credentials by their streams, long before theirs end.
func TestCredentialsAreRenewedInTime(t *testing.T) {
	t.Parallel()
	c, at := keyed(t, config.Config{CredentialFor: 6 * time.Second})
	c.router("r1")
	m, key := c.member(at, "host", "s1")
	h := c.hostOver(call(t, at, m.Config()).agent, signed(join("s1", "r1"), key))
	var fresh *apiv1.Credential
	h.told("a fresh credential", func(o *apiv1.HostOrder) bool { fresh = o.GetCredential(); return fresh != nil })
	until := m.Until()
	if err := m.Replace(key, trust.Credential{Certificate: fresh.Certificate, Roots: fresh.Roots}); err != nil || !m.Until().After(until) {
		t.Errorf("%v; valid until %v, before %v", err, m.Until(), until)
	}
}

func TestAnOpenNetworkHasNoTokens(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c := start(t, config.Config{})
	_, err := c.local().trust.CreateToken(t.Context(), connect.NewRequest(&apiv1.CreateTokenRequest{Role: "host"}))
	refusedWith(t, "a token for an open network", err, connect.CodeFailedPrecondition, "--trust keys")
	list, err := c.admin.ListHosts(t.Context(), connect.NewRequest(&apiv1.ListHostsRequest{}))
	if err != nil || list.Msg.Trust != config.TrustOpen {
		t.Errorf("%v, %v: want it said that the network is open", list, err)
	}
}
