package routers

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/pushes"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
)

// an open network, as its routers see it. It notes what they hand on.
type network struct {
	said  []string
	text  string // of the last event
	waits bool
	heard bool // neighbours hear the routers
	later []func()
	saved int
	t     *testing.T
}

func (n *network) note(format string, args ...any) {
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

func (n *network) SetRouter(r plan.Router)  { n.note("plan %s %v", r.Name, r.Locator>>8&255) }
func (n *network) RemoveRouter(name string) { n.note("plan without %s", name) }
func (n *network) AnyTo(string) bool        { return n.heard }
func (n *network) Tell(kind, subject, text string, _ ...string) {
	n.note("%s %s", kind, subject)
	n.text = text
}
func (n *network) Later(changes ...store.Change)                                  { n.saved += len(changes) }
func (n *network) After(_ time.Duration, f func())                                { n.later = append(n.later, f) }
func (n *network) Inc(...string)                                                  { n.note("dropped") }
func (n *network) Fresh(gate.Peer) *apiv1.Credential                              { return nil }
func (n *network) Succeeded(trust.Role, string, []byte) bool                      { return false }
func (n *network) Member(trust.Role, string) (store.Member, bool)                 { return store.Member{}, false }
func (n *network) RenewLater(context.Context, gate.Peer, func(*apiv1.Credential)) {}

// others are links, pushes and tunnels, which are told the same.
type others struct{ n *network }

func (o others) Know(string)                      {}
func (o others) Joined(string)                    {}
func (o others) Left(string)                      {}
func (o others) Forgotten(string)                 {}
func (o others) AnyTo(string) bool                { return o.n.heard }
func (o others) Report(string, *apiv1.Neighbours) { o.n.note("links") }

type rules struct{ n *network }

func (r rules) Know(string, bool)              {}
func (r rules) Joined(string, pushes.Session)  {}
func (r rules) Left(string)                    {}
func (r rules) Forget(string)                  {}
func (r rules) Applied(string, *apiv1.Applied) { r.n.note("applied") }

type tunnels struct{ n *network }

func (x tunnels) Joined(string, *apiv1.RouterJoin) {}
func (x tunnels) Made(string, *apiv1.TunnelsMade)  { x.n.note("tunnels") }
func (x tunnels) Forgotten(string)                 {}

type places struct{ n *network }

func (p places) Joined(router string)            { p.n.note("hosts of %s", router) }
func (p places) Said(string, []*apiv1.HostState) { p.n.note("hosts") }
func (p places) Unreachable(router string)       { p.n.note("unreachable %s", router) }

func newRouters(t *testing.T) (*Routers, *network) {
	n := &network{t: t}
	return New(Config{
		Network: "test", Space: sid.DefaultSpace(), Plan: n, Links: others{n}, Pushes: rules{n}, Tunnels: tunnels{n}, Places: places{n}, Members: n,
		Events: n, Saver: n, Loop: n, Dropped: n, Waits: func() bool { return n.waits }, Full: func(string, error) { n.note("full") },
		Accept: func() *apiv1.RouterJoined { return &apiv1.RouterJoined{Network: "test"} },
	}), n
}

// stream is a session whose orders are read.
func (n *network) stream() *Session { return session.New[apiv1.RouterOrder](n.t.Context(), 10) }

// sent are the orders of a session until now; it ends.
func sent(t *testing.T, s *Session) (list []*apiv1.RouterOrder) {
	t.Helper()
	last := &apiv1.RouterOrder{}
	s.Send(last)
	_ = s.Write(func(o *apiv1.RouterOrder) error {
		if o == last {
			return errors.New("all was read")
		}
		list = append(list, o)
		return nil
	})
	return list
}

func (n *network) happened() []string {
	said := n.said
	n.said = nil
	return said
}

func linkKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key.PublicKey().Bytes()
}

// A router gets the block that it asks for, has or had, and otherwise the lowest that nobody has.
func TestWhichBlockARouterGets(t *testing.T) {
	x, n := newRouters(t)
	x.Restore(store.Router{Name: "old", Block: 1})
	for _, join := range []struct {
		name       string
		block, had uint32
		waits      bool
		want       uint8
		refused    string
	}{
		{name: "a", want: 2},
		{name: "b", block: 1, refused: "belongs to router old"},
		{name: "b", block: 256, refused: "want 1 to 255"},
		{name: "b", had: 9, want: 9},
		{name: "c", had: 9, want: 3},
		{name: "d", waits: true, refused: "waits for the hosts and routers"},
		{name: "d", block: 4, waits: true, want: 4},
		{name: "old", want: 1},
		{name: "Old", refused: "want letters"},
	} {
		n.waits = join.waits
		refused := x.Join(n.stream(), &apiv1.RouterJoin{Name: join.name, Block: join.block, Had: join.had})
		r, _ := x.Of(join.name)
		if !strings.Contains(refused.GetReason(), join.refused) || (refused != nil) != (join.refused != "") || refused == nil && r.Block != join.want {
			t.Errorf("%+v: block %d, refused %v", join, r.Block, refused)
		}
	}
	n.waits = false
	for i := range 255 {
		x.Join(n.stream(), &apiv1.RouterJoin{Name: fmt.Sprint("r", i)})
	}
	n.happened()
	if refused := x.Join(n.stream(), &apiv1.RouterJoin{Name: "last"}); !strings.Contains(refused.GetReason(), "all 255 blocks") || !slices.Equal(n.happened(), []string{"full"}) {
		t.Errorf("the 256th is refused: %v", refused)
	}
}

// A daemon that comes again takes the place of its stream of before; another machine of the name does not.
func TestOneStreamForEachRouter(t *testing.T) {
	x, n := newRouters(t)
	first, second := n.stream(), n.stream()
	x.Join(first, &apiv1.RouterJoin{Name: "r1", BootId: "1", Version: "v"})
	if refused := x.Join(n.stream(), &apiv1.RouterJoin{Name: "r1", BootId: "2"}); !refused.GetRetry() || !strings.Contains(refused.Reason, "connected already") {
		t.Errorf("another machine: %v", refused)
	}
	if refused := x.Join(second, &apiv1.RouterJoin{Name: "r1", BootId: "1"}); refused != nil || context.Cause(first.Context()) != session.ErrReplaced {
		t.Errorf("the same again: %v, the first stream ended by %v", refused, context.Cause(first.Context()))
	}
	n.happened()
	x.Report("r1", first, &apiv1.RouterReport{Report: &apiv1.RouterReport_Hosts{}})
	x.Lost("r1", first, nil)
	if got := n.happened(); got != nil || !x.Here("r1") {
		t.Errorf("the first stream still counts: %q", got)
	}
	for _, m := range []*apiv1.RouterReport{
		{Report: &apiv1.RouterReport_Neighbours{Neighbours: &apiv1.Neighbours{}}}, {Report: &apiv1.RouterReport_Hosts{}},
		{Report: &apiv1.RouterReport_Applied{}}, {Report: &apiv1.RouterReport_TunnelsMade{}},
		{Report: &apiv1.RouterReport_Counters{Counters: &apiv1.RouterCounters{Instances: 5}}},
	} {
		x.Report("r1", second, m)
	}
	r, _ := x.Of("r1")
	if got, want := n.happened(), []string{"links", "hosts", "applied", "tunnels"}; !slices.Equal(got, want) || !r.Reported || r.Counters.Instances != 5 {
		t.Errorf("what it reports goes to %q, want %q; it is %+v", got, want, r)
	}
	flood := &apiv1.RouterCounters{Counters: map[string]uint64{}}
	for i := range maxCounters + 1 {
		flood.Counters[fmt.Sprint(i)] = 1
	}
	if x.Report("r1", second, &apiv1.RouterReport{Report: &apiv1.RouterReport_Counters{Counters: flood}}); x.all["r1"].Counters.Instances != 5 {
		t.Error("more counters than any program has are kept")
	}
}

// A router that is away is trusted for a while, and for as long as a neighbour hears it.
func TestARouterThatStaysAwayIsDistrusted(t *testing.T) {
	x, n := newRouters(t)
	s := n.stream()
	x.Join(s, &apiv1.RouterJoin{Name: "r1"})
	n.happened()
	x.Lost("r1", s, session.ErrSlow)
	if got := n.happened(); x.Here("r1") || !slices.Equal(got, []string{"dropped", "router.gone r1"}) {
		t.Errorf("it is here or: %q", got)
	}
	n.heard = true
	if n.later[0](); n.said != nil {
		t.Errorf("a neighbour hears it: %q", n.said)
	}
	n.heard = false
	if n.later[0](); !slices.Equal(n.happened(), []string{"unreachable r1"}) {
		t.Error("nobody hears it, and it is trusted")
	}
	again := n.stream()
	x.Join(again, &apiv1.RouterJoin{Name: "r1"})
	x.Lost("r1", again, nil)
	n.happened()
	if n.later[0](); n.said != nil {
		t.Errorf("the first absence counts in the second: %q", n.said)
	}
}

// TestAnEventSaysWhyARouterIsAway: one that was stopped in good order has left; of one whose connection broke it is said
// that it forwards on, and what broke.
func TestAnEventSaysWhyARouterIsAway(t *testing.T) {
	x, n := newRouters(t)
	for _, c := range []struct {
		err  error
		says string
	}{
		{nil, "router left: its daemon was stopped, or starts again"},
		{errors.New("read: connection reset by peer"), "router is not connected; it goes on forwarding by what it knows: read: connection reset by peer"},
	} {
		s := n.stream()
		x.Join(s, &apiv1.RouterJoin{Name: "r1"})
		if x.Lost("r1", s, c.err); n.text != c.says {
			t.Errorf("%v: %q, want %q", c.err, n.text, c.says)
		}
	}
}

// Routers are told each other's link keys: all at the start, then what changes (docs/protocol.md §4.2).
func TestRoutersAreToldLinkKeys(t *testing.T) {
	x, n := newRouters(t)
	a, b := n.stream(), n.stream()
	key := linkKey(t)
	x.Join(a, &apiv1.RouterJoin{Name: "a", LinkKey: linkKey(t)})
	x.Join(b, &apiv1.RouterJoin{Name: "b", LinkKey: key})
	if refused := x.Join(n.stream(), &apiv1.RouterJoin{Name: "c", LinkKey: make([]byte, 32)}); !strings.Contains(refused.GetReason(), "link key") {
		t.Errorf("a key by which everybody has the same secret: %v", refused)
	}
	if !x.Forget("b") || x.Forget("b") || context.Cause(b.Context()) != session.ErrRevoked {
		t.Errorf("b is forgotten, its stream ended by %v", context.Cause(b.Context()))
	}
	got := sent(t, a)
	if len(got) != 3 || !got[0].GetJoined().GetRouters().GetAll() || got[0].GetJoined().Locator == "" {
		t.Fatalf("a is told %v", got)
	}
	came, went := got[1].GetRouters().Routers[0], got[2].GetRouters().Routers[0]
	if came.Name != "b" || string(came.LinkKey) != string(key) || went.Name != "b" || !went.Gone {
		t.Errorf("a is told that b came by %v, and went by %v", came, went)
	}
	if _, known := x.Block("b"); known || x.Connected() != 1 || !slices.Equal(x.Names(), []string{"a"}) {
		t.Errorf("there are %q, %d of them here", x.Names(), x.Connected())
	}
}
