package session

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// picture is what an attack must leave alone: every flow of a host as its data path and its peer see it.
func (h *host) picture() string {
	s := ""
	for k, f := range h.flows {
		s += fmt.Sprint(k, f.state, f.Local, f.Peer, f.epoch, f.seen, f.peerSeen, f.chain, f.nonce)
	}
	return s + fmt.Sprint(len(h.ended), len(h.bySocket), h.adopted, h.resets)
}

// expectNothing delivers the message as if it came from there and wants no flow changed, no state made,
// and something counted. Answers may be sent: they go to the owner of the address, not to the attacker.
func (w *world) expectNothing(t fatal, what string, h *host, d datagram) {
	before, counted := h.picture(), maps.Clone(h.counters)
	m, err := wire.Parse(d.bytes)
	if err != nil {
		return // refused by the parser, which the daemon counts
	}
	h.Handle(w.now, d.from, d.to, m)
	changes, _ := h.Drain()
	if after := h.picture(); after != before || len(changes) > 0 {
		t.Fatalf("%s changed host %d: %v\nbefore %s\nafter  %s", what, h.n, changes, before, after)
	}
	if maps.Equal(counted, h.counters) {
		t.Fatalf("%s was not counted: %v", what, h.counters)
	}
}

// seen is a world in which both ends have moved, with all that an eavesdropper on the path saw.
func seen(t fatal) (w *world, k Key, log []datagram) {
	w, k = newFailover(t)
	w.tap = func(d datagram) { log = append(log, d) }
	for range 2 {
		w.move(w.hosts[0])
		w.heal()
		w.move(w.hosts[1])
		w.heal()
	}
	w.tap = nil
	return w, k, log
}

// forgeries are what somebody on the path who knows every socketID can make of a message: it says what he
// likes and is signed with his own key, for a locator that he owns himself.
func forgeries(m wire.Message, thief *Keys, place sid.Locator) map[string]wire.Message {
	all := map[string]wire.Message{}
	switch m := m.(type) {
	case wire.Renegotiate:
		m.Claims = append([]wire.Claim(nil), m.Claims...)
		for i := range m.Claims {
			m.Claims[i].Epoch += 7
			m.Claims[i].Chain = append([]sid.SocketID{m.Claims[i].Socket}, m.Claims[i].Chain...)
			m.Claims[i].Socket = sid.NewSocketID(uint64(0xbad + i))
		}
		all["altered, old signature"] = m
		m.Auth = wire.Auth{}
		all["unsigned"] = m
		m.Locator = place
		all["signed by another host"] = thief.Sign(m, place, m.Old)
		m.Old = place
		all["from elsewhere"] = thief.Sign(m, place)
	case wire.FlowFail:
		m.Reason = wire.HostGone
		all["altered, old signature"] = m
		m.Auth = wire.Auth{}
		all["unsigned"] = m
		all["signed by another host"] = thief.Sign(m, place)
	}
	return all
}

func TestOnPathForgeriesChangeNothing(t *testing.T) {
	safety.Test(t, safety.Door)
	w, _, log := seen(t)
	b := w.hosts[1].flows[Key{w.hosts[1].key(t).Stable, Server}]
	log = append(log, datagram{b.Peer.IP(), b.Local.IP(), 0, wire.FlowFail{Locator: b.Peer.Locator, Reason: wire.ProcessDied,
		Flows: []wire.Failed{{Stable: b.Stable, Epoch: b.epoch, Socket: b.Local.Socket, Quote: b.Peer.Socket}}}.Append(nil)})
	tried := 0
	for _, d := range log {
		m, err := wire.Parse(d.bytes)
		if err != nil {
			t.Fatal(err)
		}
		for what, forged := range forgeries(m, certified(9), locator(9, 0)) {
			tried++
			d.bytes = forged.Append(nil)
			for _, h := range w.hosts[:2] {
				w.expectNothing(t, fmt.Sprintf("%v, %s", m.Type(), what), h, d)
			}
		}
	}
	if tried < 12 {
		t.Errorf("only %d forgeries were tried", tried)
	}
}

// key is the only flow's.
func (h *host) key(t fatal) Key {
	for k := range h.flows {
		return k
	}
	t.Fatalf("host %d holds no flow", h.n)
	return Key{}
}

// Everything that was ever said, said again: what is old is recognized, what is current is known already.
func TestReplaysChangeNothing(t *testing.T) {
	w, k, log := seen(t)
	for _, d := range log {
		for _, h := range w.hosts[:2] {
			before := h.picture()
			m, _ := wire.Parse(d.bytes)
			h.Handle(w.now, d.from, d.to, m)
			if changes, _ := h.Drain(); h.picture() != before || len(changes) > 0 {
				t.Errorf("a replayed %v changed host %d: %v %s", m.Type(), h.n, changes, w.describe())
			}
		}
	}
	w.believe(k, w.hosts[0], w.hosts[1])
}

// Off the path nobody knows a socketID, in an open network as little as in one with keys.
func TestOffPathGuessesChangeNothing(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		k := w.connect(w.hosts[0], w.hosts[1], Flow{})
		w.move(w.hosts[0])
		w.heal()
		b := w.hosts[1].flows[Key{k.Stable, Server}]
		guess := func(label string) sid.SocketID { return sid.NewSocketID(rapid.Uint64().Draw(t, label)) }
		place := locator(9, 0)
		claim := wire.Claim{Stable: k.Stable, Epoch: rapid.Uint32().Draw(t, "epoch"), Seen: rapid.Uint32Range(0, 1).Draw(t, "seen"),
			Socket: guess("new"), Quote: guess("quote"), Chain: []sid.SocketID{guess("old")}}
		for what, m := range map[string]wire.Message{
			"RSYN": wire.Renegotiate{Kind: wire.TypeRSYN, Locator: place, Old: b.Peer.Locator, Claims: []wire.Claim{claim}},
			"RACK": wire.Renegotiate{Kind: wire.TypeRACK, Locator: place, Old: b.Peer.Locator, Claims: []wire.Claim{claim}},
			"FLOW-FAIL": wire.FlowFail{Locator: b.Peer.Locator, Reason: wire.ProcessDied,
				Flows: []wire.Failed{{Stable: k.Stable, Socket: guess("socket"), Quote: guess("peer")}}},
			"PROBE-ACK": wire.ProbeAck{Header: wire.Header{Nonce: rapid.Uint64().Draw(t, "nonce")}},
			"FAIL":      wire.Fail{Reason: wire.HostGone, Quote: make([]byte, wire.MinQuote)},
		} {
			to := b.Local.Locator.Addr(uint64(guess("to")))
			w.expectNothing(t, what, w.hosts[1], datagram{place.Addr(uint64(claim.Socket)), to, 0, m.Append(nil)})
		}
	})
}

// A certificate that has run out, or is not valid yet, moves nothing.
func TestLocatorsThatWereNeverCertifiedMoveNothing(t *testing.T) {
	w, k := newFailover(t)
	keys := w.hosts[0].cfg.Trust.(*Keys)
	w.move(w.hosts[0])
	d := w.pool[0]
	m, _ := wire.Parse(d.bytes)
	place := w.hosts[0].at
	for what, c := range map[string]wire.Certificate{
		"none":           {},
		"expired":        wire.Certify(network, keys.Host.Public().(ed25519.PublicKey), place, 0, w.now.Add(-time.Second).Unix()),
		"not yet valid":  wire.Certify(network, keys.Host.Public().(ed25519.PublicKey), place, w.now.Add(time.Hour).Unix(), 1<<40),
		"of another one": wire.Certify(network, keys.Host.Public().(ed25519.PublicKey), locator(8, 8), 0, 1<<40),
		"self-made":      wire.Certify(keys.Host, keys.Host.Public().(ed25519.PublicKey), place, 0, 1<<40),
	} {
		bad := *keys
		bad.Certificates = maps.Clone(keys.Certificates)
		bad.Certificates[place] = c
		d.bytes = bad.Sign(m, place, m.(wire.Renegotiate).Old).Append(nil)
		w.expectNothing(t, what, w.hosts[1], d)
	}
	w.heal()
	w.believe(k, w.hosts[0], w.hosts[1])
}

// What made a flow at an instance makes it once: not again while it lives, nor when it has moved and ended.
func TestAReplayedResumeMakesNothing(t *testing.T) {
	w, k := newFailover(t)
	var log []datagram
	w.tap = func(d datagram) { log = append(log, d) }
	w.died(k)
	w.heal2()
	w.read(w.hosts[0])
	w.heal()
	w.move(w.hosts[0])
	w.heal()
	h, replayed := w.hosts[2], 0
	for _, ended := range []bool{false, true} {
		if ended {
			h.Close(w.now, Key{k.Stable, Server})
		}
		for _, d := range log {
			m, _ := wire.Parse(d.bytes)
			if r, ok := m.(wire.Resume); ok && r.Claim.Quote != 0 {
				replayed++
				w.expectNothing(t, "a RESUME again", h, d)
			}
		}
	}
	if replayed < 2 || h.adopted != 1 {
		t.Errorf("%d replayed, made %d times, want 1", replayed, h.adopted)
	}
	made := &flow{Flow: Flow{Key: Key{Role: Server}}, transport: wire.Transport{MSS: 1}}
	if New(Config{}).remember(made) < 2*cookieSlot*time.Second {
		t.Error("an offer is good for longer than the end of its flow is remembered")
	}
}
