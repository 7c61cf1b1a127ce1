package routing

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// dead are processes of which one has ended.
type dead string

func (d dead) Spawn(*plan.Node, string, *exec.Cmd) error  { return nil }
func (d dead) Kill(context.Context, string, string) error { return nil }
func (d dead) Running(node, name string) bool             { return node+"/"+name == string(d) }

func (d dead) Exited(node, name string) error {
	if node+"/"+name == string(d) {
		return fmt.Errorf("%s ended", d)
	}
	return nil
}

// pair are two such routers between two hosts. A host's link costs nothing, the one between the routers 5.
const pair = `
name: t
nodes: {h1: host, r1: {kind: frr, PROTOCOLS}, r2: {kind: frr, PROTOCOLS, announce: [2001:db8:4::/48]}, h2: host}
links: [[h1, r1], {ends: [r1, r2], cost: 5}, [r2, h2]]
`

func of(t *testing.T, protocols string, procs Processes) *Routing {
	t.Helper()
	f, err := file.Parse("t.yaml", []byte(strings.ReplaceAll(pair, "PROTOCOLS", protocols)))
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Plan: plan.Make(f), Dir: state.Dir{Base: t.TempDir(), Lab: "t"}, Processes: procs, Log: t.Logf})
}

func TestDaemonsSpeakToDaemonsAlone(t *testing.T) {
	r := of(t, "protocols: [ospf6]", dead(""))
	c := configOf(r.Plan, r.Plan.Node("r1"))
	if c.OSPF == nil || c.OSPF.NoIPv6 || !c.OSPF.NoIPv4 || c.BGP != nil || len(c.Ports) != 3 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []struct {
		passive bool
		cost    int
	}{{true, 0}, {true, c.Ports[1].Cost}, {false, 5}} { // lo, to h1, to r2
		if p := c.Ports[i]; p.Passive != want.passive || p.Cost != want.cost {
			t.Errorf("port %+v, want %+v", p, want)
		}
	}
	r = of(t, "protocols: [bgp]", dead(""))
	one, two := configOf(r.Plan, r.Plan.Node("r1")), configOf(r.Plan, r.Plan.Node("r2"))
	if one.OSPF != nil || one.BGP.AS <= privateAS || one.BGP.AS == two.BGP.AS {
		t.Errorf("%+v and %+v", one.BGP, two.BGP)
	}
	if one.Ports[1].Peer != nil || one.Ports[2].Peer == nil {
		t.Errorf("a host is a peer, or a router is none: %+v", one.Ports)
	}
}

func TestAddressesAreLentWhereOSPFNeedsThem(t *testing.T) {
	for protocols, want := range map[string]int{"protocols: [ospf]": 1, "protocols: [ospf6]": 0} {
		r, lent := of(t, protocols, dead("")), 0
		r.Lend = func(n *plan.Node, dev string, addr netip.Prefix) error {
			if lent++; dev != "to-r2" || addr != netip.PrefixFrom(n.Own4, 32) {
				t.Errorf("%s gets %v at %s", n.Name, addr, dev)
			}
			return nil
		}
		if err := r.lendAddresses(r.Plan.Node("r1")); err != nil || lent != want {
			t.Errorf("%s: %d addresses, want %d: %v", protocols, lent, want, err)
		}
	}
}

func TestARouterIsWaitedForUntilItKnowsAllPrefixes(t *testing.T) {
	r := of(t, "protocols: [ospf6]", dead(""))
	want := expected(r.Plan)
	if len(want) != 2 || want["r1"] == 0 {
		t.Fatalf("expected %v", want)
	}
	asked := 0
	r.Learned = func(context.Context) (map[string]int, error) {
		switch asked++; asked {
		case 1:
			return nil, errors.New("the engine does not answer")
		case 2:
			return map[string]int{"r1": want["r1"], "r2": want["r2"] - 1}, nil
		}
		return want, nil
	}
	if err := r.Converge(t.Context()); err != nil || asked != 3 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	r.Learned = func(context.Context) (map[string]int, error) { return map[string]int{"r1": 0}, nil }
	if err := r.converged(t.Context(), want); err == nil || !strings.Contains(err.Error(), "router r1 has 0 routes") || !strings.Contains(err.Error(), "vtysh --vty_socket "+r.Dir.Program("r1", file.FRRName)) {
		t.Errorf("%v", err)
	}
}

func TestADaemonThatEndedIsNotWaitedFor(t *testing.T) {
	r := of(t, "protocols: [ospf6]", dead("r2/zebra"))
	r.Learned = func(context.Context) (map[string]int, error) { return nil, nil }
	if err := r.Converge(t.Context()); err == nil || !strings.Contains(err.Error(), "r2/zebra ended") {
		t.Errorf("%v", err)
	}
	if err := r.Start(t.Context(), r.Plan.Node("r2")); err == nil || !strings.Contains(err.Error(), "r2/zebra runs already") {
		t.Errorf("a router whose daemons run: %v", err)
	}
}

func TestNobodyWaitsForWhatDoesNotFollowFromTheFile(t *testing.T) {
	if want := expected(of(t, "config: interface lo", dead("")).Plan); want != nil {
		t.Errorf("with lines of FRR's own: %v", want)
	}
}
