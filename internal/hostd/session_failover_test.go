package hostd

import (
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// last is the last thing that the edge was told to do to a flow.
func (e *fakeEdge) last(t host.Tuple) (v host.Verb) {
	for _, s := range e.steps {
		if s.Flow == t {
			v = s.Verb
		}
	}
	return v
}

func TestThePolicySaysWhatBecomesOfFlowsToAHostThatIsGone(t *testing.T) {
	for _, c := range []struct {
		policy string
		keys   bool
		want   host.Verb
	}{
		{"reset", true, host.Forget},
		{"continue", true, host.Block},
		{"continue", false, host.Forget}, // an open network resets
	} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		if c.keys {
			n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
		}
		a.learn(webID, &apiv1.Policy{Failover: c.policy})
		tcp, served := n.connect(a, b, 1000, sid.TCP)
		udp, _ := n.connect(a, b, 1001, sid.UDP)
		a.cut, b.cut = true, true
		a.accused(accusation{locators: []sid.Locator{placeB}, services: []sid.ServiceID{webID}})
		b.accused(accusation{locators: []sid.Locator{placeA}})
		n.ask(a)
		n.ask(b)
		if got := a.edge.last(tcp); got != c.want {
			t.Errorf("%s, keys %v: the edge was told to %v, want %v", c.policy, c.keys, got, c.want)
		}
		if got := a.edge.last(udp); got != host.Unbind {
			t.Errorf("%s: the datagram flow: %v, want unbind", c.policy, got)
		}
		if got := b.edge.last(served); got != 0 {
			t.Errorf("%s: the server's end: %v; a client may come back", c.policy, got)
		}
	}
}

func TestAConnectionThatCannotBeCarriedOnIsReset(t *testing.T) {
	for what, socket := range map[string]*kick.Socket{"no socket": nil, "a gap": {State: kick.Established, Sequenced: true, Gaps: true}} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
		a.learn(webID, &apiv1.Policy{Failover: "continue"})
		tcp, _ := n.connect(a, b, 1000, sid.TCP)
		b.cut = true
		a.accused(accusation{locators: []sid.Locator{placeB}})
		n.ask(a)
		k := a.byTuple[tcp]
		if v, _ := a.engine.View(k); v.State != session.Blocked {
			t.Fatalf("%s: the flow is %v, want blocked", what, v.State)
		}
		a.resume(k, socket)
		n.run()
		if got := a.edge.last(tcp); got != host.Forget {
			t.Errorf("%s: the edge was told to %v", what, got)
		}
	}
}

// TestTheControllerIsNotAskedOnAStrangersWord: a forged FLOW-FAIL is dropped and counted before anything is done for it.
func TestTheControllerIsNotAskedOnAStrangersWord(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
	tcp, served := n.connect(a, b, 1000, sid.TCP)
	c, s := a.edge.flows[tcp], b.edge.flows[served]
	forged := wire.FlowFail{Locator: placeB, Reason: wire.ProcessDied,
		Flows: []wire.Failed{{Stable: c.Stable, Server: true, Socket: c.ID, Quote: s.ID}}}
	n.queue = append(n.queue, fakePacket{placeB.Addr(uint64(s.ID)), placeA.Addr(uint64(c.ID)), forged.Append(nil)})
	n.run()
	if got := a.engine.Counters()["not_authentic"]; got != 1 {
		t.Errorf("counted %d times", got)
	}
	if got := a.edge.last(tcp); got != 0 {
		t.Errorf("the edge was told to %v", got)
	}
}

// A program that can resume takes nothing over before its host knows who may connect, and nothing of a service that the
// host may not serve.
func TestWhoMayNotServeTakesNothingOver(t *testing.T) {
	n := newFakeNet(t)
	a := n.host(placeA)
	n.signs(map[*fakeHost][]sid.Locator{a: {placeA}})
	a.servers = []*server{{match: func(sid.Triple) bool { return true }, canResume: true}}
	i := &instance{}
	a.d.serving.instances[sid.Triple{Service: webID, Proto: sid.TCP, Port: 80}] = i
	for _, step := range []struct {
		what  string
		does  func()
		takes bool
	}{
		{"nobody has said who may connect", func() {}, false},
		{"it served before this daemon", func() { i.trusted = true }, true},
		{"the policy is known", func() { i.trusted = false; a.d.serving.policies[webID] = &apiv1.ServicePolicy{} }, true},
		{"the controller refuses it", func() { i.refused = "its permit has expired" }, false},
		{"it may again", func() { i.refused = "" }, true},
	} {
		step.does()
		a.d.serving.changes++
		if a.settle(time.Now()); a.capable[webID] != step.takes {
			t.Errorf("%s: it takes flows over: %v, want %v", step.what, a.capable[webID], step.takes)
		}
	}
}

// A flow that comes back while its first silence lasts and goes again is silent for the full time again.
func TestASecondSilenceIsNotCutShortByTheFirst(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	_, tuple := n.connect(a, b, 1000, sid.TCP)
	change := session.Change{Key: session.Key{Stable: tuple.Remote.Addr(), Role: session.Server}}
	start := time.Now()
	for i := range 2 {
		b.reset(start.Add(time.Duration(i)*quietFor/2), &steering{}, held{tuple: tuple}, change)
	}
	b.bury(start.Add(quietFor))
	if b.quiet[tuple] == nil || b.edge.last(tuple) == host.Forget {
		t.Error("the end of the first silence ended the second")
	}
	b.bury(start.Add(2 * quietFor))
	if b.quiet[tuple] != nil || b.edge.last(tuple) != host.Forget || len(b.dying) != 0 {
		t.Errorf("the second silence did not end: %d dying", len(b.dying))
	}
}
