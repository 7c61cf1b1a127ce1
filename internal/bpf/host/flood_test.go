package host

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
)

// The budgets of abi.h, and their rates of meter.h.
const (
	unsolicited = 0
	strays      = 1
	unresolved  = 2
	askedFor    = 3
	ofFlows     = 4
	spare       = 5
)

// tokens sets what is left of a kind's budget. In debt, no second gives so many back.
func (w *world) tokens(kind uint32, n int32) {
	must(w.t, w.edge.maps.Budgets.Put(kind, &edgeMeter{At: ktime.Now(), Tokens: n}))
}

const inDebt = -1 << 30

// greedy takes the credit of a sender's host away for an hour.
func (w *world) greedy(l sid.Locator) {
	must(w.t, w.edge.maps.Credits.Put(uint32(uint16(l)), ktime.Now()+3600e9))
}

// A message of 16 bytes, of a type that the edge hands over whatever is in it, or a PROBE-ACK with a nonce.
func note(src, dst netip.Addr, typ uint8, nonce uint64) bpftest.Packet {
	body := binary.BigEndian.AppendUint64([]byte{1, typ, 0, 16, 0, 0, 0, 0}, nonce)
	return udp(src, dst, sid.Port, sid.Port, string(body))
}

// arrives gives the edge alone a packet and says what it counts.
func (w *world) arrives(p bpftest.Packet) string {
	w.t.Helper()
	w.tell(true)
	_, what := w.run(true, p.Bytes())
	return what
}

func wantCount(t tester, who, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s counts as %q, want %q", who, got, want)
	}
}

// TestAFloodDoesNotKeepAFailoverFromConfirming plays an attacker off path who sends to random socketIDs: as much as they
// are given is used up, and what clients confirm that fail over comes through all the same.
func TestAFloodDoesNotKeepAFailoverFromConfirming(t *testing.T) {
	w := newWorld(t)
	client := addrOf(peerP)
	offered := w.edge.Offered(client, 0x8123456789abcdef)
	if uint32(offered) != 0x89abcdef || !offered.Valid() {
		t.Fatalf("offered %v: the lower half is another one, or it is no socketID", offered)
	}
	w.tokens(unsolicited, inDebt)
	wantCount(t, "an unsolicited message", w.arrives(note(peerQ, here.Addr(1<<63|7), 10, 1)), "drop_metered")
	wantCount(t, "a confirmation", w.arrives(note(peerP, here.Addr(uint64(offered)), 10, 1)), "message")
	wantCount(t, "another client's confirmation", w.arrives(note(peerQ, here.Addr(uint64(offered)), 10, 1)), "drop_metered")
	for bit := range 63 {
		id := uint64(offered) ^ 1<<bit
		wantCount(t, "a guess", w.arrives(note(peerP, here.Addr(id), 10, 1)), "drop_metered")
	}
}

// TestAFailoverOfTenThousandFlowsConfirmsThemAll from one client, whose credit is used up long before.
func TestAFailoverOfTenThousandFlowsConfirmsThemAll(t *testing.T) {
	w := newWorld(t)
	w.greedy(there)
	for i := range 100 { // the last of ten thousand that come at once
		w.tokens(askedFor, 20000-9900)
		client := Addr{other, sid.NewSocketID(uint64(i))}
		id := w.edge.Offered(client, sid.NewSocketID(uint64(i)<<20))
		wantCount(t, "a confirmation", w.arrives(note(client.IP(), here.Addr(uint64(id)), 10, 1)), "message")
		w.drain()
	}
}

// drain reads all events.
func (w *world) drain() {
	for w.edge.Unread() {
		if _, ok := w.event(); !ok {
			return
		}
	}
}

// TestTheHostItselfTakesProbesAndWhatItAsked plays an attacker who floods locator::1.
func TestTheHostItselfTakesProbesAndWhatItAsked(t *testing.T) {
	w := newWorld(t)
	w.tell(true)
	self, router := here.Host(), there.Host()
	for typ := range uint8(16) {
		want := "drop_unasked"
		if typ == 3 {
			want = "probed"
		}
		wantCount(t, "an unsolicited message", w.arrives(note(router, self, typ, 77)), want)
	}
	want(t, w.arrive(note(router, self, 4, 77).Bytes()), 1, "drop_unasked") // the oracle agrees
	nonce := w.edge.ProbeNonce()
	for _, from := range []netip.Addr{there.Host(), other.Host()} { // from where it has moved to, too
		if o := w.arrive(note(from, self, 4, nonce).Bytes()); o.Reason != "message" {
			t.Fatalf("an answer that was asked for: %v %q", o.Verdict, o.Reason)
		}
	}
	wantCount(t, "another nonce", w.arrives(note(router, self, 4, nonce^1<<40)), "drop_unasked")
	wantCount(t, "half a message", w.arrives(udp(router, self, sid.Port, sid.Port, "\x01\x04\x00\x10")), "drop_unasked")
}

// TestOneSenderDoesNotHaveABudgetAlone plays a member host, or an attacker behind one router, who floods: once a quarter
// of the budget is gone he waits for others. While it is there nobody does.
func TestOneSenderDoesNotHaveABudgetAlone(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerQ, 4000, 100)
	offer := func(from netip.Addr) netip.Addr {
		return here.Addr(uint64(w.edge.Offered(addrOf(from), 0x8000000000000005)))
	}
	service := here.Addr(uint64(web.Suffix))
	for _, kind := range []struct {
		name   string
		budget uint32
		rate   int32
		make   func(from netip.Addr) bpftest.Packet
	}{
		{"to a socketID that nobody has", unsolicited, 1000, func(from netip.Addr) bpftest.Packet { return note(from, here.Addr(1<<63|7), 7, 1) }},
		{"to a service", unresolved, 10000, func(from netip.Addr) bpftest.Packet { return note(from, service, 10, 1) }},
		{"that confirms", askedFor, 20000, func(from netip.Addr) bpftest.Packet { return note(from, offer(from), 10, 1) }},
		{"to a flow", ofFlows, 20000, func(from netip.Addr) bpftest.Packet { return note(from, p, 7, 1) }},
	} {
		must(t, w.edge.maps.Credits.Put(uint32(uint16(there)), uint64(0)))
		w.greedy(other)
		w.tokens(kind.budget, kind.rate)
		wantCount(t, "the greedy one's message "+kind.name+" while there is plenty", w.arrives(kind.make(peerQ)), "message")
		w.tokens(kind.budget, kind.rate/4)
		wantCount(t, "the greedy one's message "+kind.name, w.arrives(kind.make(peerQ)), "drop_metered_source")
		wantCount(t, "another's message "+kind.name, w.arrives(kind.make(peerP)), "message")
		w.tokens(kind.budget, inDebt)
		wantCount(t, "a message "+kind.name+" when none is left", w.arrives(kind.make(peerP)), "drop_metered")
		w.drain()
	}
}

// A credit is for a second's budget at once; who had it waits for an eighth.
func TestACreditIsUsedUp(t *testing.T) {
	w := newWorld(t)
	to := here.Addr(1<<63 | 7)
	refused := ""
	for range 4000 {
		w.tokens(unsolicited, 500) // scarce
		if refused = w.arrives(note(peerP, to, 7, 1)); refused != "message" {
			break
		}
		w.drain()
	}
	wantCount(t, "after many messages another", refused, "drop_metered_source")
	var until uint64
	must(t, w.edge.maps.Credits.Lookup(uint32(uint16(there)), &until))
	if ahead := int64(until - ktime.Now()); ahead < 7e9 || ahead > 8.1e9 {
		t.Errorf("the sender has spent %d ns ahead, want about 8 s", ahead)
	}
	w.tokens(unsolicited, 500)
	wantCount(t, "another host's message", w.arrives(note(peerQ, to, 7, 1)), "message")
	// All that is not of the AS is one sender.
	outside := netip.MustParseAddr("2001:db8::1")
	must(t, w.edge.maps.Credits.Put(uint32(0), ktime.Now()+3600e9))
	w.tokens(unsolicited, 500)
	wantCount(t, "a message from outside", w.arrives(note(outside, to, 7, 1)), "drop_metered_source")
}

// TestAFullRingIsNoAbsentDaemon plays attackers off path, and a peer, who send faster than the daemon reads: what the edge itself
// has to tell, and what depends on there being a daemon, goes on.
func TestAFullRingIsNoAbsentDaemon(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	bind(t, w, p, peerP, 4000, 100)
	data := w.send(tcp(vid, webAddr, 4000, 80, bpftest.ACK, 101, 901).Bytes()).Data
	big := func(to netip.Addr) bpftest.Packet {
		m := note(peerP, to, 10, 1)
		m.Payload = append(m.Payload, make([]byte, 1200)...)
		return m
	}
	fill := func(kind uint32, rate int32, m bpftest.Packet) {
		t.Helper()
		for i := 0; ; i++ {
			w.tokens(kind, rate)
			if what := w.arrives(m); what == "drop_metered" {
				return
			} else if what != "message" || i > 2000 {
				t.Fatalf("message %d of the flood: %q", i, what)
			}
		}
	}
	fill(unsolicited, 1000, big(here.Addr(1<<63|7)))
	before, err := w.edge.Counters()
	must(t, err)
	w.arrives(tcp(peerQ, here.Addr(1<<63|9), 1, 2, bpftest.ACK, 1, 1))
	after, err := w.edge.Counters()
	must(t, err)
	if after["stray"] != before["stray"] || after["drop_metered"] == before["drop_metered"] {
		t.Errorf("a stray packet moves %v, want it metered", moved(before, after))
	}
	fill(ofFlows, 20000, big(p))
	wantCount(t, "an error that needs a daemon's eye", w.arrives(quote(space.Locator(0x100).Host(), p, 1, 0, data)), "drop_early_error")
	wantCount(t, "the refusal of a program's own connection", w.arrives(quote(space.Locator(0x100).Host(),
		connect(t, w, 4001, 7), 1, 3, w.send(tcp(vid, webAddr, 4001, 80, bpftest.SYN, 7, 0).Bytes()).Data)), "held")
}

// TestADeathWaitsForRoom plays a process with more connections than the ring has room for: none of them is reset because
// the daemon has much to read.
func TestADeathWaitsForRoom(t *testing.T) {
	w := newWorld(t)
	must(t, w.edge.SetService(web, Policy{Continue: true}))
	end := func(port uint16) (bpftest.Result, string) {
		w.t.Helper()
		p := tcp(webAddr, peerP, 80, port, bpftest.RST|bpftest.ACK, 10, 2)
		p.Payload = make([]byte, 1200)
		w.dying = true
		defer func() { w.dying = false }()
		return w.run(false, p.Bytes())
	}
	connected := func(port uint16) {
		r, _ := bpftest.Addrs(first(w.run(false, tcp(webAddr, peerP, 80, port, bpftest.SYN|bpftest.ACK, 9, 2).Bytes())).Packet)
		w.run(true, tcp(peerP, r, port, 80, bpftest.ACK, 2, 10).Bytes())
	}
	port := uint16(4000)
	for ; ; port++ {
		connected(port)
		w.tell(true)
		o, what := end(port)
		if o.Verdict == bpftest.Next {
			t.Fatalf("connection %d is reset, and counts as %q", port-4000, what)
		}
		if what == "untold" || what == "daemon_away" { // both are counted
			break
		}
		if wantCount(t, "a death", what, "died"); port > 5000 {
			t.Fatal("there is room without end")
		}
	}
	untold := func() (list []uint16) {
		must(t, w.edge.Walk(func(f Flow) bool {
			if f.Untold {
				list = append(list, f.Peer.Port())
			}
			return true
		}))
		return list
	}
	if n, err := w.edge.Untold(); len(untold()) != 1 || untold()[0] != port || n != 1 || err != nil {
		t.Errorf("%v, of which %d are counted, %v; want the flow of port %d alone", untold(), n, err, port)
	}
	w.drain()
	w.tell(true)
	if _, what := end(port); what != "died" || len(untold()) != 0 {
		t.Errorf("its peer sends again, and it counts as %q; %v are looked for", what, untold())
	}
	connected(port + 1)
	w.tell(false)
	if o, what := end(port + 1); o.Verdict != bpftest.Next {
		t.Errorf("without a daemon: %v, %q; want the reset to leave", o.Verdict, what)
	}
}

func first(r bpftest.Result, _ string) bpftest.Result { return r }
