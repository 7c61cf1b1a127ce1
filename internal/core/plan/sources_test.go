package plan

import (
	"fmt"
	"slices"
	"testing"

	"scaffold.dev/scaffold/sid"
)

// A host may send from what it has and had, at all ports where it is and was, and nobody else may there.
func TestAHostSendsFromWhatItHasAndHad(t *testing.T) {
	p := New(sid.DefaultSpace())
	at := func(n uint16) sid.Locator { return sid.DefaultSpace().Locator(n) }
	for i, name := range []string{"r1", "r2"} {
		p.SetRouter(Router{Name: name, Locator: at(uint16(i+1) << 8)})
	}
	wants := func(what, router string, want ...Source) {
		t.Helper()
		p.Drain()
		if got := p.Snapshot(router).Sources; !slices.Equal(got, want) {
			t.Errorf("%s: %s lets in %s, want %s", what, router, fmt.Sprint(got), fmt.Sprint(want))
		}
	}
	p.SetHost(Host{Name: "other", Locator: at(0x109), Router: "r1", Port: "b"})
	p.SetHost(Host{Name: "h", Locator: at(0x101), Router: "r1", Port: "a"})
	wants("at one place", "r1", Source{Port: "a", Locator: at(0x101)}, Source{Port: "b", Locator: at(0x109)})
	p.SetHost(Host{Name: "h", Locator: at(0x201), Router: "r2", Port: "c"})
	wants("at two", "r1", Source{Port: "a", Locator: at(0x101)}, Source{Port: "a", Locator: at(0x201)}, Source{Port: "b", Locator: at(0x109)})
	wants("at two", "r2", Source{Port: "c", Locator: at(0x101)}, Source{Port: "c", Locator: at(0x201)})
	p.RemoveHost(at(0x101))
	p.SetHeld(at(0x101), "h", "r1", "a")
	wants("it has left the first", "r1", Source{Port: "a", Locator: at(0x101)}, Source{Port: "a", Locator: at(0x201)}, Source{Port: "b", Locator: at(0x109)})
	wants("it has left the first", "r2", Source{Port: "c", Locator: at(0x101)}, Source{Port: "c", Locator: at(0x201)})
	p.SetHeld(at(0x101), "", "", "")
	wants("nothing is held any more", "r1", Source{Port: "b", Locator: at(0x109)})
	wants("nothing is held any more", "r2", Source{Port: "c", Locator: at(0x201)})
	p.SetHeld(at(0x101), "h", "", "") // as after a restart: nobody knows where it was
	wants("held, from before a restart", "r2", Source{Port: "c", Locator: at(0x101)}, Source{Port: "c", Locator: at(0x201)})
	p.DropHeld("h")
	p.RemoveHost(at(0x201))
	wants("forgotten", "r2")
}

// What is let in is told before anybody is resolved to the place, and shut out behind all else.
func TestWhoMaySendIsToldInTime(t *testing.T) {
	p := New(sid.DefaultSpace())
	l := sid.DefaultSpace().Locator(0x101)
	p.SetRouter(Router{Name: "r1", Locator: sid.DefaultSpace().Locator(0x100)})
	p.SetHost(Host{Name: "h", Locator: l, Router: "r1", Port: "a"})
	if steps := p.Drain(); len(steps) == 0 || len(steps[0].Rules.Sources) != 1 {
		t.Errorf("%+v: want the source with the route", steps)
	}
	p.RemoveHost(l)
	steps := p.Drain()
	if last := steps[len(steps)-1].Rules.Sources; len(last) != 1 || !last[0].Gone {
		t.Errorf("%+v: want the source to go last", steps)
	}
}
