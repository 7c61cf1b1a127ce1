package host

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// The table of newWorld has room for 4,096 flows: a peer may have 256 datagram flows, all peers 2,048.

// served is what a service of this host sends to somebody off path.
func served(w *world, p bpftest.Packet) (bpftest.Result, string) { return w.run(false, p.Bytes()) }

func nth(l sid.Locator, i int) netip.Addr { return l.Addr(1<<63 | uint64(i)) }

// TestPingsFillNoTable plays an attacker off path, or any member, who pings a service under ever new addresses: nothing of
// it stands in the table, the half-open connections keep their room, and whoever pings is answered.
func TestPingsFillNoTable(t *testing.T) {
	w := newWorld(t)
	w.send(tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes())
	before, err := w.edge.Counters()
	must(t, err)
	for i := range 9000 { // more than half-open connections have room
		if i == 500 {
			w.tokens(spare, inDebt) // that is what a second gives
		}
		p := echo(webAddr, nth(sid.Locator(uint64(there)+uint64(i%500)), i), 129, 7)
		r, err := bpftest.Run(w.edge.programs[ethernetLen].EdgeEgress, testUplink, p.Bytes())
		if err != nil || r.Verdict != bpftest.Next {
			t.Fatalf("the answer to ping %d: %v %v", i, r, err)
		}
	}
	if n, _ := w.edge.Count(); n != 0 {
		t.Errorf("%d flows of pings", n)
	}
	after, err := w.edge.Counters()
	must(t, err)
	if n := after["echo_cookie"] - before["echo_cookie"]; n != 8500 {
		t.Errorf("%d of 9,000 answers without an entry, want 8,500", n)
	}
	if _, ok, _ := w.edge.Lookup(tuple(webAddr, 80, peerP, 4000, sid.TCP)); !ok {
		t.Error("a connection that was half open is gone")
	}
}

// TestAPingWithoutAnEntryGoesOn under the socketID that its first answer came from; nobody else's does.
func TestAPingWithoutAnEntryGoesOn(t *testing.T) {
	w := newWorld(t)
	w.tokens(spare, inDebt)
	r, what := served(w, echo(webAddr, peerP, 129, 77))
	id, _ := bpftest.Addrs(r.Packet)
	wantCount(t, "the answer", what, "echo_cookie")
	o, what := w.run(true, echo(peerP, id, 128, 77).Bytes())
	if src, dst := bpftest.Addrs(o.Packet); o.Verdict != bpftest.Next || what != "" || src != peerP || dst != webAddr {
		t.Fatalf("the next ping: %v %s", o, what)
	}
	for name, p := range map[string]bpftest.Packet{
		"another client's": echo(peerQ, id, 128, 77), "another identifier": echo(peerP, id, 128, 78),
		"an answer": echo(peerP, id, 129, 77), "a datagram": udp(peerP, id, 77, 77, "x"),
		"another socketID": echo(peerP, here.Addr(sid.Low(id)^1), 128, 77),
	} {
		if o, _ := w.run(true, p.Bytes()); o.Verdict == bpftest.Next {
			t.Errorf("%s is let in", name)
		}
	}
	w.withdraw(sid.Triple{Service: web, Proto: sid.TCP, Port: 80})
	if o, _ := w.run(true, echo(peerP, id, 128, 77).Bytes()); o.Verdict == bpftest.Next {
		t.Error("a ping is let in to a service that is gone")
	}
}

// TestOnePeerDoesNotFillTheTable plays a member host that sends a datagram from each of its ports, and an attacker who makes
// senders up: connections have room all the while, and the peer's first flows stay.
func TestOnePeerDoesNotFillTheTable(t *testing.T) {
	w := newWorld(t)
	answer := func(to netip.Addr, port uint16) (bpftest.Result, string) {
		return served(w, udp(dnsAddr, to, 53, port, "a"))
	}
	for i := range 300 {
		w.tokens(spare, 500)
		if r, what := answer(peerP, uint16(1000+i)); r.Verdict != bpftest.Next {
			t.Fatalf("answer %d: %v %s", i, r, what)
		}
	}
	if n, _ := w.edge.Count(); n != 256 {
		t.Errorf("%d flows of one peer in the table, want 256", n)
	}
	w.tokens(spare, inDebt)
	_, what := answer(peerP, 9999)
	wantCount(t, "one more, when others need the room", what, "drop_peer_full")
	if r, what := answer(peerQ, 1); r.Verdict != bpftest.Next || what != "" {
		t.Errorf("another peer's: %v %s", r, what)
	}
	if r, what := answer(peerP, 1000); r.Verdict != bpftest.Next || what != "" {
		t.Errorf("the peer's first: %v %s", r, what)
	}
	// A flow beyond the share works, where it has its entry.
	id := func(p netip.Addr, port uint16) netip.Addr {
		r, _ := answer(p, port)
		a, _ := bpftest.Addrs(r.Packet)
		return a
	}(peerP, 1299)
	if o, what := w.run(true, udp(peerP, id, 1299, 53, "q").Bytes()); o.Verdict != bpftest.Next {
		t.Errorf("a question of such a flow: %v %s", o, what)
	}
	for i := range 2500 {
		p := udp(dnsAddr, nth(sid.Locator(uint64(there)+uint64(i%300)), i), 53, 5, "a")
		_, err := bpftest.Run(w.edge.programs[ethernetLen].EdgeEgress, testUplink, p.Bytes())
		must(t, err)
	}
	n, _ := w.edge.Count()
	if n != 2048 {
		t.Errorf("%d datagram flows, want 2,048", n)
	}
	r, _ := served(w, tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2))
	r2, _ := bpftest.Addrs(r.Packet)
	if o, what := w.run(true, tcp(peerP, r2, 4000, 80, bpftest.ACK, 2, 10).Bytes()); o.Verdict != bpftest.Next {
		t.Errorf("a connection: %v %s", o, what)
	}
	if f, _ := w.edge.Count(); f != n+1 {
		t.Errorf("%d flows, %d before the connection: it is not in the table", f, n)
	}
}

// TestNoEstablishedConnectionLivesWhereFloodsEvict: where there is no room the client's acknowledgement is not let in.
func TestNoEstablishedConnectionLivesWhereFloodsEvict(t *testing.T) {
	w := newWorld(t)
	r, _ := addrs(w.send(tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes()))
	n := w.edge.peers.at(int(uint16(there)))
	atomic.StoreInt64(n, 3072)
	_, what := w.run(true, tcp(peerP, r, 4000, 80, bpftest.ACK, 2, 10).Bytes())
	wantCount(t, "a peer's connection beyond three quarters of the table", what, "drop_peer_full")
	atomic.StoreInt64(n, 3071)
	if o, what := w.run(true, tcp(peerP, r, 4000, 80, bpftest.ACK, 2, 10).Bytes()); o.Verdict != bpftest.Next || what != "" {
		t.Errorf("when it comes again and there is room: %v %s", o, what)
	}
	if f, ok, _ := w.edge.Lookup(tuple(webAddr, 80, peerP, 4000, sid.TCP)); !ok || f.State != BoundFlow {
		t.Errorf("%+v %v", f, ok)
	}
	left := 0
	must(t, scan(w.edge.maps.EgressHalf, func(*edgeFlowKey, *edgeEgressFlow) bool { left++; return true }))
	if left != 0 || atomic.LoadInt64(n) != 3072 {
		t.Errorf("%d half open, %d counted; want none, and 3,072", left, atomic.LoadInt64(n))
	}
}

// TestAFullTableTakesNoConnection, and lets none live elsewhere.
func TestAFullTableTakesNoConnection(t *testing.T) {
	w := newWorld(t)
	for i := range 4096 {
		key := edgeFlowKey{Proto: 6, Lport: portBytes(uint16(i)), Local: vid.As16(), Remote: webAddr.As16()}
		must(t, w.edge.maps.EgressFlows.Put(&key, &edgeEgressFlow{Role: uint8(Client), Proto: 6}))
	}
	r, _ := addrs(w.send(tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes()))
	o, what := w.run(true, tcp(peerP, r, 4000, 80, bpftest.ACK, 2, 10).Bytes())
	if wantCount(t, "the acknowledgement", what, "drop_full"); o.Verdict != bpftest.Shot {
		t.Errorf("%v", o)
	}
}

// TestFlowsAreTakenOffTheirPeersCount when they end, whoever ends them.
func TestFlowsAreTakenOffTheirPeersCount(t *testing.T) {
	w := newWorld(t)
	counts := func(want, datagrams int64) {
		t.Helper()
		p, all := atomic.LoadInt64(w.edge.peers.at(int(uint16(there)))), atomic.LoadInt64(w.edge.peers.at(allDatagrams))
		if p != want || all != datagrams {
			t.Fatalf("%d flows of the peer and %d datagram flows are counted, want %d and %d", p, all, want, datagrams)
		}
	}
	accepted(t, w)
	w.send(udp(dnsAddr, peerP, 53, 5000, "a").Bytes())
	w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	connect(t, w, 4000, 100)
	counts(2, 2)
	w.steer(Step{Verb: Forget, Flow: tuple(dnsAddr, 0, peerP, 5000, sid.UDP)})
	counts(1, 1)
	must(t, w.edge.Adopt(Adoption{Flow: tuple(webAddr, 80, nth(there, 3), 4001, sid.TCP), Local: Addr{here, 1<<63 | 5},
		Peer: addrOf(nth(there, 3)), Transport: transport4001()}))
	counts(2, 1)
	older(t, w.edge, datagramIdle+time.Second)
	if _, err := w.edge.Sweep(nil); err != nil {
		t.Fatal(err)
	}
	counts(2, 0)
	// What a daemon left wrong that died is put right.
	atomic.StoreInt64(w.edge.peers.at(int(uint16(there))), 77)
	if _, err := w.edge.Sweep(nil); err != nil {
		t.Fatal(err)
	}
	counts(2, 0)
}

func transport4001() wire.Transport {
	t := adoption().Transport
	t.ClientPort = 4001
	return t
}
