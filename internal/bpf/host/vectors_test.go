package host

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

// Each of these runs through the program and the oracle; what is asserted beyond their agreement is the rule.

func tcp(src, dst netip.Addr, sport, dport uint16, flags uint8, seq, ack uint32) bpftest.Packet {
	return bpftest.Packet{Src: src, Dst: dst, Proto: bpftest.TCP, SPort: sport, DPort: dport, Flags: flags, Seq: seq, Ack: ack, FlowLabel: 0x54321}
}

func udp(src, dst netip.Addr, sport, dport uint16, payload string) bpftest.Packet {
	return bpftest.Packet{Src: src, Dst: dst, Proto: bpftest.UDP, SPort: sport, DPort: dport, Payload: []byte(payload), FlowLabel: 0x54321}
}

func echo(src, dst netip.Addr, typ uint8, id uint16) bpftest.Packet {
	return bpftest.Packet{Src: src, Dst: dst, Proto: bpftest.ICMPv6, Type: typ, Word: uint32(id)<<16 | 1, Payload: []byte("abcdefgh")}
}

// quote is the ICMPv6 error about packet b.
func quote(src, dst netip.Addr, typ, code uint8, b []byte) bpftest.Packet {
	return bpftest.Packet{Src: src, Dst: dst, Proto: bpftest.ICMPv6, Type: typ, Code: code, Payload: b}
}

func want(t tester, o flow.Output, v flow.Verdict, reason string) {
	t.Helper()
	if o.Verdict != v || o.Reason != reason {
		t.Fatalf("got %v %q, want %v %q", o.Verdict, o.Reason, v, reason)
	}
	if o.Data != nil && !bpftest.ChecksumOK(o.Data) {
		t.Fatalf("checksum is wrong: %x", o.Data)
	}
}

func wantAddrs(t tester, o flow.Output, src, dst netip.Addr) {
	t.Helper()
	want(t, o, flow.Pass, "")
	if s, d := addrs(o); s != src || d != dst {
		t.Fatalf("addresses %v -> %v, want %v -> %v", s, d, src, dst)
	}
}

// connect sends a SYN and returns the socketID address that the flow got.
func connect(t tester, w *world, sport uint16, isn uint32) netip.Addr {
	t.Helper()
	o := w.send(tcp(vid, webAddr, sport, 80, bpftest.SYN, isn, 0).Bytes())
	want(t, o, flow.Pass, "")
	src, dst := addrs(o)
	if dst != webAddr || sid.LocatorOf(src) != here || !sid.SocketID(sid.Low(src)).Valid() {
		t.Fatalf("SYN left as %v -> %v, want %v:socketID -> %v", src, dst, here, webAddr)
	}
	if label := binary.BigEndian.Uint32(o.Data) & 0xfffff; label != 0 {
		t.Fatalf("flow label %#x of an unresolved packet, want the retry count 0", label)
	}
	return src
}

// bind answers the SYN as peer and checks what the socket gets.
func bind(t tester, w *world, p, peer netip.Addr, sport uint16, isn uint32) {
	t.Helper()
	o := w.arrive(tcp(peer, p, 80, sport, bpftest.SYN|bpftest.ACK, 900, isn+1).Bytes())
	wantAddrs(t, o, webAddr, vid)
}

func TestNotOursPassesUntouched(t *testing.T) {
	w := newWorld(t)
	a, b := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for _, p := range []bpftest.Packet{tcp(a, b, 1, 2, bpftest.SYN, 1, 0), echo(a, b, 135, 0), udp(here.Host(), there.Host(), 1, 2, "x")} {
		raw := p.Bytes()
		for _, o := range []flow.Output{w.send(raw), w.arrive(raw)} {
			if want(t, o, flow.Pass, ""); string(o.Data) != string(raw) {
				t.Fatalf("changed: %x", o.Data)
			}
		}
	}
}

func TestClientConnectsAndIsBound(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	o := w.send(tcp(vid, webAddr, 4000, 80, bpftest.ACK, 101, 901).Bytes())
	wantAddrs(t, o, p, peerP)
	o = w.arrive(tcp(peerP, p, 80, 4000, bpftest.ACK|bpftest.PSH, 901, 101).Bytes())
	wantAddrs(t, o, webAddr, vid)
	id := sid.SocketID(sid.Low(p))
	f, ok, err := w.edge.Flow(id)
	if err != nil || !ok || f.State != BoundFlow || f.Service != web || f.WirePeer.Addr() != peerP || f.WireLocal.Addr() != p {
		t.Fatalf("flow %v: %+v %v %v", id, f, ok, err)
	}
	// A SYN's copy goes where the flow is bound; a packet to the old locator still arrives.
	wantAddrs(t, w.send(tcp(vid, webAddr, 4000, 80, bpftest.SYN, 100, 0).Bytes()), p, peerP)
	wantAddrs(t, w.arrive(tcp(peerP, old.Addr(uint64(id)), 80, 4000, bpftest.ACK, 901, 101).Bytes()), webAddr, vid)
}

func TestReusedPortBeginsAnotherFlow(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	if q := connect(t, w, 4000, 555); q == p {
		t.Fatal("the new connection has the old socketID")
	}
	o := w.arrive(tcp(peerP, p, 80, 4000, bpftest.ACK, 901, 101).Bytes())
	want(t, o, flow.SendBack, "drop_no_flow_in")
}

func TestRetransmittedSYNKeepsItsSocketID(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	if q, _ := addrs(w.send(tcp(vid, webAddr, 4000, 80, bpftest.SYN, 100, 0).Bytes())); p != q {
		t.Fatalf("socketIDs %v and %v", p, q)
	}
}

// Who was chosen may be cut off while nobody tells the routers: of the SYNs that the kernel sends again each other one asks
// for the next instance. What the daemon asks is none of them, and a new connection begins anew.
func TestEachOtherSYNThatIsSentAgainGoesToTheNextInstance(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	for i, retry := range []uint8{1, 0, 2, 0, 3, 0} {
		o := w.send(tcp(vid, webAddr, 4000, 80, bpftest.SYN, 100, 0).Bytes())
		wantAddrs(t, o, p, webAddr)
		if label := sid.LabelOf(o.Data); label != sid.NewLabel(0, retry) {
			t.Fatalf("label %#x of SYN %d that was sent again, want retry %d and nobody who returned it", label, i+1, retry)
		}
	}
	connect(t, w, 4000, 555)
	for range 60 {
		o := w.send(tcp(vid, webAddr, 4000, 80, bpftest.SYN, 555, 0).Bytes())
		if label := sid.LabelOf(o.Data); label > sid.MaxRetry {
			t.Fatalf("label %#x", label)
		}
	}
}

// A router that knows no way to the instance that was chosen refuses nothing: the daemon asks again, and where it is away
// the kernel does. What the name itself has earned is a refusal.
func TestNoWayToAnInstanceIsNoRefusal(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	router := space.Locator(0x100).Host()
	chosen := tcp(p, there.Addr(uint64(web.Suffix)), 4000, 80, bpftest.SYN, 100, 0).Bytes()
	for _, code := range []uint8{0, 3} {
		want(t, w.arrive(quote(router, p, 1, code, chosen).Bytes()), flow.Drop, "daemon_away")
		want(t, w.arrive(quote(router, p, 1, code, tcp(p, webAddr, 4000, 80, bpftest.SYN, 100, 0).Bytes()).Bytes()), flow.Pass, "daemon_away")
		want(t, w.arrive(quote(there.Host(), p, 1, code, chosen).Bytes()), flow.Pass, "daemon_away") // the instance's host says so
	}
	w.tell(true)
	for _, code := range []uint8{0, 3} {
		want(t, w.arrive(quote(router, p, 1, code, chosen).Bytes()), flow.Tell, "held")
	}
}

func TestTCPWithoutEntryNeverLeaks(t *testing.T) {
	w := newWorld(t)
	want(t, w.send(tcp(vid, webAddr, 4000, 80, bpftest.ACK, 1, 1).Bytes()), flow.Drop, "drop_no_flow_out")
	want(t, w.send(tcp(webAddr, peerP, 80, 4000, bpftest.ACK, 1, 1).Bytes()), flow.Drop, "drop_no_flow_out")
	want(t, w.send(tcp(vid, netip.MustParseAddr("2001:db8::1"), 1, 2, bpftest.SYN, 1, 0).Bytes()), flow.Drop, "drop_leak")
	want(t, w.send(udp(webAddr, netip.MustParseAddr("2001:db8::1"), 1, 2, "x").Bytes()), flow.Drop, "drop_leak")
	w.uplink(0, 0)
	want(t, w.send(tcp(vid, webAddr, 4000, 80, bpftest.SYN, 1, 0).Bytes()), flow.Drop, "drop_no_uplink")
}

func TestSecondAnswerIsReset(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	o := w.arrive(tcp(peerQ, p, 80, 4000, bpftest.SYN|bpftest.ACK, 7, 101).Bytes())
	want(t, o, flow.SendBack, "drop_second_answer")
	if s, d := addrs(o); s != p || d != peerQ || o.Data[40+13] != bpftest.RST {
		t.Fatalf("answer: %x", o.Data)
	}
	want(t, w.arrive(tcp(peerQ, p, 80, 4000, bpftest.ACK, 7, 101).Bytes()), flow.Drop, "drop_bad_source")
}

func TestServerAcceptsOnlyWhatIsRegistered(t *testing.T) {
	w := newWorld(t)
	first := func(s sid.ServiceID, port uint16, retry uint32) flow.Output {
		p := tcp(peerP, here.Addr(uint64(s.Suffix)), 4000, port, bpftest.SYN, 1, 0)
		p.FlowLabel = retry
		return w.arrive(p.Bytes())
	}
	wantAddrs(t, first(web, 80, 0), peerP, webAddr)
	for retry := range uint32(sid.MaxRetry) {
		o := first(web, 22, retry)
		want(t, o, flow.SendBack, "bounced")
		if s, d := addrs(o); s != peerP || d != webAddr || sid.Label(binary.BigEndian.Uint32(o.Data)&0xfffff) != sid.NewLabel(here, uint8(retry)+1) {
			t.Fatalf("bounce: %x", o.Data)
		}
	}
	o := first(web, 22, sid.MaxRetry)
	want(t, o, flow.SendBack, "refused")
	if o.Data[40] != 1 || o.Data[41] != 4 {
		t.Fatalf("refusal: %x", o.Data)
	}
	want(t, first(absent, 80, 0), flow.SendBack, "refused")
	want(t, first(dns, 53, 0), flow.SendBack, "bounced") // its UDP only
	want(t, w.arrive(tcp(there.Host(), here.Addr(uint64(web.Suffix)), 1, 80, bpftest.SYN, 1, 0).Bytes()), flow.Drop, "drop_bad_source")
	want(t, w.arrive(tcp(peerP, webAddr, 1, 80, bpftest.SYN, 1, 0).Bytes()), flow.Drop, "drop_not_resolved")
	w.withdraw(sid.Triple{Service: web, Proto: sid.TCP, Port: 80})
	want(t, first(web, 80, 0), flow.SendBack, "bounced")
}

func TestServerFlow(t *testing.T) {
	w := newWorld(t)
	synack := tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2)
	synack.Options = []byte{2, 4, 0x05, 0xa0, 1, 3, 3, 7} // MSS 1440
	o := w.send(synack.Bytes())
	want(t, o, flow.Pass, "")
	r, d := addrs(o)
	if d != peerP || sid.LocatorOf(r) != here || !sid.SocketID(sid.Low(r)).Valid() {
		t.Fatalf("SYN-ACK left as %v -> %v", r, d)
	}
	if mss := binary.BigEndian.Uint16(o.Data[62:]); mss != 1340 {
		t.Fatalf("MSS %d over an MTU of 1400, want 1340", mss)
	}
	if o := w.send(synack.Bytes()); func() netip.Addr { s, _ := addrs(o); return s }() != r {
		t.Fatal("a second SYN-ACK has another socketID")
	}
	if n, _ := w.edge.Count(); n != 0 {
		t.Fatalf("%d flows before the client has spoken, want 0: a flood would fill the map", n)
	}
	want(t, w.arrive(tcp(peerQ, r, 4000, 80, bpftest.ACK, 2, 10).Bytes()), flow.Drop, "drop_bad_source")
	wantAddrs(t, w.arrive(tcp(peerP, r, 4000, 80, bpftest.ACK, 2, 10).Bytes()), peerP, webAddr)
	if n, _ := w.edge.Count(); n != 1 {
		t.Fatalf("%d flows after the client's ACK, want 1", n)
	}
	wantAddrs(t, w.send(tcp(webAddr, peerP, 80, 4000, bpftest.ACK, 10, 2).Bytes()), r, peerP)
	want(t, w.arrive(tcp(peerP, r, 4000, 22, bpftest.ACK, 2, 10).Bytes()), flow.Drop, "drop_bad_port")
}

func TestListenerGoneRefusesByReset(t *testing.T) {
	w := newWorld(t)
	o := w.send(tcp(webAddr, peerP, 80, 4000, bpftest.RST|bpftest.ACK, 0, 2).Bytes())
	wantAddrs(t, o, here.Addr(uint64(web.Suffix)), peerP)

	p := connect(t, w, 4000, 100)
	o = w.arrive(tcp(there.Addr(uint64(web.Suffix)), p, 80, 4000, bpftest.RST|bpftest.ACK, 0, 101).Bytes())
	want(t, o, flow.Pass, "daemon_away")
	w.tell(true)
	o = w.arrive(tcp(there.Addr(uint64(web.Suffix)), p, 80, 4000, bpftest.RST|bpftest.ACK, 0, 101).Bytes())
	want(t, o, flow.Tell, "held")
}

// accepted is the server's end of a connection from peerP; it returns the socketID address.
func accepted(t tester, w *world) netip.Addr {
	t.Helper()
	wantAddrs(t, w.arrive(tcp(peerP, here.Addr(uint64(web.Suffix)), 4000, 80, bpftest.SYN, 1, 0).Bytes()), peerP, webAddr)
	r, _ := addrs(w.send(tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes()))
	wantAddrs(t, w.arrive(tcp(peerP, r, 4000, 80, bpftest.ACK, 2, 10).Bytes()), peerP, webAddr)
	return r
}

func TestADeadProcessEndsItsConnectionsByReset(t *testing.T) {
	w := newWorld(t)
	accepted(t, w)
	end := tcp(webAddr, peerP, 80, 4000, bpftest.FIN|bpftest.ACK, 10, 2)
	flags := func(o flow.Output) uint8 { return o.Data[40+13] }
	o := w.send(end.Bytes())
	if want(t, o, flow.Pass, ""); flags(o) != bpftest.FIN|bpftest.ACK {
		t.Fatalf("flags %#x of an ordinary close, want them untouched", flags(o))
	}
	w.dying = true
	o = w.send(end.Bytes())
	if want(t, o, flow.Pass, "cut_off"); flags(o) != bpftest.RST|bpftest.ACK || binary.BigEndian.Uint32(o.Data[44:]) != 10 {
		t.Fatalf("flags %#x, want RST and ACK with the FIN's sequence number", flags(o))
	}
	end.Payload = []byte("the last of the answer")
	end.Flags |= bpftest.PSH
	o = w.send(end.Bytes())
	if want(t, o, flow.Pass, "cut_off"); flags(o) != bpftest.ACK {
		t.Fatalf("flags %#x of a FIN with data, want ACK alone: the FIN comes again without data", flags(o))
	}
	o = w.send(tcp(webAddr, peerP, 80, 4000, bpftest.ACK, 10, 2).Bytes())
	if want(t, o, flow.Pass, ""); flags(o) != bpftest.ACK {
		t.Fatalf("flags %#x", flags(o))
	}
}

func TestADeadClientEndsAsKernelsDo(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	w.dying = true
	o := w.send(tcp(vid, webAddr, 4000, 80, bpftest.FIN|bpftest.ACK, 101, 901).Bytes())
	wantAddrs(t, o, p, peerP)
}

func TestDialledPeerFailsLocally(t *testing.T) {
	w := newWorld(t)
	for _, src := range []netip.Addr{here.Host(), vid, webAddr} {
		want(t, w.send(tcp(src, peerP, 80, 4000, bpftest.SYN, 1, 0).Bytes()), flow.Drop, "drop_dialled_peer")
	}
	w.tell(true)
	want(t, w.send(tcp(here.Host(), peerP, 80, 4000, bpftest.SYN, 1, 0).Bytes()), flow.Tell, "drop_dialled_peer")
	want(t, w.send(udp(here.Host(), peerP, sid.Port, sid.Port, "message").Bytes()), flow.Pass, "")
}

func TestRefusalOfConnectingFlow(t *testing.T) {
	w := newWorld(t)
	syn := w.send(tcp(vid, webAddr, 4000, 80, bpftest.SYN, 100, 0).Bytes())
	p, _ := addrs(syn)
	router := space.Locator(0x100).Host()
	for _, told := range []bool{false, true} {
		w.tell(told)
		o := w.arrive(quote(router, p, 1, 3, syn.Data).Bytes())
		if told {
			want(t, o, flow.Tell, "held")
		} else {
			want(t, o, flow.Pass, "daemon_away")
		}
		if s, d := addrs(o); s != router || d != vid {
			t.Fatalf("outer %v -> %v", s, d)
		}
		if s, d := bpftest.Addrs(o.Data[48:]); s != vid || d != webAddr {
			t.Fatalf("inner %v -> %v", s, d)
		}
	}
	want(t, w.arrive(quote(router, p, 1, 3, tcp(peerQ, webAddr, 1, 2, 2, 3, 4).Bytes()).Bytes()), flow.Drop, "drop_unusable_error")
}

// What makes the kernel send into nothing is kept from it, while somebody is there to kick it.
func TestNoRouteToAPeerIsTooEarlyAtFirst(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	data := w.send(tcp(vid, webAddr, 4000, 80, bpftest.ACK, 101, 901).Bytes()).Data
	router := space.Locator(0x100).Host()
	want(t, w.arrive(quote(router, p, 1, 0, data).Bytes()), flow.Pass, "")
	w.tell(true)
	want(t, w.arrive(quote(router, p, 1, 0, data).Bytes()), flow.Drop, "drop_early_error")
	want(t, w.arrive(quote(router, p, 1, 1, data).Bytes()), flow.Pass, "")
	want(t, w.arrive(quote(router, p, 2, 0, data).Bytes()), flow.Pass, "")
	older(t, w.edge, flow.EarlyErrors)
	w.idled = flow.EarlyErrors
	want(t, w.arrive(quote(router, p, 1, 0, data).Bytes()), flow.Pass, "")
	wantAddrs(t, w.arrive(tcp(peerP, p, 80, 4000, bpftest.ACK, 901, 101).Bytes()), webAddr, vid)
	want(t, w.arrive(quote(router, p, 1, 0, data).Bytes()), flow.Drop, "drop_early_error")
}

func TestPacketTooBigReachesTheSocket(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	data := w.send(tcp(vid, webAddr, 4000, 80, bpftest.ACK, 101, 901).Bytes())
	big := quote(space.Locator(0x100).Host(), p, 2, 0, data.Data)
	big.Word = 1300
	o := w.arrive(big.Bytes())
	want(t, o, flow.Pass, "")
	if s, d := bpftest.Addrs(o.Data[48:]); s != vid || d != webAddr {
		t.Fatalf("inner %v -> %v", s, d)
	}
}

func TestErrorsOfLocalSocketsLeaveWithWireAddresses(t *testing.T) {
	w := newWorld(t)
	// A client socket is gone: its peer's datagram is answered by the kernel.
	o := w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	p, _ := addrs(o)
	seen := w.arrive(udp(peerP, p, 53, 5000, "a").Bytes())
	o = w.send(quote(vid, dnsAddr, 1, 4, seen.Data).Bytes())
	wantAddrs(t, o, p, peerP)
	if s, d := bpftest.Addrs(o.Data[48:]); s != peerP || d != p {
		t.Fatalf("inner %v -> %v", s, d)
	}
	// A first datagram met no socket.
	suffix := here.Addr(uint64(dns.Suffix))
	seen = w.arrive(udp(peerQ, suffix, 5000, 53, "q").Bytes())
	o = w.send(quote(dnsAddr, peerQ, 1, 4, seen.Data).Bytes())
	wantAddrs(t, o, suffix, peerQ)
	if s, d := bpftest.Addrs(o.Data[48:]); s != peerQ || d != suffix {
		t.Fatalf("inner %v -> %v", s, d)
	}
}

func TestDatagramsBindByReplyAlsoFromAnotherPort(t *testing.T) {
	w := newWorld(t)
	o := w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	p, d := addrs(o)
	if d != dnsAddr {
		t.Fatalf("first datagram went to %v", d)
	}
	wantAddrs(t, w.arrive(udp(peerP, p, 50123, 5000, "a").Bytes()), dnsAddr, vid)
	wantAddrs(t, w.send(udp(vid, dnsAddr, 5000, 50123, "more").Bytes()), p, peerP)
	want(t, w.arrive(udp(peerQ, p, 53, 5000, "a").Bytes()), flow.Drop, "drop_bad_source")

	// The server's side: asked on 53, answers from 50123, is then written to there.
	suffix := here.Addr(uint64(dns.Suffix))
	wantAddrs(t, w.arrive(udp(peerQ, suffix, 5000, 53, "q").Bytes()), peerQ, dnsAddr)
	o = w.send(udp(dnsAddr, peerQ, 50123, 5000, "a").Bytes())
	r, _ := addrs(o)
	wantAddrs(t, o, r, peerQ)
	wantAddrs(t, w.arrive(udp(peerQ, r, 5000, 50123, "more").Bytes()), peerQ, dnsAddr)
	wantAddrs(t, w.arrive(udp(peerQ, r, 5000, 53, "registered").Bytes()), peerQ, dnsAddr)
	want(t, w.arrive(udp(peerQ, r, 5000, 161, "not").Bytes()), flow.Drop, "drop_bad_port")
	wantAddrs(t, w.send(udp(dnsAddr, peerQ, 50124, 5000, "third port").Bytes()), r, peerQ)
}

func TestUnboundDatagramsAreResolvedEach(t *testing.T) {
	w := newWorld(t)
	w.policy(dns, Policy{Datagrams: Unbound, DSCP: 46})
	o := w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	p, _ := addrs(o)
	if tc := binary.BigEndian.Uint32(o.Data) >> 20 & 0xff; tc != 46<<2 {
		t.Fatalf("traffic class %#x, want DSCP 46", tc)
	}
	wantAddrs(t, w.arrive(udp(peerP, p, 53, 5000, "a").Bytes()), dnsAddr, vid)
	wantAddrs(t, w.arrive(udp(peerQ, p, 53, 5000, "a").Bytes()), dnsAddr, vid)
	wantAddrs(t, w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()), p, dnsAddr)
}

func TestUnsetDatagramsLeaveNoState(t *testing.T) {
	safety.Test(t, safety.Trace)
	w := newWorld(t)
	w.policy(dns, Policy{Datagrams: Unset})
	w.policy(web, Policy{Datagrams: Unset})
	wantAddrs(t, w.send(udp(webAddr, dnsAddr, 53, 53, "q").Bytes()), here.Addr(uint64(web.Suffix)), dnsAddr)
	o := w.arrive(udp(there.Addr(uint64(web.Suffix)), here.Addr(uint64(dns.Suffix)), 53, 53, "q").Bytes())
	wantAddrs(t, o, webAddr, dnsAddr)
	if n, _ := w.edge.Count(); n != 0 {
		t.Fatalf("%d flows, want none", n)
	}
}

func TestEchoIsAFlow(t *testing.T) {
	w := newWorld(t)
	o := w.send(echo(vid, dnsAddr, 128, 77).Bytes())
	p, d := addrs(o)
	wantAddrs(t, o, p, dnsAddr)
	if d != dnsAddr || sid.LocatorOf(p) != here {
		t.Fatalf("ping left as %v -> %v", p, d)
	}
	wantAddrs(t, w.arrive(echo(peerP, p, 129, 77).Bytes()), dnsAddr, vid)
	wantAddrs(t, w.send(echo(vid, dnsAddr, 128, 77).Bytes()), p, peerP)
	want(t, w.arrive(echo(peerP, p, 129, 78).Bytes()), flow.Drop, "drop_bad_port")

	wantAddrs(t, w.arrive(echo(peerQ, here.Addr(uint64(web.Suffix)), 128, 9).Bytes()), peerQ, webAddr)
	o = w.send(echo(webAddr, peerQ, 129, 9).Bytes())
	r, _ := addrs(o)
	wantAddrs(t, w.arrive(echo(peerQ, r, 128, 9).Bytes()), peerQ, webAddr)
}

// fragments cuts a UDP packet into pieces of size bytes (a multiple of eight).
func fragments(p bpftest.Packet, id uint32, size int) (out [][]byte) {
	whole := p.Bytes()
	body := whole[40:]
	for off := 0; off < len(body); off += size {
		end := min(off+size, len(body))
		head := append([]byte(nil), whole[:40]...)
		where := uint16(off)
		if end < len(body) {
			where |= 1
		}
		ext := binary.BigEndian.AppendUint16([]byte{bpftest.UDP, 0}, where)
		ext = binary.BigEndian.AppendUint32(ext, id)
		head[6] = bpftest.Fragment
		binary.BigEndian.PutUint16(head[4:], uint16(8+end-off))
		out = append(out, append(append(head, ext...), body[off:end]...))
	}
	return out
}

// reassemble undoes fragments.
func reassemble(pieces [][]byte) []byte {
	whole := append([]byte(nil), pieces[0][:40]...)
	for _, f := range pieces {
		whole = append(whole, f[48:]...)
	}
	whole[6] = bpftest.UDP
	binary.BigEndian.PutUint16(whole[4:], uint16(len(whole)-40))
	return whole
}

func TestFragmentsFollowTheirFirst(t *testing.T) {
	w := newWorld(t)
	payload := string(make([]byte, 3000))
	var left [][]byte
	for _, f := range fragments(udp(vid, dnsAddr, 5000, 53, payload), 7, 1240) {
		o := w.send(f)
		want(t, o, flow.Pass, "")
		left = append(left, o.Data)
	}
	if !bpftest.ChecksumOK(reassemble(left)) {
		t.Fatal("checksum of the datagram is wrong on the wire")
	}
	p, _ := bpftest.Addrs(left[0])
	var got [][]byte
	for _, f := range fragments(udp(peerP, p, 53, 5000, payload), 8, 1240) {
		o := w.arrive(f)
		wantAddrs(t, o, dnsAddr, vid)
		got = append(got, o.Data)
	}
	if !bpftest.ChecksumOK(reassemble(got)) {
		t.Fatal("checksum of the datagram is wrong at the socket")
	}
	stray := fragments(udp(vid, dnsAddr, 5000, 53, payload), 9, 1240)[1]
	want(t, w.send(stray), flow.Drop, "drop_fragment")
}

func TestProbeIsAnsweredHere(t *testing.T) {
	w := newWorld(t)
	router := space.Locator(0x100).Host()
	probe := string([]byte{1, 3, 0, 16, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	o := w.arrive(udp(router, here.Host(), sid.Port, sid.Port, probe).Bytes())
	want(t, o, flow.SendBack, "probed")
	if s, d := addrs(o); s != here.Host() || d != router || o.Data[49] != 4 || string(o.Data[50:]) != probe[2:] {
		t.Fatalf("answer: %x", o.Data)
	}
	w.tell(true)
	fail := string([]byte{1, 5, 0, 16, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	want(t, w.arrive(udp(router, here.Host(), sid.Port, sid.Port, fail).Bytes()), flow.Drop, "drop_unasked")
	p := connect(t, w, 4000, 1)
	want(t, w.arrive(udp(router, p, sid.Port, sid.Port, fail).Bytes()), flow.Tell, "message")
	want(t, w.arrive(udp(router, here.Addr(1<<63|5), sid.Port, sid.Port, fail).Bytes()), flow.Tell, "message")
}

func TestExtensionHeaders(t *testing.T) {
	w := newWorld(t)
	p := udp(vid, dnsAddr, 5000, 53, "q")
	p.FirstExt, p.Extensions = 0, []byte{60, 0, 1, 4, 0, 0, 0, 0, bpftest.UDP, 0, 1, 4, 0, 0, 0, 0}
	o := w.send(p.Bytes())
	want(t, o, flow.Pass, "")
	if _, d := addrs(o); d != dnsAddr {
		t.Fatalf("to %v", d)
	}
	short := p.Bytes()[:44]
	want(t, w.send(short), flow.Drop, "drop_malformed")
}
