package grace

import (
	"slices"
	"testing"
	"time"
)

// a network of hosts and routers that are waited for, as the grace sees them.
type network struct {
	hosts, routers map[string]bool // false: they have reported
	unclaimed      int
	missed, told   []string
	later          map[time.Duration]func()
}

type hosts struct{ *network }

func (h hosts) Here() (list []string) {
	for name := range h.hosts {
		list = append(list, name)
	}
	return list
}
func (h hosts) Waited(host string) bool { return h.hosts[host] }
func (h hosts) Unclaimed() int          { return h.unclaimed }
func (h hosts) Missed(host string)      { h.network.missed = append(h.network.missed, host) }

type routers struct{ *network }

func (r routers) Names() (list []string) {
	for name := range r.routers {
		list = append(list, name)
	}
	return list
}
func (r routers) Waited(router string) bool { return r.routers[router] }

func (n *network) Tell(kind, _, _ string, _ ...string) { n.told = append(n.told, kind) }
func (n *network) After(d time.Duration, f func())     { n.later[d] = f }

func newGrace() (*Grace, *network) {
	n := &network{hosts: map[string]bool{"s1": true, "s2": true}, routers: map[string]bool{"r1": true}, later: map[time.Duration]func(){}}
	return New(Config{For: 2 * time.Second, Hosts: hosts{n}, Routers: routers{n}, Events: n, Loop: n}), n
}

func TestRulesWaitUntilAllHaveReported(t *testing.T) {
	x, n := newGrace()
	if x.Settling() || !x.Over() {
		t.Error("it waits before it began")
	}
	x.Begin(1)
	n.hosts["s1"], n.routers["r1"] = false, false
	if x.Over() || !x.Settling() {
		t.Error("s2 is not waited for")
	}
	delete(n.hosts, "s2") // it was forgotten
	if !x.Over() || x.Settling() || n.told != nil {
		t.Errorf("who is not waited for any more is; told %q", n.told)
	}
}

func TestNobodyIsWaitedForWhereNobodyWas(t *testing.T) {
	x, n := newGrace()
	n.hosts, n.routers = nil, nil
	if x.Begin(1); x.Settling() || len(n.later) > 0 {
		t.Error("an empty network waits")
	}
	n.unclaimed = 1
	if x.Begin(3); !x.Settling() || n.later[6*time.Second] == nil {
		t.Error("somebody answers of whom nothing is known, and he is not waited for three times as long")
	}
}

// Who does not come in time counts as one whose daemon is away.
func TestWhoIsMissing(t *testing.T) {
	x, n := newGrace()
	x.Begin(1)
	n.hosts["s1"] = false
	n.later[2*time.Second]()
	if !x.Over() || !slices.Equal(n.missed, []string{"s2"}) || !slices.Equal(n.told, []string{"controller.settle"}) {
		t.Errorf("missed are %q, told %q", n.missed, n.told)
	}
}
