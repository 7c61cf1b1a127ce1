package session

import (
	"crypto/ed25519"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// ipUDP is what a message has before it on the wire, in bytes.
const ipUDP = 40 + 8

// Off the path nobody has a host say more than he said himself, nor sign anything: the address that he writes is another's.
func TestAnUnknownSendersProbeIsAnsweredWithNoMoreThanItself(t *testing.T) {
	w, k := newFailover(t)
	b := w.hosts[1]
	f := b.flows[Key{k.Stable, Server}]
	victim := locator(9, 0).Addr(1<<63 | 7)
	for what, to := range map[string]Addr{"a flow of somebody else": f.Local, "no flow": {f.Local.Locator, 1<<63 | 99}} {
		for _, nonce := range []uint64{0, 1, 1 << 40} {
			p := wire.Probe{Header: wire.Header{Nonce: nonce}}
			b.Handle(w.now, victim, to.IP(), p)
			_, sent := b.Drain()
			said := 0
			for _, m := range sent {
				said += ipUDP + len(m.Message.Append(nil))
				if _, signed := wire.AuthOf(m.Message); signed {
					t.Errorf("a PROBE of %s: a signed %v on an attacker's word", what, m.Message.Type())
				}
			}
			if asked := ipUDP + len(p.Append(nil)); said > asked {
				t.Errorf("a PROBE of %s, %d bytes: answered with %d to whoever owns the address in it", what, asked, said)
			}
		}
	}
}

// Who is at the address that a PROBE comes from hears that its flow is no more, and nobody else does.
func TestWhoAnswersFromWhereItProbedIsToldOfItsFlow(t *testing.T) {
	w, k := newFailover(t)
	a, b := w.hosts[0], w.hosts[1]
	delete(b.flows, Key{k.Stable, Server}) // it began anew
	for s := range b.bySocket {
		delete(b.bySocket, s)
	}
	a.Suspect(w.now, k)
	w.collect(a)
	w.heal2()
	if len(a.blocked) != 1 {
		t.Fatalf("the client's end was not told: %s", w.describe())
	}
}

// A host that asks back is not asked back in turn: two that do not know each other's flow would never end.
func TestTwoHostsThatDoNotKnowTheFlowEndTheirTalk(t *testing.T) {
	w := newWorld(t, 2)
	from, to := Addr{w.hosts[0].at, 1<<63 | 5}, Addr{w.hosts[1].at, 1<<63 | 6}
	w.pool = append(w.pool, datagram{from.IP(), to.IP(), 0, wire.Probe{}.Append(nil)})
	for range 10 {
		for _, d := range slices.Clone(w.pool) {
			w.pool = w.pool[1:]
			w.deliver(d)
		}
	}
	if len(w.pool) > 0 || w.sent > 2 {
		t.Errorf("%d messages were sent, %d are under way", w.sent, len(w.pool))
	}
}

// An answer that nobody was asked for, with a guessed nonce or from another address, has nothing said.
func TestAnAnswerToAnotherQuestionSaysNothing(t *testing.T) {
	w, k := newFailover(t)
	b := w.hosts[1]
	f := b.flows[Key{k.Stable, Server}]
	asker, other := locator(9, 0).Addr(1<<63|7), locator(8, 0).Addr(1<<63|7)
	b.Handle(w.now, asker, f.Local.IP(), wire.Probe{})
	_, sent := b.Drain()
	if len(sent) != 1 || sent[0].Message.Type() != wire.TypeProbe {
		t.Fatalf("asked back: %v", sent)
	}
	question := wire.ProbeAck(sent[0].Message.(wire.Probe))
	guess := question
	guess.Nonce++
	for what, d := range map[string]struct {
		from sid.Locator
		m    wire.ProbeAck
	}{"a guess": {sid.LocatorOf(asker), guess}, "from elsewhere": {sid.LocatorOf(other), question}} {
		b.Handle(w.now, d.from.Addr(1<<63|7), f.Local.IP(), d.m)
		if _, said := b.Drain(); len(said) > 0 {
			t.Errorf("%s: said %v", what, said)
		}
	}
	b.Handle(w.now, asker, f.Local.IP(), question)
	if _, said := b.Drain(); len(said) != 1 || said[0].Message.Type() != wire.TypeFlowFail {
		t.Errorf("whoever is at the address it asked from hears %v, want FLOW-FAIL", said)
	}
}

// A member that was given the locator at which a client's flow began, after the client had moved on, does not become the
// flow's client by a RESUME: it has another key than the peer that moved.
func TestAResumeOfAnothersFlowIsRefused(t *testing.T) {
	safety.Test(t, safety.Door)
	w, k := newFailover(t)
	a, b := w.hosts[0], w.hosts[1]
	b.SetCapable(web, true)
	w.move(a)
	w.heal()
	w.believe(k, a, b)
	thief := certified(9)
	first := AddrOf(k.Stable).Locator
	thief.Certificates[first] = wire.Certify(network, thief.Host.Public().(ed25519.PublicKey), first, 0, 1<<40)
	at := locator(9, 0)
	m := wire.Resume{Locator: at, Service: web, Proto: sid.TCP, Transport: wire.Transport{ClientPort: 1, ServerPort: 80, MSS: 1000},
		Claim: wire.Claim{Stable: k.Stable, Epoch: 1 << 20, Socket: 1<<63 | 77}}
	ask := func() (list []Outgoing, changes []Change) {
		parsed, err := wire.Parse(thief.Sign(m, at, first).Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		b.Handle(w.now, at.Addr(uint64(m.Claim.Socket)), b.at.Addr(uint64(web.Suffix)), parsed)
		changes, list = b.Drain()
		return list, changes
	}
	offers, _ := ask()
	for _, o := range offers {
		if r, ok := o.Message.(wire.Renegotiate); ok {
			m.Claim.Quote = r.Claims[0].Socket
		}
	}
	if m.Claim.Quote == 0 {
		t.Fatalf("no offer to confirm: %v", offers)
	}
	before, counted := b.flows[Key{k.Stable, Server}], b.counters["other_key"]
	if _, changes := ask(); len(changes) > 0 || b.flows[Key{k.Stable, Server}] != before {
		t.Errorf("another member took the flow: %v", changes)
	}
	if b.counters["other_key"] == counted {
		t.Errorf("it was not counted: %v", b.counters)
	}
	w.heal()
	w.believe(k, a, b)
}
