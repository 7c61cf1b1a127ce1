package boost

import (
	"slices"
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/session"
)

// joinWith lets an agent in that says all its addresses, its door first.
func (n *network) joinWith(name string, doors ...string) (*stream, *apiv1.Refused) {
	j := joinOf(name)
	j.Door, j.Doors = doors[0], doors
	s := &stream{Session: session.New[apiv1.BoostOrder](n.t.Context(), 100), n: n, name: name}
	if no := n.Join(s.Session, j); no != nil {
		return nil, no
	}
	n.by = append(n.by, s)
	n.Flush()
	return s, nil
}

// Agents hear all addresses of the others, and of one of before none but its door: by that they know what it is.
func TestAgentsHearOfEachOthersAddresses(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1, no := n.joinWith("e1", "192.0.2.1:23731", "[2001:db8::1]:99")
	if no != nil {
		t.Fatal(no)
	}
	w1 := n.join("w1") // of before
	told := w1.told()
	if a := told.GetAgents(); len(a) != 1 || a[0].Door != "192.0.2.1:23731" || !slices.Equal(a[0].Doors, []string{"192.0.2.1:23731", "[2001:db8::1]:99"}) {
		t.Errorf("w1 is told %v", told)
	}
	told = e1.told()
	if a := told.GetAgents(); len(a) != 1 || a[0].Door == "" || len(a[0].Doors) != 0 {
		t.Errorf("e1 is told %v", told)
	}
	if a := n.list().Agents[0]; !slices.Equal(a.Paths, []string{"[2001:db8::1]:99"}) {
		t.Errorf("listed: %v", a)
	}
	if _, no := n.joinWith("w1", "198.51.100.1:23731"); no == nil { // of the same boot: it comes again
		told = e1.told()
	} else {
		t.Fatal(no)
	}
	if a := told.GetAgents(); len(a) != 1 || !slices.Equal(a[0].Doors, []string{"198.51.100.1:23731"}) {
		t.Errorf("w1 has become one of now, and e1 is told %v", told)
	}
	for what, c := range map[string]struct {
		doors []string
		says  string
	}{
		"another's":   {[]string{"198.51.100.2:1", "[2001:db8::1]:99"}, "agent e1 has the door [2001:db8::1]:99"},
		"none":        {[]string{"198.51.100.2:1", "here"}, "want an address of one machine"},
		"any address": {[]string{"198.51.100.2:1", "0.0.0.0:1"}, "want an address of one machine"},
		"many":        {strings.Fields(strings.Repeat("198.51.100.2:1 ", 9)), "9 addresses, want 8 at most"},
	} {
		if _, no := n.joinWith("w2", c.doors...); no == nil || !strings.Contains(no.Reason, c.says) {
			t.Errorf("%s: %v; want that it says %q", what, no, c.says)
		}
	}
}

// A path that is lost is told once, with why, and is a problem until it is back. What is no path is none.
func TestALostPathIsTold(t *testing.T) {
	n := newNetwork(t)
	n.sites()
	e1, w1 := n.join("e1"), n.join("w1")
	says := func(s *stream, other string, up bool) {
		n.Report(s.name, s.Session, &apiv1.BoostReport{Report: &apiv1.BoostReport_Load{Load: &apiv1.BoostLoad{Trunks: []*apiv1.BoostTrunk{{Agent: other, Up: true, Ways: []*apiv1.BoostWay{
			{Own: "192.0.2.1", Other: "198.51.100.1", Up: true, Path: &apiv1.BoostPath{Bound: "full", Held: 7}},
			{Own: "192.0.2.2", Other: "198.51.100.2", Up: up, Why: strings.Repeat("silent\n", 1000)},
			{Own: "nowhere", Other: "198.51.100.3"},
		}}}}}})
	}
	lost := func() (count int) {
		for _, a := range n.Agents() {
			count += len(a.Lost)
		}
		return count
	}
	for i, up := range []bool{true, true, false, false, true} {
		says(e1, "w1", up)
		says(w1, "e1", up)
		if got, want := lost(), map[bool]int{false: 1}[up]; got != want {
			t.Errorf("step %d: %d lost paths are a problem, want %d", i, got, want)
		}
	}
	var got []string
	for _, e := range n.events {
		if strings.HasPrefix(e, "boost.path") {
			got = append(got, e)
		}
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "boost.pathlost e1: path to another agent is lost") || len(got[0]) > 500 || strings.Contains(got[0], "\n") || !strings.HasPrefix(got[1], "boost.path e1: ") {
		t.Errorf("%q", got)
	}
	if w := n.list().Agents[0].Trunks[0].Ways; len(w) != 2 || w[0].Path.Held != 1 {
		t.Errorf("%v", w)
	}
}
