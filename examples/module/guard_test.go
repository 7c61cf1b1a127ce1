package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/controller"
)

// A fakeNetwork is one of which the guard needs five methods; any other panics, being nil.
type fakeNetwork struct {
	controller.Network
	hosts    func(controller.Host)
	switches func(controller.Switch)
	tick     func()
	flows    map[string][]controller.Flow
	shows    map[string]func(controller.Packet)
	said     []string
}

func (n *fakeNetwork) HandleHosts(f func(controller.Host))      { n.hosts = f }
func (n *fakeNetwork) HandleSwitches(f func(controller.Switch)) { n.switches = f }
func (n *fakeNetwork) Every(_ time.Duration, f func())          { n.tick = f }
func (n *fakeNetwork) Report(subject, text string)              { n.said = append(n.said, subject+": "+text) }

func (n *fakeNetwork) SetFlows(at string, flows []controller.Flow) error {
	n.flows[at] = flows
	return nil
}

func (n *fakeNetwork) Subscribe(s controller.Subscription, f func(controller.Packet)) error {
	n.shows[s.Match.String()] = f
	return nil
}

func started(t *testing.T, names string) *fakeNetwork {
	t.Helper()
	n := &fakeNetwork{flows: map[string][]controller.Flow{}, shows: map[string]func(controller.Packet){}}
	if err := newGuard(names).Start(n); err != nil {
		t.Fatal(err)
	}
	return n
}

func at(name, locator string) controller.Host {
	return controller.Host{Name: name, State: "up", Places: []controller.Place{{Locator: netip.MustParsePrefix(locator), Router: "s1", Port: "p1"}}}
}

func TestBlockedHostsAreBlockedWhereverTheyAre(t *testing.T) {
	n := started(t, "h2, h7")
	n.switches(controller.Switch{Name: "s1", Up: true})
	n.hosts(at("h1", "fd5d:0:1:101::/64"))
	if len(n.flows["s1"]) != 0 {
		t.Errorf("an honest host is blocked: %v", n.flows)
	}
	n.hosts(at("h2", "fd5d:0:1:102::/64"))
	n.switches(controller.Switch{Name: "s2", Up: true})
	n.hosts(at("h2", "fd5d:0:1:201::/64")) // it moved
	for _, s := range []string{"s1", "s2"} {
		if got := fmt.Sprint(n.flows[s]); len(n.flows[s]) != 1 || !strings.Contains(got, "ipv6_dst=fd5d:0:1:201::/64") || !n.flows[s][0].First {
			t.Errorf("%s holds %s, want what goes to h2 dropped before anything else", s, got)
		}
	}
}

func TestWhoTriesIsTold(t *testing.T) {
	n := started(t, "h2")
	n.hosts(at("h2", "fd5d:0:1:102::/64"))
	show := n.shows["eth_type=0x86dd,ipv6_src=fd5d:0:1:102::/64"]
	if show == nil {
		t.Fatalf("it watches %v", n.shows)
	}
	show(controller.Packet{Switch: "s1"})
	show(controller.Packet{Switch: "s1"})
	n.tick()
	n.tick()
	want := []string{"h2: blocked at [fd5d:0:1:102::/64]", "h2: sent at least 2 packets that were dropped"}
	if fmt.Sprint(n.said) != fmt.Sprint(want) {
		t.Errorf("it said %q, want %q", n.said, want)
	}
}

// The guard is a Module; that it links into a whole scaffold is what building it shows.
var _ controller.Module = (*guard)(nil)
