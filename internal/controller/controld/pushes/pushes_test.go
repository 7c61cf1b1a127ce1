package pushes

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
)

// a network with a plan, as pushes see it. What is asked of its loop is done at once.
type network struct {
	plan.Rules
	settling      bool
	told, counted []string
	asked         func() // after each question to the loop
}

func (n *network) Snapshot(string) plan.Rules { return n.Rules }
func (n *network) Tell(kind, subject, _ string, _ ...string) {
	n.told = append(n.told, kind+" "+subject)
}
func (n *network) Ask(_ context.Context, f func()) error {
	f()
	if n.asked != nil {
		n.asked()
	}
	return nil
}
func (n *network) Inc(...string)              {}
func (n *network) Observe(float64, ...string) { n.counted = append(n.counted, "applied") }

// a stream that notes what is sent.
type stream struct{ sent []*apiv1.RouterOrder }

func (s *stream) Send(o *apiv1.RouterOrder) bool { s.sent = append(s.sent, o); return true }

// got are the messages as a word and a generation; shared ones are known by their number alone.
func (s *stream) got() (list []string) {
	for _, o := range s.sent {
		switch {
		case o.GetBegin() != nil:
			list = append(list, fmt.Sprint("begin ", o.GetBegin().Generation))
		case o.GetCommit() != nil:
			list = append(list, fmt.Sprint("commit ", o.GetCommit().Generation))
		case o.GetRules() != nil:
			list = append(list, fmt.Sprint("rules ", o.GetRules().Generation))
		default:
			list = append(list, "shared")
		}
	}
	s.sent = nil
	return list
}

func newPushes() (*Pushes, *network) {
	n := new(network)
	x := New(Config{Plan: n, Events: n, Loop: n, Settling: func() bool { return n.settling }, Filter: func() bool { return true }, Orders: n, Snapshots: n, Applying: n})
	x.Begin(1)
	return x, n
}

const epoch = 1 << 32

// Changes reach a router after it had everything once, in each of its sessions.
func TestARouterHasEverythingBeforeItHasChanges(t *testing.T) {
	x, _ := newPushes()
	one, two := new(stream), new(stream)
	x.Know("r1", true)
	x.Joined("r1", one)
	change := []plan.Step{{Routers: []string{"r1"}}}
	x.Push(change)
	if got := one.got(); got != nil {
		t.Errorf("before it had everything it is told %q", got)
	}
	x.Complete("r1")
	x.Complete("r1")
	x.Push(change)
	if got, want := one.got(), []string{"begin 4294967297", "rules 4294967297", "commit 4294967297", "rules 4294967298"}; !slices.Equal(got, want) {
		t.Errorf("it is told %q, want %q", got, want)
	}
	x.Left("r1")
	x.Push(change)
	x.Joined("r1", two)
	x.Push(change)
	x.Complete("r1")
	if got, late := two.got(), one.got(); len(got) != 3 || got[0] != "begin 4294967300" || late != nil {
		t.Errorf("its next session is told %q and the one before %q, want everything, of the generation of now, and nothing", got, late)
	}
	x.Anew()
	if x.Complete("r1"); len(two.got()) != 3 {
		t.Error("it does not get everything once more")
	}
}

// A large set is cut: routes come first, what is resolved can be forwarded then.
func TestALargeSetComesInPieces(t *testing.T) {
	parts := pieces(plan.Rules{Routes: make([]plan.Route, 3), Services: make([]plan.ServiceRule, piece+1), Resolutions: make([]plan.Resolution, 2*piece+1)})
	var sizes [][3]int
	for _, p := range parts {
		sizes = append(sizes, [3]int{len(p.Routes), len(p.Services), len(p.Resolutions)})
	}
	want := [][3]int{{3, 0, 0}, {0, piece, 0}, {0, 1, 0}, {0, 0, piece}, {0, 0, piece}, {0, 0, 1}}
	if !slices.Equal(sizes, want) {
		t.Errorf("pieces of %v routes, services and resolutions, want %v", sizes, want)
	}
}

// What all routers are told is encoded once, and each counts how far it is with it.
func TestHowFarRoutersAre(t *testing.T) {
	x, n := newPushes()
	streams := map[string]*stream{"r1": {}, "r2": {}, "plain": {}}
	for name, s := range streams {
		x.Know(name, name != "plain")
		x.Joined(name, s)
		x.Complete(name)
		x.Applied(name, &apiv1.Applied{Generation: epoch})
	}
	if x.Behind(x.Generation()) {
		t.Error("a router is behind that has applied everything")
	}
	n.counted = nil
	x.Push([]plan.Step{{Routers: []string{"plain", "r1", "r2"}}})
	for name, s := range streams {
		if got := s.got(); got[len(got)-1] != "shared" {
			t.Errorf("%s is told %q", name, got)
		}
	}
	x.Applied("r1", &apiv1.Applied{Generation: x.Generation()})
	if list := x.lagging(x.Generation(), func(*router) bool { return true }); !slices.Equal(list, []string{"r2"}) {
		t.Errorf("behind are %q, want r2 alone: plain resolves nothing", list)
	}
	if p := x.Of("r2"); p.Waiting != 1 || p.Since.IsZero() || !p.Synced || p.Told != epoch+1 || p.Applied != epoch || x.Lags()["r2"] != 1 || len(n.counted) != 1 {
		t.Errorf("r2 is at %+v", p)
	}
	x.Applied("r2", &apiv1.Applied{Generation: x.Generation(), Error: "no room"})
	if p := x.Of("r2"); p.Failed != "no room" || !slices.Equal(n.told, []string{"router.error r2"}) {
		t.Errorf("r2 failed: %+v, told %q", p, n.told)
	}
	x.Left("r2")
	if x.Behind(x.Generation()) {
		t.Error("a router that is away holds others up")
	}
}

// Who ordered something hears from it when the routers that are here have it; those that are away are named.
func TestAnOrderWaitsForTheRoutersThatAreHere(t *testing.T) {
	x, n := newPushes()
	here := new(stream)
	for _, name := range []string{"away", "here"} {
		x.Know(name, true)
	}
	x.Joined("here", here)
	x.Complete("here")
	n.settling = true
	n.asked = func() { // the wait has begun
		n.asked = nil
		x.Applied("here", &apiv1.Applied{Generation: epoch})
		if x.Wake(); len(x.waits) != 1 {
			t.Error("the wait is over before rules are sent")
		}
		n.settling = false
		x.Wake()
	}
	if pending := x.Await(t.Context()); !slices.Equal(pending, []string{"away"}) || len(x.waits) != 0 {
		t.Errorf("pending are %q, %d wait", pending, len(x.waits))
	}
	x.Forget("away")
	ctx, stop := context.WithCancel(t.Context())
	n.asked = stop // the caller hangs up
	x.Push([]plan.Step{{Routers: []string{"here"}}})
	if pending := x.Await(ctx); !slices.Equal(pending, []string{"here"}) || len(x.waits) != 0 {
		t.Errorf("pending are %q, %d wait", pending, len(x.waits))
	}
}
