package tunnels

import (
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A fake is a network of routers of which those in here are connected.
type fake struct {
	here     map[string]bool
	ordered  map[string]*apiv1.Tunnels // the last order of each router
	attached map[Port]bool
	later    func()
	told     []string
}

func (f *fake) Connected(router string) bool            { return f.here[router] }
func (f *fake) Order(router string, has *apiv1.Tunnels) { f.ordered[router] = has }
func (f *fake) Key(string) []byte                       { return nil }
func (f *fake) Attached() map[Port]bool                 { return f.attached }
func (f *fake) After(_ time.Duration, run func())       { f.later = run }
func (f *fake) Tell(kind, _, _ string, _ ...string)     { f.told = append(f.told, kind) }

func with(routers ...string) (*fake, *Tunnels) {
	f := &fake{here: map[string]bool{}, ordered: map[string]*apiv1.Tunnels{}, attached: map[Port]bool{}}
	x := New(f, f, f)
	for _, r := range routers {
		f.here[r] = true
		x.Joined(r, &apiv1.RouterJoin{Offers: []*apiv1.TunnelOffer{{Kind: vxlan, Address: "[2001:db8::1]:4789"}}})
	}
	return f, x
}

func ask(host, uplink, router string) *apiv1.TunnelRequest {
	return &apiv1.TunnelRequest{Host: host, Uplink: uplink, Router: router, Kind: vxlan, Address: "2001:db8::2", Mtu: 1400}
}

func TestATunnelIsGivenOnceItsRouterHasMadeIt(t *testing.T) {
	f, x := with("r1")
	tunnel, wait, err := x.For(ask("s1", "sct0", "r1"))
	if err != nil {
		t.Fatal(err)
	}
	order := f.ordered["r1"]
	if len(order.Tunnels) != 1 || order.Tunnels[0].Number != tunnel.Number {
		t.Fatalf("the router was told %v", order)
	}
	if _, err := x.Answer(tunnel); err == nil {
		t.Error("it counts before the router has made it")
	}
	x.Made("r2", &apiv1.TunnelsMade{Serial: order.Serial, Tunnels: []*apiv1.TunnelMade{{Number: tunnel.Number}}})
	select {
	case <-wait.done:
		t.Fatal("another router's word ends the wait")
	default:
	}
	x.Made("r1", &apiv1.TunnelsMade{Serial: order.Serial, Tunnels: []*apiv1.TunnelMade{{Number: tunnel.Number, LinkLocal: "fe80::1"}}})
	if err := wait.Over(t.Context()); err != nil {
		t.Error(err)
	}
	if made, err := x.Answer(tunnel); err != nil || made.LinkLocal != "fe80::1" {
		t.Errorf("the answer is %v, %v", made, err)
	}
}

func TestATunnelToAnotherRouterEndsTheOneBefore(t *testing.T) {
	f, x := with("r1", "r2")
	for _, r := range []string{"r1", "r2"} {
		if _, _, err := x.For(ask("s1", "sct0", r)); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.ordered["r1"].Tunnels) != 0 || len(f.ordered["r2"].Tunnels) != 1 {
		t.Errorf("r1 has %v, r2 has %v", f.ordered["r1"], f.ordered["r2"])
	}
	if offers := x.Offers(); len(offers) != 2 || offers[0].Router != "r1" || offers[1].Tunnels != 1 {
		t.Errorf("offered are %v, want r1, which has none, first", offers)
	}
}

func TestWhoIsAwayOffersNothing(t *testing.T) {
	f, x := with("r1", "r2")
	f.here["r1"] = false
	if offers := x.Offers(); len(offers) != 1 || offers[0].Router != "r2" {
		t.Errorf("offered are %v", offers)
	}
	if _, _, err := x.For(ask("s1", "sct0", "r1")); err == nil {
		t.Error("a router that is away gives a tunnel")
	}
}

func TestATunnelThatNobodyIsAttachedByEnds(t *testing.T) {
	f, x := with("r1")
	used, _, err := x.For(ask("s1", "sct0", "r1"))
	if err != nil {
		t.Fatal(err)
	}
	left, _, err := x.For(ask("s2", "sct0", "r1"))
	if err != nil {
		t.Fatal(err)
	}
	f.attached[Port{"r1", used.port()}] = true
	long := time.Now().Add(-2 * unused)
	used.used, left.used = long, long
	x.Watch()
	f.later()
	if list := f.ordered["r1"].Tunnels; len(list) != 1 || list[0].Number != used.Number {
		t.Errorf("the router is to have %v", list)
	}
	if last := f.told[len(f.told)-1]; last != "tunnel.down" {
		t.Errorf("the history says %q", f.told)
	}
}

func TestAHostHasFewTunnels(t *testing.T) {
	_, x := with("r1")
	for _, uplink := range []string{"sct0", "sct1", "sct2", "sct3"} {
		if _, _, err := x.For(ask("s1", uplink, "r1")); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := x.For(ask("s1", "sct4", "r1")); err == nil {
		t.Errorf("a host has more than %d tunnels", maxOfHost)
	}
}
