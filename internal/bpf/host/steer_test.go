package host

import (
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/sid"
)

// What the steps do, as packets see it: each goes through the program and the oracle.

func addrOf(a netip.Addr) Addr { return Addr{sid.LocatorOf(a), sid.SocketID(sid.Low(a))} }

func tuple(local netip.Addr, lport uint16, remote netip.Addr, rport uint16, proto sid.Proto) Tuple {
	return Tuple{Local: netip.AddrPortFrom(local, lport), Remote: netip.AddrPortFrom(remote, rport), Proto: proto}
}

var (
	webFlow = tuple(vid, 4000, webAddr, 80, sid.TCP)
	dnsFlow = tuple(vid, 5000, dnsAddr, 53, sid.UDP)
	p2      = old.Addr(0x8000000000000002) // what this host becomes
	p3      = here.Addr(0x8000000000000003)
	peerP2  = other.Addr(0x8000000000000f02) // what its peer becomes
)

// bound is a client's flow between the returned address and peerP.
func bound(t tester, w *world) netip.Addr {
	t.Helper()
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	return p
}

func data(w *world) flow.Output {
	return w.send(tcp(vid, webAddr, 4000, 80, bpftest.ACK, 101, 901).Bytes())
}

func fromPeer(w *world, peer, to netip.Addr) flow.Output {
	return w.arrive(tcp(peer, to, 80, 4000, bpftest.ACK, 901, 101).Bytes())
}

func TestAMoveKeepsWhatIsOnItsWay(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	w.uplink(old, 1300)
	wantAddrs(t, data(w), p, peerP) // not told yet: the peer takes nothing else
	w.steer(Step{Verb: Accept, Flow: webFlow, Local: addrOf(p2)})
	wantAddrs(t, fromPeer(w, peerP, p), webAddr, vid)
	wantAddrs(t, fromPeer(w, peerP, p2), webAddr, vid)
	wantAddrs(t, fromPeer(w, peerP2, p2), webAddr, vid)
	want(t, fromPeer(w, there.Host(), p2), flow.Drop, "drop_bad_source")
	w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(p2), Peer: addrOf(peerP2)})
	wantAddrs(t, data(w), p2, peerP2)
	wantAddrs(t, fromPeer(w, peerP2, p2), webAddr, vid)
	wantAddrs(t, fromPeer(w, peerP, p), webAddr, vid)
	want(t, fromPeer(w, peerP, p2), flow.Drop, "drop_bad_source")
	want(t, fromPeer(w, peerP2, p), flow.Drop, "drop_bad_source")
	w.steer(Step{Verb: Drop, Flow: webFlow, Local: addrOf(p)})
	want(t, fromPeer(w, peerP, p), flow.Drop, "drop_retired")
	if w.steer(Step{Verb: Drop, Flow: webFlow, Local: addrOf(p2)}) {
		t.Error("the socketID under which the flow leaves was dropped")
	}
	f, ok, err := w.edge.Flow(sid.SocketID(sid.Low(p2)))
	if err != nil || !ok || f.Stable != p || f.Locator != old || f.Uplink != testUplink || f.Tuple != webFlow || f.WirePeer.Addr() != peerP2 {
		t.Errorf("%+v %v %v", f, ok, err)
	}
}

func TestAFlowLeavesByItsOwnUplink(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	w.uplinkAt(2, old, 1300)
	w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(p2), Peer: addrOf(peerP)})
	o := data(w)
	want(t, o, flow.Elsewhere, "elsewhere")
	if s, d := addrs(o); s != p2 || d != peerP {
		t.Fatalf("%v -> %v", s, d)
	}
	want(t, w.send(o.Data), flow.Pass, "") // by the program there
	late := fragments(udp(vid, dnsAddr, 5000, 53, string(make([]byte, 2000))), 7, 1240)
	q, _ := addrs(w.send(late[0]))
	w.steer(Step{Verb: Bind, Flow: dnsFlow, Local: Addr{old, sid.SocketID(sid.Low(q))}, Peer: addrOf(peerQ)})
	for _, b := range late {
		o := w.send(b)
		want(t, flow.Output{Verdict: o.Verdict, Reason: o.Reason}, flow.Elsewhere, "elsewhere")
	}
	w.uplinkAt(2, 0, 0) // lost: what still leaves goes by the one at hand
	wantAddrs(t, data(w), p2, peerP)
	w.uplinkAt(2, old, 1300)
	want(t, data(w), flow.Elsewhere, "elsewhere")
	w.uplinkAt(testUplink, 0, 0)
	want(t, data(w), flow.Elsewhere, "elsewhere")
	w.uplinkAt(2, 0, 0)
	want(t, data(w), flow.Drop, "drop_no_uplink")
	w.uplinkAt(testUplink, here, 1400)
	wantAddrs(t, data(w), p2, peerP)
	wantAddrs(t, fromPeer(w, peerP, p2), webAddr, vid)
	wantAddrs(t, fromPeer(w, peerP, p), webAddr, vid)
}

func TestEndsCountUnderEverySocketID(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	w.steer(Step{Verb: Accept, Flow: webFlow, Local: addrOf(p2)})
	w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(p3), Peer: addrOf(peerP)})
	wantAddrs(t, w.arrive(tcp(peerP, p, 80, 4000, bpftest.FIN|bpftest.ACK, 901, 101).Bytes()), webAddr, vid)
	wantAddrs(t, w.send(tcp(vid, webAddr, 4000, 80, bpftest.FIN|bpftest.ACK, 101, 902).Bytes()), p3, peerP)
	f, _, err := w.edge.Lookup(webFlow)
	if err != nil || f.State != Closing {
		t.Errorf("%v %v, want closing", f.State, err)
	}
	c, err := w.edge.Census()
	if n, err2 := w.edge.Count(); err != nil || err2 != nil || c.Flows != 1 || n != 1 {
		t.Errorf("census %d, count %d of a flow with three socketIDs: %v %v", c.Flows, n, err, err2)
	}
	seen := 0
	must(t, w.edge.Flows(func(Flow) bool { seen++; return true }))
	if seen != 1 {
		t.Errorf("visited %d times", seen)
	}
}

func TestConnectingGoesOnElsewhere(t *testing.T) {
	w := newWorld(t)
	w.tell(true)
	p := connect(t, w, 4000, 100)
	w.uplink(old, 1300)
	w.steer(Step{Verb: Retry, Flow: webFlow, Local: addrOf(p2)})
	wantAddrs(t, w.send(tcp(vid, webAddr, 4000, 80, bpftest.SYN, 100, 0).Bytes()), p2, webAddr)
	bind(t, w, p, peerP, 4000, 100) // the first attempt is answered after all, and told of (world.compare)
	wantAddrs(t, data(w), p, peerP)
	want(t, w.arrive(tcp(peerQ, p2, 80, 4000, bpftest.SYN|bpftest.ACK, 7, 101).Bytes()), flow.SendBack, "drop_second_answer")
	late := tcp(there.Addr(uint64(web.Suffix)), p2, 80, 4000, bpftest.RST|bpftest.ACK, 0, 101)
	want(t, w.arrive(late.Bytes()), flow.Drop, "drop_bad_source") // no refusal: the other attempt was answered
	if w.steer(Step{Verb: Retry, Flow: webFlow, Local: addrOf(p3)}) {
		t.Error("a bound flow was retried")
	}
	if f, _, _ := w.edge.Lookup(webFlow); f.Stable != p || f.WirePeer.Addr() != peerP || f.State != BoundFlow {
		t.Errorf("%+v", f)
	}
}

func TestTheRetriedAttemptIsTheStableIdentifier(t *testing.T) {
	w := newWorld(t)
	w.tell(true)
	connect(t, w, 4000, 100)
	w.uplink(old, 1300)
	w.steer(Step{Verb: Retry, Flow: webFlow, Local: addrOf(p2)})
	bind(t, w, p2, peerP, 4000, 100)
	if f, _, _ := w.edge.Lookup(webFlow); f.Stable != p2 || f.Locator != old {
		t.Errorf("%+v", f)
	}
}

func TestABlockedFlowStandsStill(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	w.steer(Step{Verb: Accept, Flow: webFlow, Local: addrOf(p2)})
	w.steer(Step{Verb: Block, Flow: webFlow})
	want(t, data(w), flow.Swallow, "drop_blocked")
	for _, to := range []netip.Addr{p, p2} {
		want(t, fromPeer(w, peerP, to), flow.Drop, "drop_blocked")
	}
	w.tell(true)
	want(t, w.arrive(udp(peerP, p2, sid.Port, sid.Port, "\x01\x05").Bytes()), flow.Tell, "message")
	w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(p3), Peer: addrOf(peerQ)})
	wantAddrs(t, data(w), p3, peerQ)
	wantAddrs(t, fromPeer(w, peerQ, p3), webAddr, vid)
	want(t, fromPeer(w, peerP, p), flow.Drop, "drop_blocked")
}

// Of very many flows that move, each waits until it has; what is said once, and what is not TCP's, is said.
func TestWhatIsYetToMoveIsQuiet(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	q, dns := addrs(w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()))
	w.quiet(here, true)
	wantAddrs(t, data(w), p, peerP) // it is not lost
	w.uplink(old, 1300)
	wantAddrs(t, data(w), p, peerP)
	w.quiet(here, true)
	want(t, data(w), flow.Swallow, "quiet")
	wantAddrs(t, w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()), q, dns)
	w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(p2), Peer: addrOf(peerP2)})
	wantAddrs(t, data(w), p2, peerP2)
	w.uplink(0, 0)
	w.quiet(old, true)
	want(t, data(w), flow.Swallow, "quiet")
	w.uplink(old, 1300) // it is back
	wantAddrs(t, data(w), p2, peerP2)
	w.uplink(here, 1300)
	wantAddrs(t, data(w), p2, peerP2)
	w.quiet(old, true)
	wantAddrs(t, w.send(tcp(vid, webAddr, 4000, 80, bpftest.RST, 101, 0).Bytes()), p2, peerP2)
	want(t, data(w), flow.Swallow, "quiet")
	w.quiet(old, false)
	wantAddrs(t, data(w), p2, peerP2)
}

func TestADatagramFlowResolvesAnew(t *testing.T) {
	w := newWorld(t)
	w.tell(true)
	p, _ := addrs(w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()))
	wantAddrs(t, w.arrive(udp(peerP, p, 53, 5000, "a").Bytes()), dnsAddr, vid)
	w.steer(Step{Verb: Unbind, Flow: dnsFlow, Local: addrOf(p3)})
	wantAddrs(t, w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()), p3, dnsAddr)
	want(t, w.arrive(udp(peerP, p, 53, 5000, "a").Bytes()), flow.Drop, "drop_retired")
	wantAddrs(t, w.arrive(udp(peerQ, p3, 53, 5000, "a").Bytes()), dnsAddr, vid)
	wantAddrs(t, w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()), p3, peerQ)
}

func TestAHalfOpenFlowIsSteeredOutOfTheFlood(t *testing.T) {
	w := newWorld(t)
	r, _ := addrs(w.send(tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes()))
	half := tuple(webAddr, 80, peerP, 4000, sid.TCP)
	w.steer(Step{Verb: Accept, Flow: half, Local: addrOf(p2), Peer: addrOf(peerP)})
	if f, ok, _ := w.edge.Lookup(half); !ok || f.State != HalfOpen {
		t.Fatalf("%+v", f)
	}
	wantAddrs(t, w.arrive(tcp(peerP, p2, 4000, 80, bpftest.ACK, 2, 10).Bytes()), peerP, webAddr)
	f, _, _ := w.edge.Flow(sid.SocketID(sid.Low(r)))
	if f.State != BoundFlow || f.Stable != peerP {
		t.Errorf("%+v", f)
	}
	w.steer(Step{Verb: Forget, Flow: half})
	for _, id := range []netip.Addr{r, p2} {
		want(t, w.arrive(tcp(peerP, id, 4000, 80, bpftest.ACK, 2, 10).Bytes()), flow.SendBack, "drop_no_flow_in")
	}
}

func TestMessagesNeverReachASocket(t *testing.T) {
	w := newWorld(t)
	w.admit(sid.Triple{Service: web, Proto: sid.UDP, Port: sid.Port})
	for _, told := range []bool{false, true} {
		w.tell(told)
		verdict, reason := flow.Drop, "daemon_away"
		if told {
			verdict, reason = flow.Tell, "message"
		}
		for _, to := range []netip.Addr{here.Addr(uint64(web.Suffix)), here.Addr(1<<63 | 99)} {
			want(t, w.arrive(udp(peerP, to, sid.Port, sid.Port, "\x01\x0a").Bytes()), verdict, reason)
		}
		want(t, w.arrive(udp(peerP, here.Host(), sid.Port, sid.Port, "\x01\x0a").Bytes()), flow.Drop, "drop_unasked")
	}
	// To a service that is not here it goes on looking for one that is.
	w.withdraw(sid.Triple{Service: web, Proto: sid.UDP, Port: sid.Port})
	w.withdraw(sid.Triple{Service: web, Proto: sid.TCP, Port: 80})
	again := udp(peerP, here.Addr(uint64(web.Suffix)), sid.Port, sid.Port, "\x01\x0a")
	again.FlowLabel = 1
	want(t, w.arrive(again.Bytes()), flow.SendBack, "bounced")
	again.FlowLabel = 3 // every choice of the routers led here: the client is to hear that
	want(t, w.arrive(again.Bytes()), flow.Tell, "message")
}

func TestTheDaemonsMessagesLeaveAsTheyAre(t *testing.T) {
	w := newWorld(t)
	w.uplinkAt(2, old, 1300)
	for _, to := range []netip.Addr{peerP, webAddr, there.Host()} {
		b := message(p3, to, 2, []byte("claim"))
		o := w.send(b)
		if want(t, o, flow.Pass, ""); string(o.Data) != string(b) {
			t.Fatalf("changed: %x", o.Data)
		}
	}
	want(t, w.send(message(p2, peerP, 0, []byte("claim"))), flow.Elsewhere, "elsewhere")
}

func TestStraysAreTold(t *testing.T) {
	w := newWorld(t)
	w.tell(true)
	want(t, w.arrive(udp(peerP, p2, 53, 5000, "a").Bytes()), flow.Tell, "stray")
	want(t, fromPeer(w, peerP, p2), flow.Tell, "stray")
	want(t, w.arrive(tcp(peerP, p2, 80, 4000, bpftest.SYN|bpftest.ACK, 901, 101).Bytes()), flow.SendBack, "drop_no_flow_in")
	var since uint64
	id := network(sid.Low(p2))
	must(t, w.edge.maps.Strays.Lookup(&id, &since))
	since -= uint64(flow.StrayFor) * 2
	must(t, w.edge.maps.Strays.Put(&id, &since))
	w.idled += 2 * flow.StrayFor
	want(t, fromPeer(w, peerP, p2), flow.SendBack, "drop_no_flow_in")
}

func TestTheDaemonIsNotFlooded(t *testing.T) {
	w := newWorld(t)
	w.tell(true)
	const packets = 3000
	for i := range uint64(packets) {
		if i%100 == 0 {
			w.tell(true) // fresh
		}
		b := message(peerP, here.Addr(1<<63|i), 0, []byte("\x01\x07"))
		if i%2 == 1 {
			b = udp(peerP, here.Addr(1<<63|i), 53, 5000, "a").Bytes()
		}
		_, err := bpftest.Run(w.edge.programs[ethernetLen].EdgeIngress, testUplink, b)
		must(t, err)
	}
	all, err := w.edge.Counters()
	must(t, err)
	metered := all["drop_metered"] + all["drop_metered_source"]
	if told := all["stray"] + all["message"]; told < 1000 || told+metered+all["daemon_away"] != packets {
		t.Errorf("%d of %d told, %d metered, %d lost", told, packets, metered, all["daemon_away"])
	}
}

func TestAChainOfMovesKeepsTheNewest(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	var last netip.Addr
	for i := range uint64(40) {
		last = here.Addr(1<<63 | 100 + i)
		w.steer(Step{Verb: Accept, Flow: webFlow, Local: addrOf(last)})
		w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(last), Peer: addrOf(peerP)})
		wantAddrs(t, data(w), last, peerP)
	}
	want(t, fromPeer(w, peerP, p), flow.Drop, "drop_retired")
	wantAddrs(t, fromPeer(w, peerP, here.Addr(1<<63|100+39-15)), webAddr, vid)
	want(t, fromPeer(w, peerP, here.Addr(1<<63|100+39-16)), flow.Drop, "drop_retired")
	entries := 0
	must(t, scan(w.edge.maps.IngressFlows, func(*uint64, *edgeIngressFlow) bool { entries++; return true }))
	if entries != maxAliases {
		t.Errorf("%d entries, want %d", entries, maxAliases)
	}
	if q := connect(t, w, 4000, 555); q == p { // the port comes back: all are gone
		t.Error("old socketID")
	}
	want(t, fromPeer(w, peerP, last), flow.SendBack, "drop_no_flow_in")
}
