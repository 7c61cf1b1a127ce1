package wires

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestMain gives these tests a /run of their own.
func TestMain(m *testing.M) { nstest.Main(m) }

// built is a host beside an IP router, in namespaces of their own.
func built(t *testing.T) *plan.Plan {
	t.Helper()
	nstest.Root(t)
	f, err := file.Parse("t.yaml", fmt.Appendf(nil, "name: w%d\nnodes: {h: host, r: plain}\nlinks: [{ends: [h, r], rate: 100Mbit}]\n", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	p, asked := plan.Make(f), 0
	t.Cleanup(func() {
		for _, n := range p.Spaces() {
			if err := RemoveNamespace(n.Netns); err != nil {
				t.Error(err)
			}
		}
	})
	if err := Build(t.Context(), p, func(context.Context) error { asked++; return nil }); err != nil || asked != 1 {
		t.Fatalf("build: %v; the emulator was asked %d times", err, asked)
	}
	return p
}

func TestALinkIsBrokenAndMended(t *testing.T) {
	p := built(t)
	w := New()
	defer w.Close()
	link := p.Cable[0]
	both := func(verb string) {
		t.Helper()
		if verb == "heal" {
			if err := w.Restore(link); err != nil {
				t.Fatal(err)
			}
		}
		for i, n := range link.Nodes {
			if err := w.Disturb(verb, n.Netns, link.Ports[i]); err != nil {
				t.Fatalf("%s: %v", verb, err)
			}
		}
	}
	for _, step := range []struct{ verb, state string }{
		{"heal", "up"}, {"cut", "cut"}, {"heal", "up"}, {"unplug", "unplugged"}, {"heal", "up"}, {"remove", "down"}, {"heal", "up"},
	} {
		if both(step.verb); w.State(link) != step.state {
			t.Errorf("after %s the link is %s, want %s", step.verb, w.State(link), step.state)
		}
	}
}

// What a link gets back when it is mended is what it was built with: the kernel forgets routes with the interface.
func TestAMendedInterfaceHasItsRoutesAgain(t *testing.T) {
	p := built(t)
	w := New()
	defer w.Close()
	h, port := p.Node("h"), p.Node("h").Ports[0]
	routes := func() (found []netip.Addr) {
		e, err := w.at(h.Netns)
		if err != nil {
			t.Fatal(err)
		}
		list, err := e.link.RouteList(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if via, ok := netip.AddrFromSlice(r.Gw); ok {
				found = append(found, via.Unmap())
			}
		}
		return found
	}
	want := routes()
	if len(want) != 2 {
		t.Fatalf("the host has routes by %v, want one of IPv6 and one of IPv4", want)
	}
	for _, verb := range []string{"unplug", "heal"} {
		if err := w.Disturb(verb, h.Netns, port); err != nil {
			t.Fatal(err)
		}
	}
	if got := routes(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("routes by %v after the link was mended, %v before", got, want)
	}
}
