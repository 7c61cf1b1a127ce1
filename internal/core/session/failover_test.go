package session

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

var (
	network = ed25519.NewKeyFromSeed(make([]byte, 32))
	web     = sid.ServiceID{SS: 1, Suffix: 0x20000}
)

// certified gives a host certificates for its first places.
func certified(host int) *Keys {
	k := &Keys{Host: ed25519.NewKeyFromSeed(append(make([]byte, 31), byte(host+1))), Network: []ed25519.PublicKey{network.Public().(ed25519.PublicKey)},
		Certificates: map[sid.Locator]wire.Certificate{}}
	for place := range 60 {
		l := locator(host, place)
		k.Certificates[l] = wire.Certify(network, k.Host.Public().(ed25519.PublicKey), l, 0, 1<<40)
	}
	return k
}

// newFailover is a client 0 with a flow to the server 1, and two instances that can go on, 2 and 3.
func newFailover(t fatal) (*world, Key) {
	w := newWorld(t, 0)
	for i := range 4 {
		w.add(new(uint64), certified(i))
	}
	k := w.connect(w.hosts[0], w.hosts[1], Flow{Service: web, Continue: true})
	w.hosts[2].SetCapable(web, true)
	w.hosts[3].SetCapable(web, true)
	return w, k
}

// read gives the engine the state of a blocked flow's transport.
func (w *world) read(h *host) {
	for _, k := range h.blocked {
		h.Continue(w.now, k, wire.Transport{ClientPort: 1, ServerPort: 80, SndUna: 7, RcvNxt: 9})
	}
	h.blocked = nil
	w.collect(h)
}

func (w *world) died(k Key) {
	w.hosts[1].Fail(w.now, wire.ProcessDied, Key{k.Stable, Server})
	w.collect(w.hosts[1])
}

func TestAnotherInstanceGoesOn(t *testing.T) {
	w, k := newFailover(t)
	w.died(k)
	w.heal2()
	w.read(w.hosts[0])
	w.heal()
	w.believe(k, w.hosts[0], w.hosts[2])
	if w.hosts[2].adopted != 1 || w.hosts[3].adopted != 0 || len(w.hosts[3].flows) != 0 {
		t.Errorf("made %d and %d times, want 1 and 0: %s", w.hosts[2].adopted, w.hosts[3].adopted, w.describe())
	}
}

func TestFailoverUnderLossAndMovesEndsWithOneInstance(t *testing.T) {
	check(t, func(t *rapid.T) {
		w, k := newFailover(t)
		w.died(k)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 19).Draw(t, "do"); {
			case n == 0:
				w.move(w.hosts[0])
			case n == 1:
				w.move(w.hosts[2])
			default:
				w.chaos(t)
				w.read(w.hosts[0])
			}
		}
		settleFailover(w)
		believers, last := 0, (*host)(nil)
		for _, h := range w.hosts[1:] {
			if _, ok := h.View(Key{k.Stable, Server}); ok {
				believers, last = believers+1, h
			}
		}
		v, ok := w.hosts[0].View(k)
		switch {
		case ok && v.State == Bound && believers == 1:
			w.believe(k, w.hosts[0], last)
		case ok || believers != 0:
			t.Fatalf("%d instances hold the flow, the client %v: %s", believers, ok, w.describe())
		}
	})
}

// settleFailover heals, and lets every server's end ask whether its client is there: its data does.
func settleFailover(w *world) {
	for range 3 {
		for range 200 {
			w.heal2()
			w.read(w.hosts[0])
			w.tick()
		}
		for _, h := range w.hosts {
			for k := range h.flows {
				h.Suspect(w.now, k)
			}
			w.collect(h)
		}
	}
	w.heal()
}

func TestAFloodOfUnresolvedRSYNsLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	w, k := newFailover(t)
	w.died(k)
	w.heal2()
	w.read(w.hosts[0])
	d := w.pool[len(w.pool)-1]
	for range 100 {
		w.deliver(d)
	}
	for _, h := range w.hosts[2:] {
		if len(h.flows)+len(h.ended)+len(h.bySocket)+len(h.timers) != 0 {
			t.Errorf("host %d keeps something: %s", h.n, w.describe())
		}
	}
}

func TestNoContinueWithoutKeysOrCapableInstances(t *testing.T) {
	w := newWorld(t, 1)
	h := w.hosts[0]
	err := h.Add(Flow{Key: Key{Role: Client}, Continue: true})
	if !errors.Is(err, ErrContinue) {
		t.Errorf("Add in an open network = %v", err)
	}
	w, k := newFailover(t)
	w.hosts[2].SetCapable(web, false)
	w.hosts[3].SetCapable(web, false)
	w.died(k)
	settleFailover(w)
	if w.hosts[0].resets[k] != wire.NoInstance {
		t.Errorf("resets: %v", w.hosts[0].resets)
	}
}

// A client that lost its right while its server died is told so, and one that another instance still lets in goes on.
func TestWhoMayNotConnectIsNotTakenOver(t *testing.T) {
	bars := func(sid.ServiceID, sid.Locator) bool { return true }
	w, k := newFailover(t)
	w.hosts[2].cfg.Forbids, w.hosts[3].cfg.Forbids = bars, bars
	w.died(k)
	settleFailover(w)
	if _, there := w.hosts[0].View(k); there || w.hosts[0].resets[k] != wire.Forbidden || w.hosts[2].adopted+w.hosts[3].adopted != 0 {
		t.Errorf("the flow is there: %v; it ended because %v: %s", there, w.hosts[0].resets[k], w.describe())
	}
	w, k = newFailover(t)
	w.hosts[2].cfg.Forbids = bars
	w.died(k)
	settleFailover(w)
	w.believe(k, w.hosts[0], w.hosts[3])
}

// Who refuses is asked again after a pause that grows from milliseconds: routers hear of a death at the same time as
// the client, and choose the dead instance until then. A lost message is repeated later.
func TestThePauseBetweenRoundsOfRefusals(t *testing.T) {
	w, k := newFailover(t)
	for _, h := range w.hosts {
		h.SetCapable(web, false)
	}
	w.died(k)
	w.heal2()
	w.read(w.hosts[0])
	f := w.hosts[0].flows[k]
	start := w.now
	var rounds []time.Duration
	for f.state == Asking {
		i := slices.IndexFunc(w.pool, func(d datagram) bool { return sid.DefaultSpace().Services.Contains(d.to) })
		if i < 0 {
			w.tick()
			continue
		}
		d := w.pool[i]
		if d.retry == 0 {
			rounds = append(rounds, w.now.Sub(start))
		}
		w.pool = nil
		m, err := wire.Parse(d.bytes)
		if err != nil {
			t.Fatal(err)
		}
		w.hosts[2].Handle(w.now, d.from, w.hosts[2].at.Addr(sid.Low(d.to)), m)
		w.collect(w.hosts[2])
		refusal := w.pool[0]
		w.deliver(refusal)
		if f.asked%retries == 0 && d.retry == retries-1 {
			w.deliver(refusal) // a copy of it does not push the next round off
		}
	}
	want := []time.Duration{0, 3, 15, 63, 223, 423}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(rounds, want) || w.hosts[0].resets[k] != wire.NoInstance {
		t.Errorf("rounds at %v, want %v; resets %v", rounds, want, w.hosts[0].resets)
	}
}

func TestForgersChangeNothing(t *testing.T) {
	safety.Test(t, safety.Door)
	w, k := newFailover(t)
	thief := certified(7)
	b := w.hosts[1].flows[Key{k.Stable, Server}]
	c := wire.Claim{Stable: k.Stable, Epoch: 1, Socket: sid.NewSocketID(99), Quote: b.Local.Socket, Chain: []sid.SocketID{b.Peer.Socket}}
	place := locator(7, 0)
	before := *b
	for name, m := range map[string]wire.Message{
		"unsigned":             wire.Renegotiate{Kind: wire.TypeRSYN, Locator: place, Old: before.Peer.Locator, Claims: []wire.Claim{c}},
		"another's locator":    thief.Sign(wire.Renegotiate{Kind: wire.TypeRSYN, Locator: place, Old: before.Peer.Locator, Claims: []wire.Claim{c}}, place),
		"without its old one":  thief.Sign(wire.Renegotiate{Kind: wire.TypeRSYN, Locator: place, Old: place, Claims: []wire.Claim{c}}, place),
		"a FAIL":               thief.Sign(wire.FlowFail{Locator: place, Reason: wire.ProcessDied, Flows: []wire.Failed{{Stable: k.Stable, Socket: b.Local.Socket, Quote: b.Peer.Socket}}}, place),
		"an unresolved RSYN":   thief.Sign(wire.Resume{Locator: place, Claim: c, Service: web}, place),
		"a hint about nothing": wire.Fail{Reason: wire.HostGone, Quote: make([]byte, wire.MinQuote)},
	} {
		w.hosts[1].Handle(w.now, place.Host(), b.Local.IP(), m)
		if b.state != before.state || b.Peer != before.Peer || b.Local != before.Local || b.nonce != 0 {
			t.Errorf("%s changed the flow: %s", name, w.describe())
		}
	}
	if n := len(w.hosts[1].counters); n == 0 {
		t.Error("nothing was counted")
	}
}

func TestSignedMovesOfBothEnds(t *testing.T) {
	w, k := newFailover(t)
	for range 3 {
		w.move(w.hosts[0])
		w.move(w.hosts[1])
	}
	w.heal()
	w.believe(k, w.hosts[0], w.hosts[1])
}

func TestARoutersFailIsConfirmedByProbes(t *testing.T) {
	for _, there := range []bool{true, false} {
		w := newWorld(t, 2)
		k := w.connect(w.hosts[0], w.hosts[1], Flow{})
		udp := w.connect(w.hosts[0], w.hosts[1], Flow{Proto: sid.UDP})
		for key := range w.hosts[0].flows {
			f := w.hosts[0].flows[key]
			quote := make([]byte, wire.MinQuote)
			src, dst := f.Local.IP().As16(), f.Peer.IP().As16()
			copy(quote[8:], src[:])
			copy(quote[24:], dst[:])
			w.hosts[0].Handle(w.now, k.Stable, f.Local.IP(), wire.Fail{Reason: wire.HostGone, Quote: quote})
		}
		w.collect(w.hosts[0])
		start := w.now
		if !there {
			w.owner[w.hosts[1].at] = nil
		}
		w.heal()
		_, alive := w.hosts[0].View(k)
		_, bound := w.hosts[0].View(udp)
		if alive != there || bound != there || w.now.Sub(start) > time.Second {
			t.Errorf("the host is there: %v; the flows live: %v, %v after %v", there, alive, bound, w.now.Sub(start))
		}
		if n := len(w.hosts[0].kicked); there != (n == 2) {
			t.Errorf("the host is there: %v; %d flows were told that the way is open", there, n)
		}
	}
}
