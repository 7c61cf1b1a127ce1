package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/wire"
)

func TestMovesOfBothEndsLoseNoFlow(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		k := w.connect(w.hosts[0], w.hosts[1], Flow{})
		back := w.connect(w.hosts[1], w.hosts[0], Flow{})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if n := rapid.IntRange(0, 9).Draw(t, "do"); n < 2 {
				w.move(w.hosts[n])
			} else {
				w.chaos(t)
			}
		}
		w.heal()
		w.believe(k, w.hosts[0], w.hosts[1])
		w.believe(back, w.hosts[1], w.hosts[0])
	})
}

func TestThreeHostsMove(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 3)
		a, b, c := w.hosts[0], w.hosts[1], w.hosts[2]
		keys := []Key{w.connect(a, b, Flow{}), w.connect(b, c, Flow{}), w.connect(c, a, Flow{})}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if n := rapid.IntRange(0, 14).Draw(t, "do"); n < 3 {
				w.move(w.hosts[n])
			} else {
				w.chaos(t)
			}
		}
		w.heal()
		w.believe(keys[0], a, b)
		w.believe(keys[1], b, c)
		w.believe(keys[2], c, a)
	})
}

func TestOneCopyKeepsTheFlow(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		k := w.connect(w.hosts[0], w.hosts[1], Flow{})
		copies := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 9).Draw(t, "do"); {
			case n < 2:
				w.move(w.hosts[n])
			case n == 2 && copies < 2:
				if _, ok := w.hosts[0].View(k); ok {
					copies++
					w.copyOf(w.hosts[0])
				}
			case n == 3 && copies > 0:
				w.move(w.hosts[2])
			default:
				w.chaos(t)
			}
		}
		w.heal()
		var left []*host
		for _, h := range w.hosts {
			h.Suspect(w.now, k) // who did not move since asks when its data meets silence
			w.collect(h)
		}
		w.heal()
		for _, h := range w.hosts {
			if _, ok := h.View(k); ok {
				left = append(left, h)
			}
		}
		if len(left) != 1 {
			t.Fatalf("%d copies of the client's end live, want one:%s", len(left), w.describe())
		}
		w.believe(k, left[0], w.hosts[1])
	})
}

func TestCloseRacesMoves(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		k := w.connect(w.hosts[0], w.hosts[1], Flow{})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch n := rapid.IntRange(0, 9).Draw(t, "do"); {
			case n < 2:
				w.move(w.hosts[n])
			case n == 2:
				w.hosts[0].Close(w.now, k)
			default:
				w.chaos(t)
			}
		}
		w.hosts[0].Close(w.now, k)
		w.heal()
		w.hosts[1].Suspect(w.now, Key{k.Stable, Server})
		w.collect(w.hosts[1])
		w.heal()
		if v, ok := w.hosts[1].View(Key{k.Stable, Server}); ok {
			t.Fatalf("the server's end is %v after the client's closed: %s", v.State, w.describe())
		}
	})
}

func TestAMoveIsThreeMessagesForAllFlows(t *testing.T) {
	w := newWorld(t, 2)
	var keys []Key
	for range 1000 {
		keys = append(keys, w.connect(w.hosts[0], w.hosts[1], Flow{}))
	}
	w.move(w.hosts[0])
	w.heal()
	for _, k := range keys {
		w.believe(k, w.hosts[0], w.hosts[1])
	}
	per := wire.Room(0) / 52
	if most := 3*(1000/per+1) + 3; w.sent > most {
		t.Errorf("%d messages for a move of 1000 flows, want at most %d", w.sent, most)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		w.connect(w.hosts[0], w.hosts[1], Flow{})
		moves := rapid.IntRange(1, 10).Draw(t, "moves")
		for i := range moves {
			w.move(w.hosts[(i*rapid.IntRange(0, 1).Draw(t, "who"))%2])
		}
		w.heal()
		if w.sent > 8*moves {
			t.Fatalf("%d messages for %d moves without loss: %s", w.sent, moves, w.describe())
		}
	})
}

func TestAMoveWhileConnecting(t *testing.T) {
	check(t, func(t *rapid.T) {
		w := newWorld(t, 2)
		c, s := w.hosts[0], w.hosts[1]
		first := Addr{c.at, c.newID(c.at)}
		if err := c.Add(Flow{Key: Key{first.IP(), Client}, Proto: 6, Local: first}); err != nil {
			t.Fatal(err)
		}
		r := Addr{s.at, s.newID(s.at)}
		if err := s.Add(Flow{Key: Key{first.IP(), Server}, Proto: 6, Local: r, Peer: first}); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 3).Draw(t, "moves") {
			w.move(c)
		}
		if rapid.Bool().Draw(t, "server moves") {
			w.move(s) // its RSYN may come before the SYN-ACK
			w.heal2()
		}
		c.Established(w.now, first.IP(), r)
		w.collect(c)
		w.heal()
		w.believe(Key{first.IP(), Client}, c, s)
	})
}

// heal2 delivers what is under way, and waits for nobody.
func (w *world) heal2() {
	for len(w.pool) > 0 {
		d := w.pool[0]
		w.pool = w.pool[1:]
		w.deliver(d)
	}
}

func TestAPeerThatIsSilentIsGivenUp(t *testing.T) {
	w := newWorld(t, 2)
	k := w.connect(w.hosts[0], w.hosts[1], Flow{})
	udp := w.connect(w.hosts[0], w.hosts[1], Flow{Proto: 17})
	w.hosts[0].cfg.Times = DefaultTimes
	w.move(w.hosts[0])
	start := w.now
	for range 100 {
		w.pool = nil
		w.tick()
	}
	if w.hosts[0].resets[k] != wire.Unreachable || w.hosts[0].resets[udp] != wire.Unreachable {
		t.Errorf("resets: %v", w.hosts[0].resets)
	}
	if d := w.now.Sub(start); d > 60*time.Second {
		t.Errorf("gave up after %v", d)
	}
}

func TestOldSocketIDsAreAcceptedForAGraceTime(t *testing.T) {
	w := newWorld(t, 2)
	k := w.connect(w.hosts[0], w.hosts[1], Flow{})
	first := AddrOf(k.Stable).Socket
	w.move(w.hosts[0])
	w.heal()
	if !w.hosts[0].flows[k].owns(first) {
		t.Error("the old socketID was dropped at once")
	}
	w.now = w.now.Add(testTimes.Grace)
	for _, h := range w.hosts {
		h.Expire(w.now)
	}
	if f := w.hosts[0].flows[k]; f.owns(first) || len(w.hosts[0].bySocket) != 1 {
		t.Error("the old socketID is accepted for ever")
	}
}
