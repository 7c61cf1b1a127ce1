package host

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/sid"
)

// crowd makes the edge believe that a flood goes on: no flow that is half open gets an entry.
func (w *world) crowd() {
	now := ktime.Now()
	must(w.t, w.edge.maps.Meters.Put(uint32(3), &edgeMeter{At: now, Empty: uint32(now >> 30)}))
	empty(w.t, w.edge.maps.EgressHalf, new(edgeFlowKey))
}

// run gives a packet to the edge alone: the oracle knows no floods.
func (w *world) run(arrives bool, b []byte) (bpftest.Result, string) {
	w.t.Helper()
	prog := w.edge.programs[ethernetLen].EdgeEgress
	if arrives {
		prog = w.edge.programs[ethernetLen].EdgeIngress
	}
	before, err := w.edge.Counters()
	must(w.t, err)
	mark := uint32(0)
	if w.dying {
		mark = markDying
	}
	r, err := bpftest.RunMarked(prog, testUplink, mark, b)
	must(w.t, err)
	after, err := w.edge.Counters()
	must(w.t, err)
	for _, name := range moved(before, after) {
		return r, name
	}
	return r, ""
}

// baked is docs/protocol.md §3.3, slow and obvious.
func baked(client netip.Addr, tag uint64, seq, isn uint32, server, port uint16) sid.SocketID {
	from := client.As16()
	var m []byte
	m = append(m, from[:]...) // words as they lie in memory
	m = binary.NativeEndian.AppendUint64(m, uint64(swap(seq))<<32|uint64(swap(isn)))
	m = binary.NativeEndian.AppendUint64(m, tag<<32|uint64(swap16(server))<<16|uint64(swap16(port)))
	return sid.SocketID(1<<63 | tag<<51 | sipHash(testKey, m)>>13)
}

// sipHash is SipHash-2-4 of whole words, by the paper.
func sipHash(key [2]uint64, m []byte) uint64 {
	v := [4]uint64{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}
	round := func() {
		v[0], v[2] = v[0]+v[1], v[2]+v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 13)^v[0], bits.RotateLeft64(v[3], 16)^v[2]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2], v[0] = v[2]+v[1], v[0]+v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 17)^v[2], bits.RotateLeft64(v[3], 21)^v[0]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
	length := uint64(len(m)) << 56
	for ; ; m = m[8:] {
		word := length
		if len(m) > 0 {
			word = binary.LittleEndian.Uint64(m)
		}
		v[3] ^= word
		round()
		round()
		v[0] ^= word
		if len(m) == 0 {
			break
		}
	}
	v[2] ^= 0xff
	for range 4 {
		round()
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// The reference vector of eight bytes: key 00..0f, message 00..07.
func TestTheOracleOfCookiesIsSipHash(t *testing.T) {
	if got := sipHash(testKey, []byte{0, 1, 2, 3, 4, 5, 6, 7}); got != 0x93f5f5799a932462 {
		t.Errorf("%#x", got)
	}
}

func swap(v uint32) uint32 { return binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, v)) }
func swap16(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// TestInAFloodNothingIsKeptUntilTheClientSpeaks: the SYN-ACK's socketID says all that is to be known.
func TestInAFloodNothingIsKeptUntilTheClientSpeaks(t *testing.T) {
	w := newWorld(t)
	w.crowd()
	synack := tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 900, 201).Bytes()
	o, what := w.run(false, synack)
	r, to := bpftest.Addrs(o.Packet)
	if o.Verdict != bpftest.Next || what != "cookie" || to != peerP || sid.LocatorOf(r) != here {
		t.Fatalf("the SYN-ACK: %v, %s, %v -> %v", o, what, r, to)
	}
	id := sid.SocketID(sid.Low(r))
	if want := baked(peerP, uint64(id)>>51&0xfff, 201, 900, 80, 4000); id != want {
		t.Errorf("socketID %v, want %v", id, want)
	}
	if o, _ := w.run(false, synack); func() netip.Addr { a, _ := bpftest.Addrs(o.Packet); return a }() != r {
		t.Error("a second SYN-ACK has another socketID")
	}
	if _, ok, _ := w.edge.Lookup(tuple(webAddr, 80, peerP, 4000, sid.TCP)); ok {
		t.Fatal("there is an entry before the client has spoken")
	}
	for name, p := range map[string]bpftest.Packet{
		"another client":         tcp(peerQ, r, 4000, 80, bpftest.ACK, 201, 901),
		"another client's port":  tcp(peerP, r, 4001, 80, bpftest.ACK, 201, 901),
		"another server's port":  tcp(peerP, r, 4000, 81, bpftest.ACK, 201, 901),
		"another sequence":       tcp(peerP, r, 4000, 80, bpftest.ACK, 202, 901),
		"another acknowledgment": tcp(peerP, r, 4000, 80, bpftest.ACK, 201, 902),
		"a SYN":                  tcp(peerP, r, 4000, 80, bpftest.SYN, 201, 901),
		"an RST":                 tcp(peerP, r, 4000, 80, bpftest.RST, 201, 901),
		"a socketID beside":      tcp(peerP, here.Addr(uint64(id)^1), 4000, 80, bpftest.ACK, 201, 901),
		"another tag":            tcp(peerP, here.Addr(uint64(id)^1<<52), 4000, 80, bpftest.ACK, 201, 901),
	} {
		if o, _ := w.run(true, p.Bytes()); o.Verdict == bpftest.Next {
			t.Errorf("%s is let in", name)
		}
	}
	if n, _ := w.edge.Count(); n != 0 {
		t.Fatalf("%d flows of segments that are no client's first", n)
	}
	o, what = w.run(true, tcp(peerP, r, 4000, 80, bpftest.ACK, 201, 901).Bytes())
	src, dst := bpftest.Addrs(o.Packet)
	if o.Verdict != bpftest.Next || what != "cookie_taken" || src != peerP || dst != webAddr {
		t.Fatalf("the client's first segment: %v, %s, %v -> %v", o, what, src, dst)
	}
	f, ok, err := w.edge.Lookup(tuple(webAddr, 80, peerP, 4000, sid.TCP))
	if err != nil || !ok || f.State != BoundFlow || f.Role != Server || f.ID != id || f.Stable != peerP || f.Locator != here {
		t.Fatalf("%+v %v %v", f, ok, err)
	}
	o, what = w.run(false, tcp(webAddr, peerP, 80, 4000, bpftest.ACK, 901, 201).Bytes())
	if src, dst := bpftest.Addrs(o.Packet); src != r || dst != peerP || what != "" {
		t.Errorf("the server's answer left as %v -> %v, %s", src, dst, what)
	}
}

// TestAFloodIsWhatComesFasterThanEntriesLast, and is over when it is.
func TestAFloodIsWhatComesFasterThanEntriesLast(t *testing.T) {
	w := newWorld(t)
	prog := w.edge.programs[ethernetLen].EdgeEgress
	cookies := func() uint64 {
		all, err := w.edge.Counters()
		must(t, err)
		return all["cookie"]
	}
	for i := range 1000 {
		_, err := bpftest.Run(prog, testUplink, tcp(webAddr, there.Addr(1<<63|uint64(i)), 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes())
		must(t, err)
	}
	if n := cookies(); n != 0 {
		t.Fatalf("%d cookies for as many as there is room for", n)
	}
	must(t, w.edge.maps.Meters.Put(uint32(3), &edgeMeter{At: ktime.Now(), Tokens: -1 << 20})) // no second gives so many back
	w.run(false, tcp(webAddr, peerQ, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes())
	if n := cookies(); n != 1 {
		t.Fatalf("%d cookies when there is no room for one more, want 1", n)
	}
	now := ktime.Now()
	must(t, w.edge.maps.Meters.Put(uint32(3), &edgeMeter{At: now - 1e9, Empty: uint32(now>>30) - 76}))
	before := cookies()
	w.run(false, tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 9, 2).Bytes())
	if cookies() != before {
		t.Error("a cookie long after the flood")
	}
}

// TestTwoServicesOfOneTagKeepTheirEntries: a cookie names one service of the host.
func TestTwoServicesOfOneTagKeepTheirEntries(t *testing.T) {
	w := newWorld(t)
	w.crowd()
	w.run(false, tcp(webAddr, peerP, 80, 4000, bpftest.SYN|bpftest.ACK, 900, 201).Bytes())
	var tag uint32
	for i := range uint32(4096) {
		var a [16]byte
		must(t, w.edge.maps.Tags.Lookup(i, &a))
		if netip.AddrFrom16(a) == webAddr {
			tag = i
		}
	}
	must(t, w.edge.maps.Tags.Put(tag, dnsAddr.As16()))
	o, what := w.run(false, tcp(webAddr, peerQ, 80, 4000, bpftest.SYN|bpftest.ACK, 900, 201).Bytes())
	if _, ok, _ := w.edge.Lookup(tuple(webAddr, 80, peerQ, 4000, sid.TCP)); !ok || what != "" || o.Verdict != bpftest.Next {
		t.Errorf("%v, %s: no entry", o, what)
	}
}
