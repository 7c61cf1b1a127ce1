package lab

import (
	"fmt"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// circle is a ring of four emulated routers between two hosts; the way by r3 costs more.
const circle = `
name: NAME
nodes: {h1: host, r1: emulated, r2: emulated, r3: emulated, r4: emulated, h2: host}
links:
  - [h1, r1]
  - {ends: [r1, r2], delay: 2ms}
  - {ends: [r2, r4], delay: 2ms}
  - {ends: [r1, r3], delay: 1ms, cost: 5}
  - [r3, r4]
  - [r4, h2]
`

// reaches is an error unless a ping arrives.
func reaches(t *testing.T, l *Lab, from string, to ...string) error {
	out, err := l.Output(t.Context(), from, append(strings.Fields("ping -c 1 -W 1"), to...)...)
	if err != nil {
		return fmt.Errorf("%s: ping %s: %w\n%s", from, to, err, out)
	}
	return nil
}

func TestPingsCrossARingOfEmulatedRouters(t *testing.T) {
	before := machine(t)
	l := bareLab(t, circle, "circle")
	for _, to := range [][]string{{"-6", "h2"}, {"-4", "h2"}, {"-6", "r3"}, {"-4", "r4"}, {"-6", "-s", "1400", "h2"}} {
		sees(t, l, "h1", to...)
	}
	if err := Down(t.Context(), l.File.Name, l.opt); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// sees waits until a ping arrives.
func sees(t *testing.T, l *Lab, from string, to ...string) {
	t.Helper()
	nstest.Wait(t, "the engine's log", func() error { return reaches(t, l, from, to...) })
}

// carried is how many packets the link between two nodes has passed, in both directions.
func carried(t *testing.T, l *Lab, a, b string) (n uint64) {
	t.Helper()
	links, err := l.engine.Links()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links.Between(a, b) {
		n += link.Lines[0].Counters.Passed + link.Lines[1].Counters.Passed
	}
	return n
}

// stateOf is the state of the link between two nodes.
func stateOf(t *testing.T, l *Lab, a, b string) string {
	t.Helper()
	s, err := l.Status()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range s.Links {
		if link.Ends == [2]string{a, b} {
			return link.State
		}
	}
	t.Fatalf("no link between %s and %s", a, b)
	return ""
}

func TestTrafficFollowsFaultsOfARing(t *testing.T) {
	l := bareLab(t, circle, "follow")
	sees(t, l, "h1", "h2")
	if n := carried(t, l, "r3", "r4"); n != 0 {
		t.Errorf("%d packets went the longer way", n)
	}
	for _, c := range []struct{ fault, repair, a, b, state string }{
		{"fail r2 r4", "repair r2 r4", "r2", "r4", "failed"},
		{"fail r2", "repair r2", "r1", "r2", "up"},
		{"fail r1:r2", "repair r1:r2", "r1", "r2", "up"},
		{"cut r1 r2", "heal r1 r2", "r1", "r2", "cut"},
		{"unplug r2 r4", "heal r2 r4", "r2", "r4", "unplugged"},
		{"partition h1,r1,r3,r4,h2 | r2", "unite", "r2", "r4", "partitioned"},
	} {
		act(t, l, c.fault)
		if got := stateOf(t, l, c.a, c.b); got != c.state {
			t.Errorf("%s: link between %s and %s is %s, want %s", c.fault, c.a, c.b, got, c.state)
		}
		before := carried(t, l, "r3", "r4")
		sees(t, l, "h1", "h2")
		if carried(t, l, "r3", "r4") == before {
			t.Errorf("%s: nothing went the longer way", c.fault)
		}
		act(t, l, c.repair)
		nstest.Wait(t, "routes", func() error {
			before := carried(t, l, "r3", "r4")
			if err := reaches(t, l, "h1", "h2"); err != nil || carried(t, l, "r3", "r4") != before {
				return fmt.Errorf("after %s traffic goes the longer way: %w", c.repair, err)
			}
			return nil
		})
	}
}

func TestAHostWhoseLinkFailedComesBack(t *testing.T) {
	l := bareLab(t, circle, "back")
	for _, c := range [][2]string{{"fail h2 r4", "repair h2 r4"}, {"fail r4", "repair r4"}, {"unplug h2", "heal h2"}, {"cut r4 h2", "heal r4 h2"}, {"partition h2", "unite"}} {
		sees(t, l, "h1", "h2")
		act(t, l, c[0])
		nstest.Wait(t, "the fault", func() error {
			if reaches(t, l, "h1", "h2") == nil {
				return fmt.Errorf("after %s a ping arrives", c[0])
			}
			return nil
		})
		act(t, l, c[1])
	}
	sees(t, l, "h1", "-6", "h2")
	sees(t, l, "h2", "-4", "h1")
}

func TestRoutersAreUpgradedWhileTheyRun(t *testing.T) {
	l := bareLab(t, circle, "upgrade")
	sees(t, l, "h1", "h2")
	act(t, l, "upgrade forward 50% seed 7 icmp-rate=12")
	var changed []string
	for _, name := range []string{"r1", "r2", "r3", "r4"} {
		rate, err := l.engine.Client().Get(t.Context(), name, "icmp-rate")
		if err != nil {
			t.Fatal(err)
		}
		if rate == "12" {
			changed = append(changed, name)
		}
	}
	if len(changed) != 2 {
		t.Errorf("%v run the new program", changed)
	}
	sees(t, l, "h1", "h2")
	a, _ := file.ParseAction("upgrade forward 100% colour=red")
	if err := l.Do(t.Context(), a); err == nil || !strings.Contains(err.Error(), `unknown parameter "colour"`) {
		t.Errorf("a parameter that is none: %v", err)
	}
}
