package links

import (
	"fmt"
	"slices"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/plan"
)

// A fake is what links live among; it notes what it is told.
type fake struct {
	planned map[string][]plan.Link
	saved   int
	told    []string
	refused int
}

func (f *fake) SetLinks(router string, links []plan.Link) { f.planned[router] = links }
func (f *fake) Later(list ...store.Change)                { f.saved += len(list) }
func (f *fake) Tell(kind, subject, _ string, _ ...string) { f.told = append(f.told, kind+" "+subject) }
func (f *fake) Inc(...string)                             { f.refused++ }

// with are the links of routers that are here.
func with(routers ...string) (*fake, *Links) {
	f := &fake{planned: map[string][]plan.Link{}}
	x := New(f, f, f, f)
	for _, r := range routers {
		x.Know(r)
		x.Joined(r)
	}
	return f, x
}

func up(port, peer, peerPort string) *apiv1.Neighbour {
	return &apiv1.Neighbour{Port: port, Peer: peer, PeerPort: peerPort, Via: "fe80::1", Up: true}
}

func report(links ...*apiv1.Neighbour) *apiv1.Neighbours { return &apiv1.Neighbours{Links: links} }

func states(list []plan.Link) (all []plan.LinkState) {
	for _, l := range list {
		all = append(all, l.State)
	}
	return all
}

func TestWhatARouterReportsIsPlannedSavedAndToldOnce(t *testing.T) {
	f, x := with("a", "b")
	for range 3 {
		x.Report("a", report(up("e0", "b", "e1")))
	}
	if len(f.planned["a"]) != 1 || f.saved != 1 || !slices.Equal(f.told, []string{"link.up a"}) {
		t.Errorf("planned %v, %d times saved, told %v", f.planned["a"], f.saved, f.told)
	}
}

func TestALinkToARouterThatIsAwayStaysSilent(t *testing.T) {
	f, x := with("a", "b")
	x.Report("b", report(up("e1", "a", "e0")))
	x.Report("a", report(up("e0", "b", "e1")))
	x.Left("b")
	x.Report("a", report())
	if got := states(f.planned["a"]); !slices.Equal(got, []plan.LinkState{plan.LinkSilent}) {
		t.Errorf("the link is %v, want silent: its last resort", got)
	}
	x.Joined("b")
	x.Report("b", report()) // it is back, and nothing is there
	if got := f.planned["a"]; len(got) != 0 {
		t.Errorf("%v is left of a link that neither end reports", got)
	}
}

func TestWhoStillLooksKeepsTheLinksThatItHad(t *testing.T) {
	f, x := with("a", "b", "c")
	x.Report("a", report(up("e0", "b", "e1"), up("e1", "c", "e0")))
	x.Left("a")
	x.Joined("a")
	x.Report("a", &apiv1.Neighbours{Partial: true, Links: []*apiv1.Neighbour{up("e1", "c", "e0")}})
	if got := f.planned["a"]; len(got) != 2 {
		t.Errorf("planned are %v, want both", got)
	}
}

func TestLinksThatTheirOtherEndReportsComeFirst(t *testing.T) {
	f, x := with("a", "b")
	x.Report("b", report(up("e1", "a", "e0")))
	var many []*apiv1.Neighbour
	for i := range 2 * Max {
		many = append(many, up("dev", fmt.Sprintf("made-up-%d", i), "x"))
	}
	x.Report("a", report(append(many, up("e0", "b", "e1"))...))
	if got := f.planned["a"]; len(got) != Max || got[0].Peer != "b" || f.refused != 1 {
		t.Errorf("%d links count, the first to %v, %d reports refused", len(got), got[0].Peer, f.refused)
	}
	x.Report("a", report(append(many, up("e0", "b", "e1"))...))
	if n := len(slices.DeleteFunc(f.told, func(s string) bool { return s != "router.error a" })); n != 1 {
		t.Errorf("told %d times, want once for as long as it lasts", n)
	}
}

func TestARouterIsGreetedOnlyByWhomItConfirms(t *testing.T) {
	_, x := with("a", "b")
	x.Report("a", report(up("e0", "b", "e1")))
	if x.AnyTo("b") || !x.Of("a")[0].OneSided {
		t.Error("one end's word makes a link")
	}
	x.Report("b", report(up("e1", "a", "e0")))
	if !x.AnyTo("b") || x.Of("a")[0].OneSided {
		t.Error("both ends' word makes none")
	}
}

func TestNothingOfAForgottenRouterIsLeft(t *testing.T) {
	_, x := with("a", "b")
	x.Report("a", report(up("e0", "b", "e1")))
	x.Report("b", report(up("e1", "a", "e0")))
	x.Forgotten("a")
	if x.AnyTo("b") || len(x.routers) != 1 {
		t.Error("its links count")
	}
}
