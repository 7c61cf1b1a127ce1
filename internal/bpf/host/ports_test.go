package host

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/sid"
)

// One socket asks two ports of a service that are served on different hosts: each answers, and so it stays. The edge
// knows two flows.
func TestEachPortIsAskedWhereItIsServed(t *testing.T) {
	n := newNetwork(t)
	client, one, two := n.host(t, "client", 1, Config{}), n.host(t, "one", 2, Config{}), n.host(t, "two", 3, Config{})
	counters(t, client, one, two)
	c := client.ListenPacket(t, "udp6", "[::]:0")
	for i, h := range []*testHost{one, two} {
		port := uint16(7081 + i)
		n.serve(t, sid.Triple{Service: web, Proto: sid.UDP, Port: port}, h)
		go answerAs(h.ListenPacket(t, "udp6", at(webAddr, port)), h.Name)
	}
	for range 2 {
		for i, h := range []*testHost{one, two} {
			to := netip.AddrPortFrom(webAddr, uint16(7081+i))
			send(t, c, "who", to)
			if got, from := receive(t, c); got != h.Name || from != to {
				t.Errorf("port %d: %q from %v, want the answer of %s", to.Port(), got, from, h.Name)
			}
		}
	}
	seen := map[string]sid.Locator{}
	must(t, client.edge.Flows(func(f Flow) bool { seen[f.Peer.String()] = sid.LocatorOf(f.WirePeer.Addr()); return true }))
	want := map[string]sid.Locator{at(webAddr, 7081): one.locator, at(webAddr, 7082): two.locator}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("flows by port: %v, want %v", seen, want)
	}
}

// The same from a guest, whose server is one too and answers from a port of its own.
func TestAGuestIsAnsweredFromAnotherPort(t *testing.T) {
	n := newNetwork(t)
	a, b := n.host(t, "host-a", 1, Config{}), n.host(t, "host-b", 2, Config{})
	counters(t, a, b)
	client, server := a.guest(t, "client", 1), b.guest(t, "server", 1)
	n.serve(t, dnsUDP, b)
	must(t, b.edge.SetOwners(dnsUDP, []uint16{1}))
	door, room := server.ListenPacket(t, "udp6", at(dnsAddr, 53)), server.ListenPacket(t, "udp6", at(dnsAddr, 0))
	c := client.ListenPacket(t, "udp6", "[::]:0")
	send(t, c, "read", dnsPort)
	_, peer := receive(t, door)
	for range 2 {
		send(t, room, "data", peer)
		got, from := receive(t, c)
		if got != "data" || from.Port() != room.LocalAddr().(*net.UDPAddr).AddrPort().Port() {
			t.Fatalf("%q from %v, want it from the other port, %v", got, from, room.LocalAddr())
		}
		send(t, c, "ack", from)
		if got, at := receive(t, room); got != "ack" || at != peer {
			t.Fatalf("%q from %v, want the same client, %v", got, at, peer)
		}
	}
}

// answerAs says to everybody who it is.
func answerAs(c net.PacketConn, name string) {
	buf := make([]byte, 100)
	for {
		_, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		c.WriteTo([]byte(name), from) // who asked notices
	}
}

// askPort sends a datagram of port 5000 to the service's port and returns as what it left, and where to.
func askPort(t tester, w *world, port uint16) (self, to netip.Addr) {
	t.Helper()
	o := w.send(udp(vid, dnsAddr, 5000, port, "q").Bytes())
	want(t, o, flow.Pass, "")
	return addrs(o)
}

// answered is askPort, and an answer of the peer from the same port.
func answered(t tester, w *world, port uint16, peer netip.Addr) netip.Addr {
	t.Helper()
	p, to := askPort(t, w, port)
	if to != dnsAddr {
		t.Fatalf("port %d: asked %v, want the service: it has a flow", port, to)
	}
	wantAddrs(t, w.arrive(udp(peer, p, port, 5000, "a").Bytes()), dnsAddr, vid)
	return p
}

// leads fails where what is sent to the port does not leave as p to the peer.
func leads(t tester, w *world, port uint16, p, peer netip.Addr) {
	t.Helper()
	if self, to := askPort(t, w, port); self != p || to != peer {
		t.Fatalf("port %d: %v -> %v, want %v -> %v", port, self, to, p, peer)
	}
}

// resolves fails where what is sent to the port does not begin a flow of its own, whose address it returns.
func resolves(t tester, w *world, port uint16, not netip.Addr) netip.Addr {
	t.Helper()
	self, to := askPort(t, w, port)
	if self == not || to != dnsAddr {
		t.Fatalf("port %d: %v -> %v, want another address than %v, to the service", port, self, to, not)
	}
	return self
}

// Several transfers of one socket, each answered from a port of its own, the first answer too, beside a port that another
// host serves.
func TestAnswersFromOtherPortsFit(t *testing.T) {
	w := newWorld(t)
	p, _ := askPort(t, w, 69)
	for _, port := range []uint16{50000, 50001, 69, 50000} {
		wantAddrs(t, w.arrive(udp(peerP, p, port, 5000, "data").Bytes()), dnsAddr, vid)
		leads(t, w, port, p, peerP)
	}
	q := answered(t, w, 70, peerQ)
	wantAddrs(t, w.arrive(udp(peerQ, q, 50002, 5000, "data").Bytes()), dnsAddr, vid)
	for port, to := range map[uint16][2]netip.Addr{69: {p, peerP}, 50000: {p, peerP}, 50001: {p, peerP}, 70: {q, peerQ}, 50002: {q, peerQ}} {
		leads(t, w, port, to[0], to[1])
	}
	f, ok, err := w.edge.Answered(tuple(vid, 5000, dnsAddr, 50002, sid.UDP))
	if err != nil || !ok || f.Peer.Port() != 70 || f.Stable != q {
		t.Errorf("who answered from port 50002: %+v %v %v, want the flow of port 70", f, ok, err)
	}
	if _, ok, err := w.edge.Answered(tuple(vid, 5000, dnsAddr, 50003, sid.UDP)); ok || err != nil {
		t.Errorf("somebody answered from port 50003: %v", err)
	}
}

// A port that is asked while somebody else answers from it: until it has an answer of its own the socket speaks to who has
// spoken to it, as it would to one host with one address; then to who serves it.
func TestAPortsOwnPeerComesFirst(t *testing.T) {
	w := newWorld(t)
	p := answered(t, w, 7081, peerP)
	q := resolves(t, w, 7082, p)
	leads(t, w, 7082, q, dnsAddr) // on its way still
	wantAddrs(t, w.arrive(udp(peerP, p, 7082, 5000, "from the other").Bytes()), dnsAddr, vid)
	leads(t, w, 7082, p, peerP)
	wantAddrs(t, w.arrive(udp(peerQ, q, 7082, 5000, "a").Bytes()), dnsAddr, vid)
	leads(t, w, 7082, q, peerQ)
	wantAddrs(t, w.arrive(udp(peerP, p, 7082, 5000, "from the other").Bytes()), dnsAddr, vid)
	leads(t, w, 7082, q, peerQ)
	leads(t, w, 7081, p, peerP)
}

// What names no port: who is not the peer, a later fragment, an answer to a service whose datagrams are resolved each, and
// another socket's.
func TestOnlyAPeersAnswerNamesAPort(t *testing.T) {
	w := newWorld(t)
	p := answered(t, w, 69, peerP)
	want(t, w.arrive(udp(peerQ, p, 50000, 5000, "x").Bytes()), flow.Drop, "drop_bad_source")
	want(t, w.arrive(udp(peerP, p, 50000, 5001, "x").Bytes()), flow.Drop, "drop_bad_port")
	w.arrive(fragments(udp(peerP, p, 50000, 5000, string(make([]byte, 3000))), 7, 1240)[1])
	resolves(t, w, 50000, p)
	wantAddrs(t, w.arrive(udp(peerP, p, 50001, 5000, "x").Bytes()), dnsAddr, vid)
	if _, to := addrs(w.send(udp(vid, dnsAddr, 5001, 50001, "q").Bytes())); to != dnsAddr {
		t.Errorf("another socket's datagram goes to %v", to)
	}
	if _, to := addrs(w.send(udp(vid, webAddr, 5000, 50001, "q").Bytes())); to != webAddr {
		t.Errorf("a datagram to another service goes to %v", to)
	}
	w.policy(dns, Policy{Datagrams: Unbound})
	q := resolves(t, w, 70, p)
	wantAddrs(t, w.arrive(udp(peerQ, q, 50002, 5000, "x").Bytes()), dnsAddr, vid)
	resolves(t, w, 50002, q)
}

// The server's end of several transfers with one socket, each from a port of its own that nobody has registered: what the
// client writes to them arrives, and nothing that it writes to others.
func TestAServersTransfersShareAFlow(t *testing.T) {
	w := newWorld(t)
	suffix := here.Addr(uint64(dns.Suffix))
	wantAddrs(t, w.arrive(udp(peerQ, suffix, 5000, 53, "q").Bytes()), peerQ, dnsAddr)
	transfers := []uint16{50123, 50124, 50125}
	var r netip.Addr
	for range 2 {
		for _, port := range transfers {
			r, _ = addrs(w.send(udp(dnsAddr, peerQ, port, 5000, "data").Bytes()))
		}
		for _, port := range append(transfers, 53) {
			wantAddrs(t, w.arrive(udp(peerQ, r, 5000, port, "ack").Bytes()), peerQ, dnsAddr)
		}
		want(t, w.arrive(udp(peerQ, r, 5000, 50126, "ack").Bytes()), flow.Drop, "drop_bad_port")
	}
	w.steer(Step{Verb: Forget, Flow: tuple(dnsAddr, 0, peerQ, 5000, sid.UDP)})
	r, _ = addrs(w.send(udp(dnsAddr, peerQ, 53, 5000, "another flow").Bytes()))
	want(t, w.arrive(udp(peerQ, r, 5000, 50123, "ack").Bytes()), flow.Drop, "drop_bad_port")
}

// A peer can answer from ever more ports: it has the places of one socket and service, and pushes out its own.
func TestAnswersTakeThePlacesOfOneSocket(t *testing.T) {
	w := newWorld(t)
	p := answered(t, w, 69, peerP)
	for port := range uint16(1000) {
		w.arrive(udp(peerP, p, 10000+port, 5000, "x").Bytes())
	}
	leads(t, w, 10999, p, peerP)
	leads(t, w, 11000-16, p, peerP)
	resolves(t, w, 11000-17, p)
	entries := 0
	must(t, scan(w.edge.maps.Answers, func(*edgeFlowKey, *edgeAnswerPorts) bool { entries++; return true }))
	if entries != 1 {
		t.Errorf("%d entries for one socket, want 1", entries)
	}
}

// Both ends move: what the socket sends to where its peer answers from goes along, and answers from further ports count.
func TestAnswerPortsMoveWithTheirFlow(t *testing.T) {
	w := newWorld(t)
	p := answered(t, w, 53, peerP)
	wantAddrs(t, w.arrive(udp(peerP, p, 50000, 5000, "x").Bytes()), dnsAddr, vid)
	w.uplink(old, 1400)
	w.steer(Step{Verb: Accept, Flow: dnsFlow, Local: addrOf(p2)})
	w.steer(Step{Verb: Bind, Flow: dnsFlow, Local: addrOf(p2), Peer: addrOf(peerP2)})
	leads(t, w, 50000, p2, peerP2)
	wantAddrs(t, w.arrive(udp(peerP2, p2, 50001, 5000, "x").Bytes()), dnsAddr, vid)
	wantAddrs(t, w.arrive(udp(peerP, p, 50002, 5000, "on its way still").Bytes()), dnsAddr, vid)
	for _, port := range []uint16{53, 50000, 50001, 50002} {
		leads(t, w, port, p2, peerP2)
	}
}

// Where the flow has resolved anew, or ended and begun again, its ports are those of nobody.
func TestPortsEndWithTheirPeer(t *testing.T) {
	w := newWorld(t)
	w.tell(true)
	p := answered(t, w, 53, peerP)
	w.arrive(udp(peerP, p, 50000, 5000, "x").Bytes())
	leads(t, w, 50000, p, peerP)
	w.steer(Step{Verb: Unbind, Flow: dnsFlow, Local: addrOf(p3)})
	wantAddrs(t, w.arrive(udp(peerQ, p3, 53, 5000, "a").Bytes()), dnsAddr, vid)
	resolves(t, w, 50000, p3)
	wantAddrs(t, w.arrive(udp(peerQ, p3, 50001, 5000, "a").Bytes()), dnsAddr, vid)
	leads(t, w, 50001, p3, peerQ)
	w.steer(Step{Verb: Forget, Flow: dnsFlow})
	q := answered(t, w, 53, peerP)
	resolves(t, w, 50001, q)
}

// A socket that is gone leaves a flow that it asked and one that answered: the next one of its port has neither.
func TestAReusedPortHasNoAnswers(t *testing.T) {
	w := newWorld(t)
	p := answered(t, w, 69, peerP)
	q := resolves(t, w, 50000, p)
	wantAddrs(t, w.arrive(udp(peerP, p, 50000, 5000, "x").Bytes()), dnsAddr, vid)
	leads(t, w, 50000, p, peerP)
	older(t, w.edge, 6*time.Second)
	w.idled = 6 * time.Second
	if r := resolves(t, w, 50000, p); r == q {
		t.Error("the next socket goes on with a flow of the one before")
	}
}

// A flow that an edge of before has made has all ports of its service, until its socket ends.
func TestAFlowOfTheEdgeBeforeHasAllPorts(t *testing.T) {
	w := newWorld(t)
	answered(t, w, 53, peerP)
	key := dnsFlow.key()
	var out edgeEgressFlow
	must(t, w.edge.maps.EgressFlows.Lookup(&key, &out))
	must(t, w.edge.maps.EgressFlows.Delete(&key))
	var in edgeIngressFlow
	id := binary.NativeEndian.Uint64(out.Newest[:])
	must(t, w.edge.maps.IngressFlows.Lookup(&id, &in))
	key.Rport = [2]byte{}
	in.Key = key
	must(t, w.edge.maps.IngressFlows.Put(&id, &in))
	must(t, w.edge.maps.EgressFlows.Put(&key, &out))
	p := here.Addr(binary.BigEndian.Uint64(out.Newest[:]))
	both := w.edge.programs[ethernetLen]
	for _, port := range []uint16{53, 50000, 7082} {
		got, err := bpftest.Run(both.EdgeEgress, testUplink, udp(vid, dnsAddr, 5000, port, "q").Bytes())
		must(t, err)
		if src, dst := bpftest.Addrs(got.Packet); src != p || dst != peerP {
			t.Errorf("to port %d: %v -> %v, want %v -> %v", port, src, dst, p, peerP)
		}
		got, err = bpftest.Run(both.EdgeIngress, testUplink, udp(peerP, p, port, 5000, "a").Bytes())
		must(t, err)
		if src, dst := bpftest.Addrs(got.Packet); src != dnsAddr || dst != vid {
			t.Errorf("from port %d: %v -> %v, want it delivered", port, src, dst)
		}
	}
	if n, err := w.edge.Count(); n != 1 || err != nil {
		t.Errorf("%d flows %v, want the one of before", n, err)
	}
}

// The socket is closed when an answer comes from another port: its peer hears that.
func TestErrorsAboutAnswersFromOtherPortsLeave(t *testing.T) {
	w := newWorld(t)
	p := answered(t, w, 69, peerP)
	late := w.arrive(udp(peerP, p, 50000, 5000, "late").Bytes())
	wantAddrs(t, late, dnsAddr, vid)
	wantAddrs(t, w.send(quote(vid, dnsAddr, 1, 4, late.Data).Bytes()), p, peerP)
}

func TestSweepForgetsPortsOfAnswers(t *testing.T) {
	w := newWorld(t)
	p := answered(t, w, 53, peerP)
	w.arrive(udp(peerP, p, 50000, 5000, "x").Bytes())
	for _, port := range []uint16{53, 50123, 50124} { // a server's
		w.send(udp(dnsAddr, peerQ, port, 5000, "data").Bytes())
	}
	for _, c := range []struct {
		idle time.Duration
		left int
	}{{0, 2}, {datagramIdle + time.Second, 0}} {
		older(t, w.edge, c.idle)
		for range formerRounds {
			must(t, second(0, func() error { _, err := w.edge.Sweep(nil); return err }()))
		}
		left := 0
		must(t, scan(w.edge.maps.Answers, func(*edgeFlowKey, *edgeAnswerPorts) bool { left++; return true }))
		if left != c.left {
			t.Errorf("%v later: ports of %d sockets and flows are kept, want %d", c.idle, left, c.left)
		}
	}
}
