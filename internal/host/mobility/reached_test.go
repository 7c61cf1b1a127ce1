package mobility

import (
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A client that nobody at its new instance has met fails over to it though unknown senders have used up all that is done for
// those: it is there when it is asked, and they are not. They play the same RESUME from made-up addresses.
func TestAnUnknownClientIsHeardInAFloodOfRESUMEs(t *testing.T) {
	n := newFakeNet(t)
	a, old, b := n.host(placeA), n.host(placeB), n.host(placeC)
	n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, old: {placeB}, b: {placeC}})
	b.engine.SetCapable(webID, true)
	a.Learn(webID, &apiv1.Policy{Failover: "continue"})
	a.tcp.look = (&late{after: 1000}).look
	_, st := n.connect(a, old, 1000, sid.TCP)
	k, _ := old.find(st)
	x := newAttacker()
	for range 3 * unknownSenders.all.Burst {
		at := x.anywhere()
		b.says(at.Addr(uint64(guess())), placeC.Addr(uint64(webID.Suffix)), x.resume(at))
	}
	for _, p := range n.queue {
		if asked := wire.HeaderLen; len(p.payload) > asked {
			t.Fatalf("an unknown sender's RESUME was answered with %d bytes", len(p.payload))
		}
	}
	n.queue = nil // nobody is there
	if len(b.reached) > 0 {
		t.Fatalf("%d unknown senders count as reached", len(b.reached))
	}
	b.gates.seeks = session.NewMeasure(seeks.each, seeks.all) // a second later
	b.gates.unknown = session.NewMeasure(session.Rate{}, session.Rate{})
	old.engine.Fail(old.engine.Deadline(), wire.ProcessDied, k)
	n.toInstance(b)
	n.run()
	a.engine.Expire(a.engine.Deadline()) // it asks again
	n.run()
	if v, _ := a.engine.View(session.Key{Stable: k.Stable, Role: session.Client}); v.State != session.Bound || v.Peer.Locator != placeC {
		t.Errorf("the client's flow: %+v; %v", v, b.Counts())
	}
	if b.checked() == 0 || !b.reached.lately(time.Now(), placeA) {
		t.Errorf("the client was not found: %v", b.Counts())
	}
}
