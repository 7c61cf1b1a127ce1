package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/lab/emud"
	"scaffold.dev/scaffold/internal/lab/engine"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/frr"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// daemons is a ring of four routers whose routes come from FRR; the way by r3 costs more.
const daemonRing = `
name: NAME
nodes:
  h1: host
  r1: {kind: frr, PROTOCOLS}
  r2: {kind: frr, PROTOCOLS}
  r3: {kind: frr, PROTOCOLS}
  r4: {kind: frr, PROTOCOLS, announce: [2001:db8:4::/48]}
  h2: host
links:
  - [h1, r1]
  - {ends: [r1, r2], delay: 1ms}
  - {ends: [r2, r4], delay: 1ms}
  - {ends: [r1, r3], delay: 1ms, cost: 5}
  - [r3, r4]
  - [r4, h2]
`

func frrLab(t *testing.T, name, protocols string) *Lab {
	t.Helper()
	nstest.Root(t)
	if _, err := frr.Find(); err != nil {
		nstest.Program(t, "/usr/lib/frr/zebra", "frr")
	}
	return bareLab(t, strings.ReplaceAll(daemonRing, "PROTOCOLS", protocols), name)
}

// link finds the number of the engine's link between two nodes.
func (l *Lab) linkNumber(t *testing.T, a, b string) *int {
	t.Helper()
	links, err := l.engine.Client().Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(links, func(s emud.LinkState) bool { return s.Ends == [2]string{a, b} })
	if i < 0 {
		t.Fatalf("no link %s - %s among %v", a, b, links)
	}
	return &i
}

func (l *Lab) breaks(t *testing.T, a, b, cause string, down bool) {
	t.Helper()
	fault := emud.Fault{Link: l.linkNumber(t, a, b), Cause: cause, Down: down}
	if _, err := l.engine.Client().Change(t.Context(), fault); err != nil {
		t.Fatal(err)
	}
}

// by is an error unless packets from h1 to h2 take the way by a router: it alone of two has forwarded more of them.
func (l *Lab) by(t *testing.T, family, router string) error {
	counts := func() map[string]uint64 {
		all, err := l.engine.Client().Routers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]uint64{}
		for _, r := range all {
			n[r.Name] = r.Counters.In
		}
		return n
	}
	before := counts()
	if out, err := l.Output(t.Context(), "h1", strings.Fields("ping "+family+" -c 20 -i 0.01 -W 1 h2")...); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	after := counts()
	if n := after[router] - before[router]; n < 40 {
		return fmt.Errorf("%d packets of 40 by %s", n, router)
	}
	return nil
}

func TestAFRRThatDiesIsNamed(t *testing.T) {
	l := frrLab(t, "frr_dies", "protocols: [ospf6]")
	before, err := l.engine.Client().Router(t.Context(), "r1") // up waited until it knew all ways
	if err != nil || before.Feed.Routes == 0 {
		t.Fatalf("at first %+v, %v", before.Feed, err)
	}
	if err := l.Do(t.Context(), file.Action{Verb: "kill", Node: "r1", Program: "zebra", Signal: syscall.SIGKILL}); err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, l.dir.Log(file.ManagementNode, engine.Name), func() error {
		if err := l.procs.Exited("r1", "zebra"); err == nil || !strings.Contains(err.Error(), "r1/zebra ended (signal: killed)") {
			return fmt.Errorf("nobody says that zebra has ended: %w", err)
		}
		r, err := l.engine.Client().Router(t.Context(), "r1")
		if err == nil && !strings.Contains(r.Feed.Error, "zebra has gone") {
			err = fmt.Errorf("state %+v", r.Feed)
		}
		return err
	})
	if err := l.Do(t.Context(), file.Action{Verb: "restart", Node: "r1", Program: "frr"}); err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, l.dir.Log(file.ManagementNode, engine.Name), func() error {
		r, err := l.engine.Client().Router(t.Context(), "r1")
		if err == nil && (r.Feed.Error != "" || r.Feed.Routes < before.Feed.Routes) {
			err = fmt.Errorf("state %+v", r.Feed)
		}
		return err
	})
}

func TestLinesThatFRRDoesNotKnowAreRefused(t *testing.T) {
	nstest.Root(t)
	text := strings.Replace(kernel, "r2: plain", "r2: {kind: frr, config: \"interface lo\\n bananas 3\\n\"}", 1)
	f, err := file.Parse("bad.yaml", []byte(strings.Replace(strings.Replace(text, "r1: plain", "r1: frr", 1), "NAME", nstest.LabNamed("frr_bad"), 1)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Up(t.Context(), f, Options{})
	if err == nil {
		Down(t.Context(), f.Name, l.opt)
	}
	if err == nil || !strings.Contains(err.Error(), `config of router "r2"`) || !strings.Contains(err.Error(), "bananas 3") {
		t.Error(err)
	}
}

func TestAFailedLinkMakesFRRReconvergeAndTrafficFollows(t *testing.T) {
	before := machine(t)
	t.Run("all at a time", func(t *testing.T) { // they wait for their protocols' timers
		for _, x := range []struct{ name, protocols, family string }{
			{"ospf6", "protocols: [ospf6]", "-6"},
			{"ospf", "protocols: [ospf]", "-4"},
			{"bgp", "protocols: [bgp]", "-4"},
			{"kernel", "protocols: [ospf6], feed: kernel", "-6"},
		} {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				trafficFollows(t, x.name, x.protocols, x.family)
			})
		}
	})
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func trafficFollows(t *testing.T, name, protocols, family string) {
	l := frrLab(t, "frr_"+name, protocols)
	look := "vtysh --vty_socket " + l.ProgramDir("r1", file.FRRName)
	l.breaks(t, "r1", "r3", emud.CauseFail, true) // to BGP both ways are as long
	nstest.Wait(t, look, func() error { return l.by(t, family, "r2") })
	l.breaks(t, "r1", "r3", emud.CauseFail, false)
	l.breaks(t, "r2", "r4", emud.CauseFail, true)
	nstest.Wait(t, look, func() error { return l.by(t, family, "r3") })
	l.breaks(t, "r2", "r4", emud.CauseFail, false)
	l.breaks(t, "r1", "r2", emud.CauseCut, true) // nobody is told: they find out by what does not come
	nstest.Wait(t, look, func() error { return l.by(t, family, "r3") })
	if err := Down(context.Background(), l.File.Name, l.opt); err != nil {
		t.Fatal(err)
	}
}
