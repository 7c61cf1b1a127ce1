package controld

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(j *apiv1.Join, key ed25519.PrivateKey) *apiv1.Join {
	api.SignJoin(j, key, time.Now())
	return j
}

// checkCertificate holds what the host got against the network's key that it got first.
func checkCertificate(t *testing.T, network []byte, host ed25519.PrivateKey, l sid.Locator, text []byte) wire.Certificate {
	t.Helper()
	c, err := wire.ParseCertificate(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(network, time.Now().Unix()); err != nil || c.Locator != l || !bytes.Equal(c.Key[:], host.Public().(ed25519.PublicKey)) {
		t.Errorf("certificate %+v, %v; want one of the host's for %v", c, err, l)
	}
	return c
}

func TestHostsWithKeysGetCertificatesForAllTheirLocators(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Trust: config.TrustKeys})
	c.linked()
	key := newKey(t)
	j := join("s1", "r1")
	j.Others = []*apiv1.Attach{{Serial: 1, Attachment: uplink("s1", "r2")}}
	h := c.joinHost(signed(j, key))
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	network := h.joined.NetworkKey
	if h.joined.Trust != config.TrustKeys || len(network) != ed25519.PublicKeySize {
		t.Fatalf("joined a network with trust %q and a key of %d bytes", h.joined.Trust, len(network))
	}
	checkCertificate(t, network, key, h.locator(), h.joined.Certificate)
	checkCertificate(t, network, key, parseLocator(h.joined.Others[0].Locator), h.joined.Others[0].Certificate)
	c.kill()
	c.run(config.Config{Trust: config.TrustKeys, Grace: time.Millisecond})
	c.linked()
	time.Sleep(time.Until(time.Unix(j.SignedUnix+1, 0))) // a request of another second
	h = c.joinHost(signed(join("s1", "r1"), key))
	h.told("that it joined again", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	if !bytes.Equal(h.joined.NetworkKey, network) {
		t.Error("after a restart the network has another key")
	}
	status, err := c.admin.GetStatus(t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err != nil || status.Msg.Trust != config.TrustKeys {
		t.Errorf("status %v, %v", status, err)
	}
}

func TestCertificatesAreRenewedInTime(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{Trust: config.TrustKeys, CertifyFor: 10 * time.Second})
	c.router("r1")
	key := newKey(t)
	h := c.joinHost(signed(join("s1", "r1"), key))
	var fresh []byte
	h.told("a fresh certificate", func(o *apiv1.HostOrder) bool {
		if a := o.GetAttached(); a != nil && a.Serial == 0 {
			fresh = a.Certificate
		}
		return fresh != nil
	})
	first := checkCertificate(t, h.joined.NetworkKey, key, h.locator(), h.joined.Certificate)
	if second := checkCertificate(t, h.joined.NetworkKey, key, h.locator(), fresh); second.NotAfter <= first.NotAfter {
		t.Errorf("the fresh certificate is valid until %d, the first until %d", second.NotAfter, first.NotAfter)
	}
}

func TestWhoDoesNotProveItsNameIsRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	c := start(t, config.Config{Trust: config.TrustKeys})
	c.router("r1")
	key := newKey(t)
	j := signed(join("s1", "r1"), key)
	h := c.joinHost(j)
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	forged := signed(join("s2", "r1"), newKey(t))
	forged.Attachment.Port = "elsewhere"
	old := join("s2", "r1")
	api.SignJoin(old, newKey(t), time.Now().Add(-2*api.JoinSkew))
	for what, c2 := range map[string]struct {
		j    *apiv1.Join
		says string
	}{
		"unsigned":           {join("s2", "r1"), "did not sign"},
		"changed on its way": {forged, "not signed by the key"},
		"of long ago":        {old, "compare the clocks"},
		"of another key":     {signed(join("s1", "r1"), newKey(t)), "belongs to the host with the key"},
		"a replay":           {j, "taken already"},
	} {
		other := c.joinHost(c2.j)
		other.told("why not", func(o *apiv1.HostOrder) bool { return o.GetRefused() != nil })
		if got := other.refused.Reason; !strings.Contains(got, c2.says) {
			t.Errorf("%s: refused with %q, want it to speak of %q", what, got, c2.says)
		}
	}
	if h.over() {
		t.Error("the first host lost its stream")
	}
}

func TestContinueNeedsKeys(t *testing.T) {
	t.Parallel()
	for trust, want := range map[string]connect.Code{config.TrustOpen: connect.CodeFailedPrecondition, config.TrustKeys: 0} {
		c := start(t, config.Config{Trust: trust})
		policy := &apiv1.Policy{Failover: "continue", Drain: "shed"}
		_, err := c.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: "a", Policy: policy}))
		if err == nil && want != 0 || err != nil && (connect.CodeOf(err) != want || !strings.Contains(err.Error(), "--trust keys")) {
			t.Errorf("%s: create with failover=continue: %v, want code %v", trust, err, want)
		}
		c.create("b")
		_, err = c.admin.UpdatePolicy(t.Context(), connect.NewRequest(&apiv1.UpdatePolicyRequest{Name: "b", Policy: policy, Replace: true}))
		if err == nil && want != 0 || err != nil && connect.CodeOf(err) != want {
			t.Errorf("%s: update to failover=continue: %v, want code %v", trust, err, want)
		}
	}
}

// Unresolved RSYNs go to those who can resume, and only to them.
func TestCapableInstancesAreResolvedForMessages(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	id := c.create("web")
	r := c.router("r1")
	a, b := c.host("s1", "r1"), c.host("s2", "r1")
	capable := sid.Triple{Service: id, Proto: sid.UDP, Port: sid.Port}
	can := registration(web(id), true)
	can.CanResume = true
	a.serves(web(id))
	b.delta(can)
	r.has(web(id), weights{a.locator(): 100, b.locator(): 100})
	r.has(capable, weights{b.locator(): 100})
	unready := registration(web(id), false)
	unready.CanResume = true
	b.delta(unready)
	r.has(capable, weights{})
	b.delta(can)
	r.has(capable, weights{b.locator(): 100})
	b.delta(registration(web(id), true))
	r.has(capable, weights{})
}
