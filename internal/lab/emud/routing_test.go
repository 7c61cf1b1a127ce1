package emud

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// square is a ring of four routers, of which two announce the same prefix; nothing outside belongs to it.
func square() Config {
	own := func(i int) netip.Addr { return netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i)}) }
	cfg := Config{Routing: Routing{Computed: true, ECMP: true, Convergence: time.Millisecond}}
	anycast := netip.MustParsePrefix("fd99::/64")
	for i := range 4 {
		name := fmt.Sprint("r", i)
		a := netip.PrefixFrom(own(i+1), 128)
		place := Place{Name: name, Announce: []netip.Prefix{a}}
		if i%2 == 1 {
			place.Announce = append(place.Announce, anycast)
		}
		cfg.Routers = append(cfg.Routers, Router{Name: name, Program: "forward", Core: -1, Own: []netip.Addr{own(i + 1)}})
		cfg.Routing.Nodes = append(cfg.Routing.Nodes, place)
		next := (i + 1) % 4
		cfg.Links = append(cfg.Links, Link{Ends: [2]End{{Node: name, Router: true}, {Node: fmt.Sprint("r", next), Router: true}}})
		cfg.Routing.Edges = append(cfg.Routing.Edges, Hop{Ends: [2]int{i, next}, Cost: 3, Link: i})
	}
	return cfg
}

func running(t *testing.T, cfg Config, programs Programs) *engine {
	t.Helper()
	e, err := newEngine(cfg, programs, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.net.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.net.Close() })
	return e
}

// routesOf are those of a router, as text.
func routesOf(t *testing.T, e *engine, name string) string {
	t.Helper()
	var words []string
	r := e.routers[name]
	if err := e.net.Do(r.Router, func() {
		for _, route := range r.Program().(*forward.Forwarder).Routes() {
			words = append(words, route.String())
		}
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(words, ", ")
}

// follows waits until routes know of all faults.
func (e *engine) follows(t *testing.T) {
	t.Helper()
	nstest.Wait(t, "computed routes", func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.routes.Installed != e.routes.Faults || e.routes.Error != "" {
			return fmt.Errorf("%+v", e.routes.Routes)
		}
		return nil
	})
}

const whole = "fd00::2/128 port 0, fd00::3/128 port 0 or port 1, fd00::4/128 port 1, fd99::/64 port 0 or port 1"

func TestRoutesAreAllShortestPathsToTheNearest(t *testing.T) {
	if got := routesOf(t, running(t, square(), Shipped()), "r0"); got != whole {
		t.Errorf("r0: %s\nwant %s", got, whole)
	}
	cfg := square()
	cfg.Routing.ECMP = false
	if got, want := routesOf(t, running(t, cfg, Shipped()), "r0"), strings.ReplaceAll(whole, " or port 1", ""); got != want {
		t.Errorf("r0 without ECMP: %s\nwant %s", got, want)
	}
}

func TestRoutesFollowFaultsAndRepairs(t *testing.T) {
	e := running(t, square(), Shipped())
	for _, c := range []struct {
		what  string
		fault Fault
		want  string
	}{
		{"link r0-r1", Fault{Link: new(int), Down: true}, "fd00::2/128 port 1, fd00::3/128 port 1, fd00::4/128 port 1, fd99::/64 port 1"},
		{"link r0-r1", Fault{Link: new(int)}, whole},
		{"router r3", Fault{Router: "r3", Down: true}, "fd00::2/128 port 0, fd00::3/128 port 0, fd99::/64 port 0"},
		{"router r3", Fault{Router: "r3"}, whole},
		{"port 0 of r0", Fault{Router: "r0", Port: new(int), Down: true}, "fd00::2/128 port 1, fd00::3/128 port 1, fd00::4/128 port 1, fd99::/64 port 1"},
		{"port 0 of r0", Fault{Router: "r0", Port: new(int)}, whole},
	} {
		e.carryOut(t, c.fault)
		e.follows(t)
		if got := routesOf(t, e, "r0"); got != c.want {
			t.Errorf("%s down %v: r0: %s\nwant %s", c.what, c.fault.Down, got, c.want)
		}
	}
}

func (e *engine) carryOut(t *testing.T, f Fault) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	do, err := e.fault(f)
	if err == nil {
		err = do()
	}
	if err != nil {
		t.Fatal(err)
	}
	e.changed(1)
}

func TestStaticRoutesWinOverComputedOnes(t *testing.T) {
	cfg := square()
	port := 1
	cfg.Routers[0].Static = []Static{{To: netip.MustParsePrefix("fd00::2/128"), Port: &port}, {To: netip.MustParsePrefix("fd98::/64")}}
	e := running(t, cfg, Shipped())
	want := "fd00::2/128 port 1, fd00::3/128 port 0 or port 1, fd00::4/128 port 1, blackhole fd98::/64, fd99::/64 port 0 or port 1"
	if got := routesOf(t, e, "r0"); got != want {
		t.Errorf("r0: %s\nwant %s", got, want)
	}
	e.carryOut(t, Fault{Link: new(int), Down: true})
	e.follows(t)
	if got := routesOf(t, e, "r0"); !strings.HasPrefix(got, "fd00::2/128 port 1,") {
		t.Errorf("r0 after a fault: %s", got)
	}
}

func TestAProgramThatIsUnknownIsNamed(t *testing.T) {
	cfg := square()
	cfg.Routers[2].Program = "teleport"
	_, err := newEngine(cfg, Programs{"forward": newForward, "load": func(Setting) (emu.Program, error) { return nil, nil }}, t.Logf)
	if err == nil || err.Error() != `router r2: unknown program "teleport"; this engine has forward, load` {
		t.Error(err)
	}
}
