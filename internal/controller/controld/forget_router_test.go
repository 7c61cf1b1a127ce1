package controld

import (
	"context"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"

	"scaffold.dev/scaffold/internal/controller/controld/config"
)

const blockOfB = "fd5d:0:1:300::/56"

// besieged is a network in which bad is the near way from a to b, c a far one, and host s1 is attached at bad. The router
// bad is a member with keys.
type besieged struct {
	*controller
	at          string // where the controller listens
	a, b, c, in *fakeRouter
	host        *fakeHost
	key         ed25519.PrivateKey // the host's
	told        chan string        // routers that a was told to be gone
}

func (c *controller) provable(name string, block uint32, links ...*apiv1.Neighbour) *fakeRouter {
	c.t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.joinRouter(&apiv1.RouterJoin{Name: name, BootId: name, Block: block, Service: name == "a", LinkKey: key.PublicKey().Bytes()}, links...)
}

func besiege(t *testing.T) *besieged {
	t.Helper()
	ctl, at := keyed(t, config.Config{})
	x := &besieged{controller: ctl, at: at, told: make(chan string, 16)}
	x.member(at, "router", "bad")
	far := live("e1", "c", "e0")
	far.Cost = 10
	x.a = x.provable("a", 1, live("e0", "bad", "e0"), far)
	x.in = x.provable("bad", 2, live("e0", "a", "e0"), live("e1", "b", "e0"))
	x.b = x.provable("b", 3, live("e0", "bad", "e1"), live("e1", "c", "e1"))
	x.c = x.provable("c", 4, live("e0", "a", "e1"), live("e1", "b", "e1"))
	x.await("a goes to b by bad", func() bool { return x.a.way(blockOfB) == "fe80::bad" })
	x.key = newKey(t)
	x.host = x.joinHost(signed(join("s1", "bad"), x.key))
	x.host.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	x.a.mu.Lock()
	x.a.hook = func(o *apiv1.RouterOrder) {
		for _, r := range o.GetRouters().GetRouters() {
			if r.Gone {
				x.told <- r.Name
			}
		}
	}
	x.a.mu.Unlock()
	return x
}

func (x *besieged) forget(force bool) error {
	_, err := x.local().trust.Forget(context.Background(), connect.NewRequest(&apiv1.ForgetRequest{Role: "router", Name: "bad", Force: force}))
	return err
}

// Attack: a router that was broken into and forgotten goes on to greet its neighbours and to report the links of before.
// It had hosts, so its link key and its links counted until the last of them had gone.
func TestNothingOfAForgottenRouterCountsWhateverItsHosts(t *testing.T) {
	t.Parallel()
	x := besiege(t)
	id := x.create("web")
	x.host.serves(web(id))
	x.a.has(web(id), weights{x.host.locator(): 100})
	refusedWith(t, "without force", x.forget(false), connect.CodeFailedPrecondition, "router bad is the way into the network for s1: attach them at another one first, or cut them off from it with `scaffold router forget bad --force`")
	if x.a.way(blockOfB) != "fe80::bad" || x.host.over() {
		t.Error("the refusal has changed something")
	}
	if err := x.forget(true); err != nil {
		t.Fatal(err)
	}
	if name := <-x.told; name != "bad" {
		t.Errorf("a is told that %s is gone", name)
	}
	x.await("a goes to b by c, and not to bad's block", func() bool {
		return x.a.way(blockOfB) == "fe80::c" && x.a.way("fd5d:0:1:200::/56") == ""
	})
	x.a.has(web(id), weights{})
	x.host.told("to look for another router", func(o *apiv1.HostOrder) bool {
		r := o.GetRefused()
		return r.GetNoRouter() == "bad" && r.Retry && strings.Contains(r.Reason, "router \"bad\" was forgotten")
	})
	x.await("its stream ends", func() bool { x.in.mu.Lock(); defer x.in.mu.Unlock(); return x.in.ended })

	// The host asks again by the same router, and then by another one, which is its place from then on.
	again := x.joinHost(signed(join("s1", "bad"), x.key))
	again.told("that it is none", func(o *apiv1.HostOrder) bool { return o.GetRefused().GetNoRouter() == "bad" })
	other := join("s1", "b")
	h := x.joinHost(signed(other, x.key))
	h.told("that it joined", func(o *apiv1.HostOrder) bool { return o.GetJoined() != nil })
	if l := h.locator(); l>>8 != 0xfd5d00000001_03 {
		t.Errorf("it is at %v, want a locator of b", l)
	}
	h.serves(web(id))
	x.a.has(web(id), weights{h.locator(): 100})
	if err := x.forget(true); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("forgotten again: %v", err)
	}
}

// A router that only hosts are attached at that are gone is forgotten without force, and one of whose hosts nothing is
// known any more after a restart keeps nobody.
func TestHostsOfAForgottenRouterAreGoneAfterARestart(t *testing.T) {
	t.Parallel()
	x := besiege(t)
	id := x.create("web")
	x.host.serves(web(id))
	x.a.has(web(id), weights{x.host.locator(): 100})
	x.in.state(x.host.locator(), "gone")
	x.a.has(web(id), weights{})
	if err := x.forget(false); err != nil {
		t.Fatal(err)
	}
	x.host.cancel()
	x.kill()
	x.run(config.Config{Trust: config.TrustKeys, Grace: 50 * time.Millisecond, Lease: 50 * time.Millisecond})
	x.await("nobody is at the router", func() bool { return x.hosts()["s1"].State == "gone" })
	x.create("other") // the controller goes on
	h := x.joinHost(signed(join("s1", "bad"), x.key))
	h.told("that it is none", func(o *apiv1.HostOrder) bool { return o.GetRefused().GetNoRouter() == "bad" })
}
