package session

import (
	"bytes"
	"errors"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// A notebook is what a daemon keeps outside of its process: what Touched named is written down again.
type notebook map[Key][]byte

func (n notebook) write(e *Engine) {
	for _, k := range e.Touched() {
		if b := e.Save(k); b != nil {
			n[k] = b
		} else {
			delete(n, k)
		}
	}
}

// restart replaces the host's engine by one that knows what the notebook says.
func (w *world) restart(h *host, n notebook) {
	old := h.Engine
	h.Engine = New(old.cfg)
	for k, b := range n {
		if got, err := h.Load(w.now, b); err != nil || got != k {
			w.t.Fatalf("Load: %v, %v, want %v", got, err, k)
		}
	}
	maps.Copy(h.capable, old.capable)
	w.collect(h)
}

func TestADaemonThatIsKilledGoesOn(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		books := []notebook{{}, {}}
		k := w.connect(w.hosts[0], w.hosts[1], Flow{})
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for i, h := range w.hosts {
				books[i].write(h.Engine)
			}
			switch n := rapid.IntRange(0, 19).Draw(t, "do"); n {
			case 0, 1:
				w.move(w.hosts[n])
			case 2, 3:
				w.restart(w.hosts[n-2], books[n-2])
			default:
				w.chaos(t)
			}
		}
		w.heal()
		w.believe(k, w.hosts[0], w.hosts[1])
		for i, h := range w.hosts {
			books[i].write(h.Engine)
			for k := range h.flows {
				if !bytes.Equal(books[i][k], h.Save(k)) {
					t.Fatalf("host %d changed %v without saying so: %s", i, k, w.describe())
				}
			}
		}
	})
}

func TestFailoverSurvivesTheDaemonsOfBothEnds(t *testing.T) {
	check(t, func(t *rapid.T) {
		w, k := newFailover(t)
		books := []notebook{{}, {}, {}, {}}
		w.died(k)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for i, h := range w.hosts {
				books[i].write(h.Engine)
			}
			if n := rapid.IntRange(0, 15).Draw(t, "do"); n < 4 {
				w.restart(w.hosts[n], books[n])
			} else {
				w.chaos(t)
			}
			w.read(w.hosts[0])
		}
		settleFailover(w)
		holders := 0
		for _, h := range w.hosts {
			for _, f := range h.flows {
				if f.state != Bound {
					t.Fatalf("not settled: %s", w.describe())
				}
				holders++
			}
		}
		if holders != 0 && holders != 2 {
			t.Fatalf("%d ends are left: %s", holders, w.describe())
		}
	})
}

func TestFormerAddressesAreDroppedAfterTheirGrace(t *testing.T) {
	w := newWorld(t, 2)
	k := w.connect(w.hosts[0], w.hosts[1], Flow{})
	w.move(w.hosts[0])
	w.heal()
	w.now = w.now.Add(testTimes.Grace)
	for i, h := range w.hosts {
		h.Expire(w.now)
		changes, _ := h.Drain()
		if len(changes) != 1 || changes[0].Kind != Drop {
			t.Errorf("host %d: %+v, want one drop", i, changes)
		}
	}
	if w.hosts[0].Holds(AddrOf(k.Stable).Locator) {
		t.Error("the flow still holds the place that it left")
	}
}

func TestGoneHostsEndTheFlowsOfTheirClients(t *testing.T) {
	w := newWorld(t, 3)
	tcp := w.connect(w.hosts[0], w.hosts[1], Flow{})
	udp := w.connect(w.hosts[0], w.hosts[1], Flow{Proto: sid.UDP})
	other := w.connect(w.hosts[0], w.hosts[2], Flow{})
	server := Key{w.connect(w.hosts[1], w.hosts[0], Flow{}).Stable, Server}
	w.hosts[0].Lost(w.now, wire.HostGone, func(f Flow) bool { return f.Peer.Locator == w.hosts[1].at })
	w.collect(w.hosts[0])
	if r := w.hosts[0].resets; len(r) != 2 || r[tcp] != wire.HostGone || r[udp] != wire.HostGone {
		t.Errorf("resets: %v", r)
	}
	for _, k := range []Key{other, server} {
		if v, ok := w.hosts[0].View(k); !ok || v.State != Bound {
			t.Errorf("flow %v: %+v", k, v)
		}
	}
}

func FuzzLoad(f *testing.F) {
	w := newWorld(f, 2)
	k := w.connect(w.hosts[0], w.hosts[1], Flow{Service: web})
	f.Add(w.hosts[0].Save(k))
	w.move(w.hosts[0])
	w.move(w.hosts[1])
	f.Add(w.hosts[0].Save(k))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := newWorld(t, 1).hosts[0]
		k, err := h.Load(time.Unix(1e9, 0), b)
		if err != nil {
			if !errors.Is(err, ErrSaved) {
				t.Errorf("%v", err)
			}
			return
		}
		again := newWorld(t, 1).hosts[0]
		if _, err := again.Load(time.Unix(1e9, 0), h.Save(k)); err != nil || !bytes.Equal(again.Save(k), h.Save(k)) {
			t.Errorf("what was loaded is not what is saved: %v", err)
		}
		h.Move(time.Unix(1e9, 0), AddrOf(k.Stable).Locator, 7)
		for range 100 {
			h.Expire(h.Deadline())
			h.Drain()
		}
	})
}
