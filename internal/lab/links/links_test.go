package links

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/wires"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestMain gives these tests a /run of their own.
func TestMain(m *testing.M) { nstest.Main(m) }

// A recorder is the engine, a switch and a host's daemon, and notes what each is told.
type recorder struct {
	told []string
	all  engine.Links
}

func (r *recorder) note(format string, args ...any) error {
	r.told = append(r.told, fmt.Sprintf(format, args...))
	return nil
}

func (r *recorder) Disturb(_ context.Context, c *plan.Link, verb string) error {
	if !c.InEngine() {
		return nil
	}
	return r.note("engine: %s %s-%s", verb, c.Ends[0], c.Ends[1])
}

func (r *recorder) FailInterfaces(_ context.Context, n *plan.Node, peer string, down bool) error {
	return r.note("interfaces: %s:%s %v", n.Name, peer, down)
}

func (r *recorder) Change(_ context.Context, changes ...emud.Fault) error {
	for _, c := range changes {
		if c.Link != nil {
			r.note("link %d: %s %v", *c.Link, c.Cause, c.Down)
		} else {
			r.note("router %s: %v", c.Router, c.Down)
		}
	}
	return nil
}

func (r *recorder) Links() (engine.Links, error) {
	if r.all == nil {
		return nil, errors.New("it is gone")
	}
	return r.all, nil
}

// of are the links of a network, built where the kernel has to know of them.
func of(t *testing.T, text string, build bool) (*Links, *recorder) {
	t.Helper()
	f, err := file.Parse("t.yaml", fmt.Appendf(nil, "name: k%d\n%s", os.Getpid(), text))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	l := New(Config{Plan: plan.Make(f), Engine: r,
		Repatch:  func(n *plan.Node, p *plan.Port, verb string) error { return r.note("%s:%s %s", n.Name, p.Dev, verb) },
		Attached: func(_ context.Context, h *plan.Node, to string) error { return r.note("%s at %s", h.Name, to) },
	})
	if !build {
		return l, r
	}
	nstest.Root(t)
	t.Cleanup(func() {
		spaces := []string{plan.Netns(f.Name, file.ManagementNode)}
		for _, n := range l.Plan.Spaces() {
			spaces = append(spaces, n.Netns)
		}
		for _, netns := range spaces {
			if err := wires.RemoveNamespace(netns); err != nil {
				t.Error(err)
			}
		}
	})
	if err := wires.Build(t.Context(), l.Plan, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return l, r
}

// do carries out an action and says what was told to whom, and the states of all links.
func do(t *testing.T, l *Links, r *recorder, text string) (told, states string) {
	t.Helper()
	r.told = nil
	a, err := file.ParseAction(text)
	if err == nil {
		err = l.Do(t.Context(), a)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var all []string
	for _, s := range l.Status() {
		all = append(all, s.State)
	}
	return strings.Join(r.told, ", "), strings.Join(all, " ")
}

const wired = "nodes: {ctl: controller, h: host, r1: {kind: router, service: true}, r2: router}\nlinks: [[h, r1], {ends: [h, r2], unplugged: true}, [r1, r2]]\n"

func TestALinkIsBrokenAtBothItsEnds(t *testing.T) {
	l, r := of(t, wired, true)
	for _, c := range []struct{ do, told, states string }{
		{"cut h r1", "h:to-r1 cut, r1:to-h cut", "cut unplugged up"},
		{"heal h r1", "h:to-r1 heal, r1:to-h heal", "up unplugged up"},
		{"fail r1 r2", "r1:to-r2 fail, r2:to-r1 fail", "up unplugged unplugged"},
		{"repair r1 r2", "r1:to-r2 repair, r2:to-r1 repair", "up unplugged up"},
		{"remove h r1", "h:to-r1 remove, r1:to-h remove", "down unplugged up"},
		{"heal h r1", "h:to-r1 heal, r1:to-h heal", "up unplugged up"},
		{"unplug r1", "h:to-r1 unplug, r1:to-h unplug, r1:to-r2 unplug, r2:to-r1 unplug", "unplugged unplugged unplugged"},
		{"heal r1", "h:to-r1 heal, r1:to-h heal, r1:to-r2 heal, r2:to-r1 heal", "up unplugged up"},
		{"flap r1 r2 every 1us times 1", "r1:to-r2 fail, r2:to-r1 fail, r1:to-r2 repair, r2:to-r1 repair", "up unplugged up"},
	} {
		if told, states := do(t, l, r, c.do); told != c.told || states != c.states {
			t.Errorf("%s: told %q, links %s; want %q, %s", c.do, told, states, c.told, c.states)
		}
	}
}

func TestAMovePlugsInBeforeOrAfterItUnplugs(t *testing.T) {
	l, r := of(t, wired, true)
	told, states := do(t, l, r, "move h r1 r2")
	if want := "h:to-r1 unplug, r1:to-h unplug, h:to-r2 heal, r2:to-h heal"; told != want || states != "unplugged up up" {
		t.Errorf("told %q, links %s", told, states)
	}
	told, states = do(t, l, r, "move h r2 r1 first")
	if want := "h:to-r1 heal, r1:to-h heal, h at r1, h:to-r2 unplug, r2:to-h unplug"; told != want || states != "up unplugged up" {
		t.Errorf("told %q, links %s", told, states)
	}
}

func TestAPartitionCutsWhatJoinsItsParts(t *testing.T) {
	l, r := of(t, wired, true)
	if told, states := do(t, l, r, "partition h,r1 | r2"); told != "" || states != "up unplugged cut" {
		t.Errorf("told %q, links %s", told, states)
	}
	if _, states := do(t, l, r, "unite"); states != "up unplugged up" {
		t.Errorf("links %s", states)
	}
	if l.Traffic()[0].Lines[0].Rate != 0 || len(l.Traffic()) != 3 {
		t.Errorf("%+v", l.Traffic())
	}
}

const emulated = "nodes: {r1: emulated, r2: emulated, r3: emulated}\nlinks: [[r1, r2], {ends: [r2, r3], delay: 1ms}]\n"

func TestFaultsInsideTheEngineAreItsOwn(t *testing.T) {
	l, r := of(t, emulated, false)
	for action, want := range map[string]string{
		"cut r1 r2":            "engine: cut r1-r2",
		"fail r2":              "router r2: true",
		"repair r2":            "router r2: false",
		"fail r2:r3":           "interfaces: r2:r3 true",
		"fail r2 r3":           "engine: fail r2-r3",
		"partition r1 | r2,r3": "link 0: partition true",
		"unite":                "link 0: partition false, link 1: partition false",
	} {
		if told, states := do(t, l, r, action); told != want || states != "down down" {
			t.Errorf("%s: told %q, links %s; want %q, and down without an engine", action, told, states, want)
		}
	}
}

func TestALinkIsCalledAfterWhatItLosesPacketsFor(t *testing.T) {
	l, _ := of(t, emulated, false)
	w := wires.New()
	defer w.Close()
	for want, causes := range map[string][]string{
		"failed": {emud.CauseCut, emud.CauseFail}, "unplugged": {emud.CauseCut, emud.CauseUnplug}, "partitioned": {emud.CausePartition}, "cut": {emud.CauseCut},
	} {
		if got := stateOf(w, l.Plan.Cable[0], &engine.Link{Causes: causes}); got != want {
			t.Errorf("a link that loses packets for %v is %s, want %s", causes, got, want)
		}
	}
}

func TestWhatTheEngineLostIsCountedTogether(t *testing.T) {
	e := &engine.Link{}
	e.Lines[1] = emu.LineStats{Params: emu.Params{Rate: 7}, Cut: 1, Refused: 2, Starved: 4}
	c := &e.Lines[1].Counters
	c.Passed, c.PassedByte, c.Lost, c.LostBurst, c.Overflow = 10, 1000, 8, 16, 32
	if got, want := passed(e), [2]Line{{}, {Packets: 10, Bytes: 1000, Lost: 63, Rate: 7}}; !slices.Equal(got[:], want[:]) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
