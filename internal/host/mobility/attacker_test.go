package mobility

import (
	"crypto/ed25519"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// says has a packet with the message come to the host.
func (h *fakeHost) says(from, to netip.Addr, m wire.Message) {
	p := fakePacket{from, to, m.Append(nil)}
	h.Event(host.Event{Kind: host.Message, Packet: p.packet()})
}

// An attacker is off the path: he knows addresses and no socketID, and makes his keys and certificates himself.
type attacker struct {
	keys *session.Keys
	own  ed25519.PrivateKey // in the place of the network's
}

func newAttacker() *attacker {
	own := ed25519.NewKeyFromSeed(append(make([]byte, 31), 99))
	return &attacker{&session.Keys{Host: own, Certificates: map[sid.Locator]wire.Certificate{}}, own}
}

// anywhere is a locator of the network that he writes as his own, with a certificate.
func (x *attacker) anywhere() sid.Locator {
	l := sid.Locator(0xfd5d000000010000 | uint64(256+rand.IntN(65000)))
	x.certify(l)
	return l
}

func (x *attacker) certify(l sid.Locator) {
	x.keys.Certificates[l] = wire.Certify(x.own, x.own.Public().(ed25519.PublicKey), l, 0, 1<<40)
}

func guess() sid.SocketID { return sid.NewSocketID(rand.Uint64()) }

// claims is an RSYN of as many claims as fit, all of them guessed.
func (x *attacker) claims(at sid.Locator, signed bool) wire.Message {
	m := wire.Renegotiate{Kind: wire.TypeRSYN, Locator: at, Old: at}
	room := wire.Room(1)
	for {
		c := wire.Claim{Stable: at.Addr(uint64(guess())), Epoch: 1, Socket: guess(), Quote: guess()}
		if room -= c.Len(); room < 0 {
			break
		}
		m.Claims = append(m.Claims, c)
	}
	if signed {
		return x.keys.Sign(m, at)
	}
	return m
}

// kinds is one message of each kind that he can make, from the locator.
func (x *attacker) kinds(at sid.Locator) map[string]wire.Message {
	fail := wire.FlowFail{Locator: at, Reason: wire.ProcessDied}
	for range wire.FailRoom(1) {
		fail.Flows = append(fail.Flows, wire.Failed{Stable: at.Addr(uint64(guess())), Socket: guess(), Quote: guess()})
	}
	resume := wire.Resume{Locator: at, Service: webID, Proto: sid.TCP, Claim: wire.Claim{Stable: at.Addr(uint64(guess())), Epoch: 1, Socket: guess()}}
	confirm := resume
	confirm.Claim.Quote = guess()
	return map[string]wire.Message{
		"RSYN": x.claims(at, true), "unsigned RSYN": x.claims(at, false), "FLOW-FAIL": x.keys.Sign(fail, at), "unsigned FLOW-FAIL": fail,
		"RESUME": x.keys.Sign(resume, at), "confirming RESUME": x.keys.Sign(confirm, at),
		"PROBE": wire.Probe{}, "PROBE-ACK": wire.ProbeAck{}, "FAIL": wire.Fail{Reason: wire.HostGone, Quote: make([]byte, wire.MinQuote)},
		"HELLO": wire.Hello{Name: "r1"}, "BOUND": wire.Bound{Socket: guess()},
	}
}

// One message of an attacker costs lookups by index and at most as many checks of signatures as it has signatures. The
// table of flows, which may have hundreds of thousands, is never passed over, nor does the daemon keep anything.
func TestOneMessageOfAnUnknownSenderCostsLookups(t *testing.T) {
	for _, keys := range []bool{true, false} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		if keys {
			n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
		}
		n.connect(a, b, 1000, sid.TCP)
		b.Settle(time.Now())
		x := newAttacker()
		for what, m := range x.kinds(x.anywhere()) {
			b.edge.walks, b.edge.lookups = 0, 0
			checked := b.checked()
			b.says(x.anywhere().Addr(uint64(guess())), placeB.Addr(uint64(guess())), m)
			b.Settle(time.Now())
			if b.edge.walks > 0 {
				t.Errorf("keys %v: %s: the table of flows was walked %d times on an attacker's word", keys, what, b.edge.walks)
			}
			if most := 32; b.edge.lookups > most || keys && b.edge.lookups > fewQuoted+1 {
				t.Errorf("keys %v: %s: %d lookups", keys, what, b.edge.lookups)
			}
			if n := b.checked() - checked; n > 3 {
				t.Errorf("keys %v: %s: %d signatures were checked", keys, what, n)
			}
			if b.engine.Len() > 0 || len(b.held) > 0 || len(b.edge.sessions) > 0 {
				t.Errorf("keys %v: %s: the daemon keeps %d flows, %d held, %d saved", keys, what, b.engine.Len(), len(b.held), len(b.edge.sessions))
			}
		}
	}
}

// checked is how many signatures the host has checked.
func (h *fakeHost) checked() uint64 {
	if h.keys == nil {
		return 0
	}
	return h.keys.Checked()
}

// A flood costs so many checks of signatures and no more, from one address or from all; and a member's flows move
// meanwhile, though nobody has seen a certificate of its new place before.
func TestAFloodOfUnknownSendersIsMetered(t *testing.T) {
	const flood = 20000
	for what, everywhere := range map[string]bool{"one address": false, "all addresses": true} {
		n := newFakeNet(t)
		a, b := n.host(placeA), n.host(placeB)
		n.signs(map[*fakeHost][]sid.Locator{a: {placeA, placeC}, b: {placeB}})
		ct, st := n.connect(a, b, 1000, sid.TCP)
		x := newAttacker()
		at := x.anywhere()
		checked, lookups := b.checked(), b.edge.lookups
		began := time.Now()
		for i := range flood {
			if everywhere {
				at = x.anywhere()
			}
			var m wire.Message
			if m = x.resume(at); i%2 == 0 {
				m = x.oneClaim(at)
			}
			b.says(at.Addr(uint64(guess())), placeB.Addr(uint64(guess())), m)
			if i == flood/2 {
				n.moveTo(a, placeC)
				n.run()
			}
		}
		seconds := int(time.Since(began).Seconds()) + 1
		rate := unknownSenders.each
		if everywhere {
			rate = unknownSenders.all
		}
		// each has two signatures, and an RSYN and its answer of the member's come on top
		if got, most := int(b.checked()-checked), 2*(rate.Burst+seconds*rate.Second)+16; got > most {
			t.Errorf("%s: %d signatures were checked for %d messages of unknown senders, at most %d", what, got, flood, most)
		}
		if got, most := b.edge.lookups-lookups, 2*flood; got > most {
			t.Errorf("%s: %d lookups, at most %d", what, got, most)
		}
		if flood > rate.Burst+seconds*rate.Second && b.counters["metered"] == 0 { // a very busy machine floods no faster
			t.Errorf("%s: what was not looked at was not counted", what)
		}
		n.agree(a, b, ct, st)
	}
}

// oneClaim is an RSYN of one guessed claim. The attacker signs nothing: that takes him longer than it takes us to check.
func (x *attacker) oneClaim(at sid.Locator) wire.Message {
	return x.pretend(wire.Renegotiate{Kind: wire.TypeRSYN, Locator: at, Old: at, Claims: []wire.Claim{{Stable: at.Addr(uint64(guess())), Epoch: 1, Socket: guess(), Quote: guess()}}}, at)
}

func (x *attacker) resume(at sid.Locator) wire.Message {
	return x.pretend(wire.Resume{Locator: at, Service: webID, Proto: sid.TCP, Claim: wire.Claim{Stable: at.Addr(uint64(guess())), Epoch: 1, Socket: guess()}}, at)
}

// pretend adds a certificate and a signature that look right and are not.
func (x *attacker) pretend(m wire.Message, at sid.Locator) wire.Message {
	auth := wire.Auth{Certificates: []wire.Certificate{{Key: wire.Key(x.own.Public().(ed25519.PublicKey)), Locator: at, NotAfter: 1 << 40}}, Signature: make([]byte, ed25519.SignatureSize)}
	switch y := m.(type) {
	case wire.Renegotiate:
		y.Auth = auth
		return y
	case wire.Resume:
		y.Auth = auth
		return y
	}
	return m
}

// Who sees a flow's packets knows its socketIDs: what he sends to one, from an address that is not the peer's, is
// looked up and no more. The daemon takes nothing into its books.
func TestAForeignProbeToAFlowEntersNothing(t *testing.T) {
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
	_, st := n.connect(a, b, 1000, sid.TCP)
	f := b.edge.flows[st]
	x := newAttacker()
	quote := make([]byte, wire.MinQuote)
	src, dst := f.Locator.Addr(uint64(f.ID)).As16(), x.anywhere().Addr(uint64(guess())).As16()
	copy(quote[8:], src[:])
	copy(quote[24:], dst[:])
	for what, m := range map[string]wire.Message{"PROBE": wire.Probe{}, "FAIL that quotes another peer": wire.Fail{Reason: wire.HostGone, Quote: quote}} {
		b.says(x.anywhere().Addr(uint64(guess())), f.Locator.Addr(uint64(f.ID)), m)
		b.Settle(time.Now())
		if b.engine.Len() > 0 || len(b.edge.sessions) > 0 {
			t.Errorf("%s: the daemon keeps %d flows, %d saved", what, b.engine.Len(), len(b.edge.sessions))
		}
	}
	b.says(f.WirePeer.Addr(), f.Locator.Addr(uint64(f.ID)), wire.Probe{Header: wire.Header{Nonce: 5}})
	b.Settle(time.Now())
	if b.engine.Len() > 0 {
		t.Error("the peer's own PROBE takes an answer and nothing more")
	}
	if q := n.queue[len(n.queue)-1]; q.to != f.WirePeer.Addr() || q.payload[1] != byte(wire.TypeProbeAck) {
		t.Errorf("the peer's PROBE was answered with %x to %v", q.payload, q.to)
	}
}

// Without a word of the network whether it has keys, as between a link that comes up and its first HELLO, a host that
// starts again takes no message that moves or ends a flow: an unsigned one would be anybody's.
func TestAHostThatKnowsNoKeyYetBelievesNobody(t *testing.T) {
	safety.Test(t, safety.Door)
	n := newFakeNet(t)
	a, b := n.host(placeA), n.host(placeB)
	_, st := n.connect(a, b, 1000, sid.TCP)
	b.startUntold()
	f := b.edge.flows[st]
	fail := wire.FlowFail{Locator: placeA, Reason: wire.ProcessDied, Flows: []wire.Failed{
		{Stable: f.Stable, Socket: f.ID, Quote: sid.SocketID(sid.Low(f.WirePeer.Addr()))}}}
	b.says(f.WirePeer.Addr(), f.Locator.Addr(uint64(f.ID)), fail)
	b.Settle(time.Now())
	if got := b.edge.last(st); got != 0 {
		t.Errorf("an unsigned FLOW-FAIL: the edge was told to %v", got)
	}
	if b.Counts()["session_not_authentic"] == 0 {
		t.Errorf("it was not counted: %v", b.Counts())
	}
}
