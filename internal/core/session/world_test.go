package session

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// world is hosts and a network that loses, repeats and reorders. Who sends to a locator that a host has
// left reaches that host: the redirects of docs/protocol.md §6.3.
type world struct {
	t     fatal
	now   time.Time
	hosts []*host
	owner map[sid.Locator]*host
	pool  []datagram
	sent  int
	tap   func(datagram) // on the path: sees all that is sent
}

type fatal interface {
	Fatalf(format string, args ...any)
}

type host struct {
	*Engine
	n       int
	at      sid.Locator
	places  int
	made    *uint64 // shared by copies: their generators are in the same state
	ids     []sid.SocketID
	bound   map[Key]Change
	resets  map[Key]wire.Reason
	blocked []Key
	kicked  []Key
	adopted int
}

type datagram struct {
	from, to netip.Addr
	retry    uint8
	bytes    []byte
}

var testTimes = Times{Claim: 5 * time.Millisecond, First: 20 * time.Millisecond, Most: time.Second, Tries: 1000, Grace: time.Hour, Probes: 3}

func newWorld(t fatal, hosts int) *world {
	w := &world{t: t, now: time.Unix(1e9, 0), owner: map[sid.Locator]*host{}}
	for range hosts {
		w.add(new(uint64), nil)
	}
	return w
}

func (w *world) add(made *uint64, trust Trust) *host {
	h := &host{n: len(w.hosts), made: made, bound: map[Key]Change{}, resets: map[Key]wire.Reason{}}
	h.Engine = New(Config{Space: sid.DefaultSpace(), NewID: h.newID, Trust: trust, Times: testTimes, Secret: [32]byte{byte(h.n)}})
	h.at = w.place(h)
	w.hosts = append(w.hosts, h)
	return h
}

// place gives the host a locator that nobody had.
func (w *world) place(h *host) sid.Locator {
	l := locator(h.n, h.places)
	h.places++
	w.owner[l] = h
	return l
}

func locator(host, place int) sid.Locator {
	return sid.Locator(0xfd5d000000010000 | uint64(host+1)<<8 | uint64(place+1))
}

// newID mixes the locator in, as Config asks.
func (h *host) newID(l sid.Locator) sid.SocketID {
	*h.made++
	id := sid.NewSocketID((uint64(l)<<24 + *h.made) * 0x9E3779B97F4A7C15)
	h.ids = append(h.ids, id)
	return id
}

// connect gives two hosts the ends of a bound flow.
func (w *world) connect(client, server *host, x Flow) Key {
	p, r := Addr{client.at, client.newID(client.at)}, Addr{server.at, server.newID(server.at)}
	x.Key, x.Local, x.Peer = Key{p.IP(), Client}, p, r
	if x.Proto == 0 {
		x.Proto = sid.TCP
	}
	if err := client.Add(x); err != nil {
		w.t.Fatalf("%v", err)
	}
	x.Key, x.Local, x.Peer, x.Continue = Key{p.IP(), Server}, r, p, false
	if err := server.Add(x); err != nil {
		w.t.Fatalf("%v", err)
	}
	return Key{p.IP(), Client}
}

func (w *world) move(h *host) {
	from := h.at
	h.at = w.place(h)
	h.Move(w.now, from, h.at)
	w.collect(h)
}

// collect takes what an engine wants done.
func (w *world) collect(h *host) {
	changes, messages := h.Drain()
	for i := 0; i < len(changes); i++ {
		switch c := changes[i]; c.Kind {
		case Unanswered: // there is always somebody else
			h.Lost(w.now, wire.Unreachable, func(f Flow) bool { return f.Key == c.Key })
			more, sent := h.Drain()
			changes, messages = append(changes, more...), append(messages, sent...)
		case Bind:
			h.bound[c.Key] = c
		case Reset, Unbind:
			h.resets[c.Key] = c.Reason
		case Block:
			h.blocked = append(h.blocked, c.Key)
		case Kick:
			h.kicked = append(h.kicked, c.Key)
		case Adopt:
			h.adopted++
		}
	}
	for _, m := range messages {
		d := datagram{m.From, m.To, m.Retry, m.Message.Append(nil)}
		w.pool = append(w.pool, d)
		w.sent++
		if w.tap != nil {
			w.tap(d)
		}
	}
}

func (w *world) deliver(d datagram) {
	m, err := wire.Parse(d.bytes)
	if err != nil {
		w.t.Fatalf("an engine sent what cannot be read: %v", err)
	}
	if h := w.route(&d); h != nil {
		h.Handle(w.now, d.from, d.to, m)
		w.collect(h)
	}
}

// route finds the host; a service's address is resolved to the capable ones in turn.
func (w *world) route(d *datagram) *host {
	if !sid.DefaultSpace().Services.Contains(d.to) {
		return w.owner[sid.LocatorOf(d.to)]
	}
	service, _ := sid.DefaultSpace().ServiceOf(d.to)
	var able []*host
	for _, h := range w.hosts {
		if h.capable[service] {
			able = append(able, h)
		}
	}
	if len(able) == 0 {
		return nil
	}
	h := able[int(d.retry)%len(able)]
	d.to = h.at.Addr(sid.Low(d.to))
	return h
}

// chaos takes the next step by lot.
func (w *world) chaos(t *rapid.T) {
	w.now = w.now.Add(time.Millisecond)
	if len(w.pool) == 0 {
		w.tick()
		return
	}
	i := rapid.IntRange(0, len(w.pool)-1).Draw(t, "message")
	d := w.pool[i]
	switch fate := rapid.IntRange(0, 9).Draw(t, "fate"); {
	case fate < 2: // lost
		w.pool = slices.Delete(w.pool, i, i+1)
	case fate < 4: // twice
		w.deliver(d)
	default:
		w.pool = slices.Delete(w.pool, i, i+1)
		w.deliver(d)
	}
}

// tick advances time to the next deadline.
func (w *world) tick() {
	due := slices.Collect(func(yield func(*host) bool) {
		for _, h := range w.hosts {
			if !h.Deadline().IsZero() && !yield(h) {
				return
			}
		}
	})
	if len(due) == 0 {
		return
	}
	first := slices.MinFunc(due, func(a, b *host) int { return a.Deadline().Compare(b.Deadline()) })
	if d := first.Deadline(); d.After(w.now) {
		w.now = d
	}
	first.Expire(w.now)
	w.collect(first)
}

// heal delivers all that is under way in order until nobody sends any more.
func (w *world) heal() {
	for range 5000 {
		for len(w.pool) > 0 {
			d := w.pool[0]
			w.pool = w.pool[1:]
			w.deliver(d)
		}
		if !w.busy() {
			return
		}
		w.tick()
	}
	w.t.Fatalf("still busy: %s", w.describe())
}

func (w *world) busy() bool {
	for _, h := range w.hosts {
		for _, f := range h.flows {
			if f.state != Bound || f.nonce != 0 {
				return true
			}
		}
	}
	return false
}

// believe checks that the two ends hold each other for their peers, and the data paths too.
func (w *world) believe(k Key, client, server *host) {
	a, ok1 := client.View(k)
	b, ok2 := server.View(Key{k.Stable, Server})
	if !ok1 || !ok2 || a.Peer != b.Local || b.Peer != a.Local {
		w.t.Fatalf("the ends do not believe in each other: %s", w.describe())
	}
	for _, v := range []struct {
		h *host
		v View
	}{{client, a}, {server, b}} {
		c, ok := v.h.bound[v.v.Key]
		if ok && (c.Local != v.v.Local || c.Peer != v.v.Peer) {
			w.t.Fatalf("host %d: the data path sends %v to %v: %s", v.h.n, c.Local, c.Peer, w.describe())
		}
	}
}

func (w *world) describe() (s string) {
	for _, h := range w.hosts {
		flows := slices.SortedFunc(func(yield func(*flow) bool) {
			for _, f := range h.flows {
				yield(f)
			}
		}, func(a, b *flow) int { return cmp.Compare(a.serial, b.serial) })
		for _, f := range flows {
			s += fmt.Sprintf("\nhost %d: %v %v epoch %d seen %d/%d local %v peer %v chain %v", h.n, f.state, f.Role, f.epoch, f.seen, f.peerSeen,
				f.Local.IP(), f.Peer.IP(), f.chain)
		}
		s += fmt.Sprintf("\nhost %d: resets %v counters %v", h.n, h.resets, h.counters)
	}
	return s
}

// copyOf clones a host with all its flows; the copy comes up in another place.
func (w *world) copyOf(h *host) *host {
	made := *h.made
	c := w.add(&made, h.cfg.Trust)
	c.serial = h.serial
	for k, f := range h.flows {
		g := *f
		g.chain, g.old = slices.Clone(f.chain), slices.Clone(f.old)
		c.flows[k] = &g
		for _, r := range append(slices.Clone(g.old), retired{Addr: g.Local}) {
			c.bySocket[r.Socket] = &g
		}
		if !g.timer.IsZero() {
			c.timers.add(g.timer, &g)
		}
	}
	c.Move(w.now, h.at, c.at)
	w.collect(c)
	return c
}

func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, property)
}
