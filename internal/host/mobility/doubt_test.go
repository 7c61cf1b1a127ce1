package mobility

import (
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
)

func TestAnAccusedHostKeepsItsFlows(t *testing.T) {
	other := sid.ServiceID{SS: webID.SS, Suffix: webID.Suffix + 1}
	for what, c := range map[string]struct {
		a         Accusation
		cut, keep bool
	}{
		"it answers":                    {Accusation{[]sid.Locator{placeB}, []sid.ServiceID{webID}}, false, true},
		"it answers, though it left":    {Accusation{[]sid.Locator{placeB}, nil}, false, true},
		"nobody else serves the same":   {Accusation{[]sid.Locator{placeB}, []sid.ServiceID{other}}, true, true},
		"the flow is to another host":   {Accusation{[]sid.Locator{placeC}, []sid.ServiceID{webID}}, true, true},
		"it is silent and others serve": {Accusation{[]sid.Locator{placeB}, []sid.ServiceID{other, webID}}, true, false},
		"it is silent and left":         {Accusation{[]sid.Locator{placeB}, nil}, true, false},
	} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		b.cut = c.cut
		a.Learn(webID, &apiv1.Policy{})
		tcp, _ := n.connect(a, b, 1000, sid.TCP)
		a.Accused(c.a)
		n.ask(a)
		if got := a.edge.last(tcp); (got == 0) != c.keep {
			t.Errorf("%s: the edge was told to %v, want the flow kept: %v", what, got, c.keep)
		}
		if len(a.suspects) > 0 || !a.doubts.Deadline().IsZero() {
			t.Errorf("%s: the doubt stays", what)
		}
	}
}

func TestWithoutALinkOfItsOwnAHostGivesNobodyUp(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	b.cut = true
	tcp, _ := n.connect(a, b, 1000, sid.TCP)
	a.where.down = true
	a.Accused(Accusation{Locators: []sid.Locator{placeB}})
	n.ask(a)
	if got := a.edge.last(tcp); got != 0 {
		t.Errorf("the edge was told to %v", got)
	}
}

// A host whose packets still come is not cut off, whatever became of the PROBEs.
func TestAHostIsNotGivenUpWhileItsPacketsCome(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	b.cut = true
	n.connect(a, b, 1000, sid.TCP)
	a.Accused(Accusation{Locators: []sid.Locator{placeB}})
	raised := a.suspects[placeB].since
	for what, c := range map[string]struct {
		heard time.Duration // after the doubt was raised
		want  bool
	}{
		"nothing came":                   {-time.Second, false},
		"something came before the cut":  {-50 * time.Millisecond, false},
		"something came while we waited": {30 * time.Millisecond, true},
	} {
		a.suspects[placeB].since = raised
		now := raised.Add(65 * time.Millisecond)
		a.edge.heard = uint64(int64(ktime.Now()) - now.Sub(raised.Add(c.heard)).Nanoseconds())
		if got := a.excused(now, placeB); got != c.want {
			t.Errorf("%s: excused: %v", what, got)
		}
	}
}
