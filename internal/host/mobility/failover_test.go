package mobility

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
		a.Learn(webID, &apiv1.Policy{Failover: c.policy})
		tcp, served := n.connect(a, b, 1000, sid.TCP)
		udp, _ := n.connect(a, b, 1001, sid.UDP)
		a.cut, b.cut = true, true
		a.Accused(Accusation{Locators: []sid.Locator{placeB}, Services: []sid.ServiceID{webID}})
		b.Accused(Accusation{Locators: []sid.Locator{placeA}})
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
		for _, atOnce := range []bool{false, true} { // or when the kernel's table was read
			n := newFakeNet(t)
			a, b := n.host(placeA), n.host(placeB)
			n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
			a.tcp.look = func(host.Tuple) (*kick.Socket, bool) { return socket, atOnce }
			a.Learn(webID, &apiv1.Policy{Failover: "continue"})
			tcp, _ := n.connect(a, b, 1000, sid.TCP)
			b.cut = true
			a.Accused(Accusation{Locators: []sid.Locator{placeB}})
			n.ask(a)
			k := a.byTuple[tcp]
			if v, _ := a.engine.View(k); !atOnce && v.State != session.Blocked {
				t.Fatalf("%s: the flow is %v, want blocked", what, v.State)
			}
			if !atOnce {
				a.resume(k, socket)
			}
			n.run()
			if got := a.edge.last(tcp); got != host.Forget {
				t.Errorf("%s, known at once: %v: the edge was told to %v", what, atOnce, got)
			}
		}
	}
}

// TestTheControllerIsNotAskedOnAnUnknownSendersWord: a forged FLOW-FAIL is dropped and counted before anything is done for it.
func TestTheControllerIsNotAskedOnAnUnknownSendersWord(t *testing.T) {
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
	a.servers.all = []*server{{match: func(sid.Triple) bool { return true }, canResume: true}}
	triple := sid.Triple{Service: webID, Proto: sid.TCP, Port: 80}
	for _, step := range []struct {
		what string
		may  bool
	}{
		{"nobody has said who may connect", false},
		{"the policy is known", true},
		{"the controller refuses it", false},
		{"it may again", true},
	} {
		a.serves.all[triple] = step.may
		a.serves.changes++
		if a.Settle(time.Now()); a.capable[webID] != step.may {
			t.Errorf("%s: it takes flows over: %v, want %v", step.what, a.capable[webID], step.may)
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
	b.forgetQuiet(start.Add(quietFor))
	if b.quiet[tuple] == nil || b.edge.last(tuple) == host.Forget {
		t.Error("the end of the first silence ended the second")
	}
	b.forgetQuiet(start.Add(2 * quietFor))
	if b.quiet[tuple] != nil || b.edge.last(tuple) != host.Forget || len(b.dying) != 0 {
		t.Errorf("the second silence did not end: %d dying", len(b.dying))
	}
}

// A process with more connections than the edge has room to tell of dies: all are looked for, once what it did tell is read.
func TestConnectionsOfWhichTheEdgeCouldNotTellAreFound(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
	a.Learn(webID, &apiv1.Policy{Failover: "continue"})
	told, served := n.connect(a, b, 1000, sid.TCP)
	untold, hidden := n.connect(a, b, 1001, sid.TCP)
	kept, _ := n.connect(a, b, 1002, sid.TCP)
	b.edge.flows[hidden].Untold, b.edge.untold = true, 1
	b.Event(host.Event{Kind: host.Died, Tuple: served})
	n.run()
	for what, flow := range map[string]host.Tuple{"told": told, "untold": untold} {
		if got := a.edge.last(flow); got != host.Block {
			t.Errorf("%s: the client's edge was told to %v, want block", what, got)
		}
	}
	if got := a.edge.last(kept); got != 0 {
		t.Errorf("a flow that lives: %v", got)
	}
	walks := b.edge.walks
	b.Event(host.Event{Kind: host.Died, Tuple: served})
	n.run()
	if b.edge.walks != walks {
		t.Error("all flows are looked at again, without a reason")
	}
}
