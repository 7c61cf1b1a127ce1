package mobility

import (
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// posted does the next thing that another goroutine wants done.
func (h *fakeHost) posted() { (<-h.inbox)() }

func TestASilentServerIsGivenUpOnlyForAnother(t *testing.T) {
	for what, c := range map[string]struct {
		there bool
		err   error
		want  host.Verb
	}{
		"others serve":              {true, nil, host.Forget},
		"nobody else serves":        {false, nil, 0},
		"the controller is away":    {true, errAway, 0},
		"the controller starts now": {false, errAway, 0},
	} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		tcp, _ := n.connect(a, b, 1000, sid.TCP)
		delete(n.at, placeB)
		a.answers.there, a.answers.err = c.there, c.err
		k, _ := a.find(tcp)
		a.engine.Suspect(a.engine.Deadline(), k)
		for len(a.questions.open) == 0 {
			a.Settle(a.engine.Deadline())
		}
		a.posted()
		n.run()
		if got := a.edge.last(tcp); got != c.want {
			t.Errorf("%s: the edge was told to %v, want %v", what, got, c.want)
		}
		if v, there := a.engine.View(k); c.want == 0 && (!there || v.State != session.Bound) {
			t.Errorf("%s: the flow is there: %v, %v; want it bound", what, there, v.State)
		}
		if want := (Question{sid.Triple{Service: webID, Proto: sid.TCP, Port: 80}, placeB}); len(a.answers.asked) != 1 || a.answers.asked[0] != want {
			t.Errorf("%s: the controller was asked %v", what, a.answers.asked)
		}
	}
}

// Asked in vain, a flow would look for an instance for seconds.
func TestAFlowWithoutAnInstanceThatCanIsResetAtOnce(t *testing.T) {
	for what, c := range map[string]struct {
		there bool
		err   error
		want  host.Verb
	}{
		"one can":                {true, nil, host.Block},
		"none can":               {false, nil, host.Forget},
		"the controller is away": {false, errAway, host.Block},
	} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
		a.Learn(webID, &apiv1.Policy{Failover: "continue"})
		a.answers.there, a.answers.err = c.there, c.err
		tcp, _ := n.connect(a, b, 1000, sid.TCP)
		b.cut = true
		a.Accused(Accusation{Locators: []sid.Locator{placeB}})
		n.ask(a)
		k := a.byTuple[tcp]
		a.resume(k, &kick.Socket{State: kick.Established, Sequenced: true, MSS: 1400, AdvMSS: 1400, MSSClamp: 1400, BytesAcked: 1})
		if v, _ := a.engine.View(k); v.State != session.Asking {
			t.Fatalf("%s: the flow is %v, want it asking", what, v.State)
		}
		a.posted() // it asks the controller
		a.posted() // the answer
		n.run()
		if got := a.edge.last(tcp); got != c.want {
			t.Errorf("%s: the edge was told to %v, want %v", what, got, c.want)
		}
		if want := (Question{Triple: sid.Triple{Service: webID, Proto: sid.UDP, Port: sid.Port}}); a.answers.asked[0] != want {
			t.Errorf("%s: the controller was asked %v", what, a.answers.asked)
		}
	}
}

// When an instance with many flows dies hundreds of messages say so at once: the controller is asked once whether they
// continue elsewhere. Asked as often as it was told, it does not answer in time, and the flows are reset.
func TestAPolicyIsAskedForOnce(t *testing.T) {
	n := newFakeNet(t)
	a := n.host(placeA)
	const wait = 500
	told := 0
	for range wait {
		a.questions.whenPoliciesKnown([]sid.ServiceID{webID}, func() { told++ })
	}
	for told == 0 {
		a.posted()
	}
	if told != wait || len(a.questions.curious) > 0 {
		t.Errorf("%d of %d were told; %d wait", told, wait, len(a.questions.curious))
	}
	if got := a.answers.policies; got != 1 {
		t.Errorf("the controller was asked %d times", got)
	}
}
