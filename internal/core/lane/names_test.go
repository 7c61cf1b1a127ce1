package lane

import (
	"net/netip"
	"slices"
	"testing"
)

// A name is carried from where nobody serves it to where somebody does, by agents that know how, the nearest first.
func TestNamesAreCarriedToWhereTheyAreServed(t *testing.T) {
	s := State{Agents: []Agent{
		{Name: "e1", Site: "east", Here: true, Names: true}, {Name: "e2", Site: "east", Here: true, Names: true},
		{Name: "e3", Site: "east", Here: true}, {Name: "e4", Site: "east", Here: true, Names: true, Draining: true},
		{Name: "w1", Site: "west", Here: true, Names: true}, {Name: "w2", Site: "west", Names: true}, {Name: "n1", Site: "north", Here: true, Names: true},
		{Name: "z", Here: true, Names: true},
	}}
	at := netip.MustParseAddrPort("[fd5c::1]:80")
	clients := netip.MustParsePrefix("fd5d:0:1::/48")
	name := Name{Service: "web", Server: at, Sites: []string{"west", "north"}}
	lanes := PlanNames(s, []Name{name}, clients, nil)
	var near []string
	numbers := map[uint64]bool{}
	for _, l := range lanes {
		near = append(near, l.Near)
		numbers[l.Number] = true
		if l.Entry != "web" || l.Client != clients || l.Server.Addr() != at.Addr() || l.Server.Bits() != 128 || l.Port != 80 || !l.Named || len(l.Far) != 2 || !slices.Contains(l.Far, "w1") || !slices.Contains(l.Far, "n1") {
			t.Errorf("lane %+v", l)
		}
	}
	if !slices.Equal(near, []string{"e1", "e2"}) || len(numbers) != 2 {
		t.Errorf("near agents %v, numbers %v", near, numbers)
	}
	again := PlanNames(s, []Name{name}, clients, []Lane{{Number: lanes[0].Number}})
	if again[0].Number == lanes[0].Number || again[1].Number != lanes[1].Number {
		t.Errorf("numbers %d and %d, of which the first is taken", again[0].Number, again[1].Number)
	}
	name.Sites = nil
	if got := PlanNames(s, []Name{name}, clients, nil); len(got) != 0 {
		t.Errorf("nobody serves it at a site, and it is carried: %v", got)
	}
}
