package mobility

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/bpf/kick"
	"scaffold.dev/scaffold/sid"
)

const (
	placeA = sid.Locator(0xfd5d000000010101)
	placeB = sid.Locator(0xfd5d000000010201)
	placeC = sid.Locator(0xfd5d000000010301)
)

// moveTo lets a fake host move all it has.
func (n *fakeNet) moveTo(h *fakeHost, to sid.Locator) {
	from := h.at
	n.at[to], h.at = h, to
	h.Moved(from, to)
}

func TestFlowsOfBothRolesMoveWithTheirHost(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	tcpC, tcpS := n.connect(a, b, 1000, sid.TCP)
	udpC, udpS := n.connect(b, a, 1001, sid.UDP)
	n.moveTo(a, placeC)
	n.run()
	n.agree(a, b, tcpC, tcpS)
	n.agree(b, a, udpC, udpS)
	if f := a.edge.flows[tcpC]; f.Locator != placeC {
		t.Errorf("the client still stands at %v", f.Locator)
	}
	if !a.Holds(placeA) || a.Holds(placeB) {
		t.Error("packets to the place that was left are under way, and to no other")
	}
}

// What very many connections send is kept back until all have moved, or can't.
func TestAGreatMoveIsQuiet(t *testing.T) {
	for _, c := range []struct {
		flows uint32
		quiet bool
	}{{multitude - 1, false}, {multitude, true}} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		ct, st := n.connect(a, b, 1000, sid.TCP)
		a.crowd = c.flows
		n.moveTo(a, placeC)
		if a.edge.quiet[placeA] != c.quiet {
			t.Errorf("%d flows are about to move, and quiet is %v", c.flows, a.edge.quiet)
		}
		n.run()
		n.agree(a, b, ct, st)
		if a.edge.quiet[placeA] {
			t.Error("quiet after the move")
		}
		n.moveTo(a, placeA)
		if n.queue = nil; a.edge.quiet[placeC] != c.quiet {
			t.Errorf("%d flows are about to move back, and quiet is %v", c.flows, a.edge.quiet)
		}
		a.Settle(time.Now())
		a.arrive(time.Now().Add(journeyLimit + time.Second))
		if a.edge.quiet[placeC] {
			t.Error("quiet for as long as the peer says nothing")
		}
	}
}

func TestBothHostsMoveAtOnce(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	ct, st := n.connect(a, b, 1000, sid.TCP)
	n.moveTo(a, placeC)
	n.moveTo(b, placeC+1)
	n.run()
	n.agree(a, b, ct, st)
}

func TestADaemonKilledInTheMiddleOfAMoveGoesOn(t *testing.T) {
	for _, who := range []string{"mover", "peer"} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		ct, st := n.connect(a, b, 1000, sid.TCP)
		n.moveTo(a, placeC)
		a.Settle(time.Now())
		if who == "mover" {
			n.queue = nil // what it said is lost with it
			a.start()
		} else {
			n.deliverOne()
			b.Settle(time.Now())
			n.queue = nil
			b.start()
		}
		for range 3 {
			n.run()
			time.Sleep(25 * time.Millisecond) // retransmissions
		}
		n.run()
		n.agree(a, b, ct, st)
	}
}

// deliverOne hands over the first message alone.
func (n *fakeNet) deliverOne() {
	p := n.queue[0]
	n.queue = n.queue[1:]
	n.at[sid.LocatorOf(p.to)].Event(host.Event{Kind: host.Message, Packet: p.packet()})
}

func TestAMovedFlowThatEndsIsForgotten(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	ct, _ := n.connect(a, b, 1000, sid.TCP)
	n.moveTo(a, placeC)
	n.run()
	delete(a.edge.flows, ct)
	for k, h := range a.held {
		if gone := vanished(a.edge, a.held); len(gone) != 1 || gone[0] != k || h.tuple != ct {
			t.Fatalf("vanished: %v", gone)
		}
		a.forget(a.edge, vanished(a.edge, a.held))
	}
	n.run()
	if a.engine.Len() != 0 || len(a.held) != 0 || len(a.edge.sessions) != 0 {
		t.Errorf("what is left: %d flows, %d held, %d saved", a.engine.Len(), len(a.held), len(a.edge.sessions))
	}
}

// A connection that waits for a doubled timer is kicked, at both ends, when the peer answers again.
func TestAWayThatIsOpenAgainIsNotWaitedFor(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	ct, st := n.connect(a, b, 1000, sid.TCP)
	for _, h := range []*fakeHost{a, b} {
		h.where.at = h.at
	}
	a.watch().Silent(0, []kick.Socket{{Tuple: kick.Tuple{Local: ct.Local, Peer: ct.Remote}, Backoff: suspectAfter}})
	b.watch().Silent(0, []kick.Socket{{Tuple: kick.Tuple{Local: st.Local, Peer: st.Remote}, Backoff: suspectAfter}})
	n.run()
	for h, tuple := range map[*fakeHost]host.Tuple{a: ct, b: st} {
		if !h.tcp.kicked[tuple] {
			t.Errorf("%v waits for its timer", tuple)
		}
	}
}

func TestAServerThatShedsTellsItsClients(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	tcpC, tcpS := n.connect(a, b, 1000, sid.TCP)
	udpC, _ := n.connect(a, b, 1001, sid.UDP)
	if shed := b.Shed(3, func(f host.Flow) bool { return f.Service == webID }); shed != 2 {
		t.Errorf("shed %d flows, want 2", shed)
	}
	n.run()
	if a.edge.flows[tcpC] != nil || a.edge.flows[udpC] == nil {
		t.Error("the TCP flow ends, the datagram flow resolves anew")
	}
	if b.edge.flows[tcpS] == nil {
		t.Error("the server's end is silent at first: an RST would outrun the FAIL")
	}
	b.Settle(time.Now().Add(quietFor))
	if b.edge.flows[tcpS] != nil {
		t.Error("then it is forgotten")
	}
}

// TestTenThousandFlowsMove prints how long the two daemons take, with signatures; it asserts nothing of it.
func TestTenThousandFlowsMove(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	n.signs(map[*fakeHost][]sid.Locator{a: {placeA, placeC}, b: {placeB}})
	type pair struct{ c, s host.Tuple }
	var all []pair
	for i := range 10000 {
		c, s := n.connect(a, b, uint16(i+1), sid.TCP)
		all = append(all, pair{c, s})
	}
	began := time.Now()
	n.moveTo(a, placeC)
	n.run()
	t.Logf("%d flows moved in %v of both daemons' time", len(all), time.Since(began))
	for _, p := range all {
		n.agree(a, b, p.c, p.s)
	}
}
