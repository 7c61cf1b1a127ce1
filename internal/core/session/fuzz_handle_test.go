package session

import (
	"encoding/binary"
	"testing"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// FuzzHandle has hosts in every state hear any messages, some of which name their flows: no peer can cause a panic, and
// what an engine says can be read. An open network is the worst case: nothing is refused for its signature.
func FuzzHandle(f *testing.F) {
	w, k := newFailover(f)
	var log [][]byte
	w.tap = func(d datagram) { log = append(log, append([]byte{byte(len(log))}, d.bytes...)) }
	w.move(w.hosts[0])
	w.heal()
	w.died(k)
	w.heal2()
	w.read(w.hosts[0])
	w.heal()
	for _, b := range log {
		f.Add(uint8(0), b)
		f.Add(uint8(3), b)
	}
	f.Fuzz(func(t *testing.T, state uint8, in []byte) {
		w := newWorld(t, 3)
		a, b := w.hosts[0], w.hosts[1]
		k := w.connect(a, b, Flow{Service: web})
		drive(w, k, state)
		for range 8 {
			if len(in) < 1+wire.HeaderLen {
				return
			}
			whom, n := in[0], int(binary.BigEndian.Uint16(in[3:]))
			in = in[1:]
			n = min(max(n, wire.HeaderLen), len(in))
			m, err := wire.Parse(in[:n])
			in = in[n:]
			if err != nil {
				return
			}
			h, peer := a, b
			if whom&1 != 0 {
				h, peer = b, a
			}
			m = known(w, m, whom, h, peer)
			from, to := peer.at.Addr(uint64(peer.ids[len(peer.ids)-1])), h.at.Addr(uint64(h.ids[len(h.ids)-1]))
			h.Handle(w.now, from, to, m)
			w.collect(h)
			for len(w.pool) > 0 && whom&128 != 0 {
				d := w.pool[0]
				w.pool = w.pool[1:]
				w.deliver(d)
			}
			w.now = w.now.Add(time.Duration(whom&31) * 10 * time.Millisecond)
			h.Expire(w.now)
			w.collect(h)
		}
	})
}

// drive brings the two ends into one of their states.
func drive(w *world, k Key, state uint8) {
	a, b := w.hosts[0], w.hosts[1]
	if state&1 != 0 {
		w.move(a)
	}
	if state&2 != 0 {
		w.move(b)
	}
	if state&4 != 0 {
		w.heal2()
	}
	if state&8 != 0 {
		a.Suspect(w.now, k)
		w.collect(a)
	}
	if state&16 != 0 {
		b.Fail(w.now, wire.ProcessDied, Key{k.Stable, Server})
		w.collect(b)
	}
	if state&32 != 0 {
		_ = a.Add(Flow{Key: Key{a.at.Addr(1<<63 | 5), Client}, Proto: sid.TCP, Service: web, Local: Addr{a.at, 1<<63 | 5}})
	}
}

// known puts socketIDs that there are into a message, where its bits ask for it: nobody finds one by chance.
func known(w *world, m wire.Message, bits byte, h, peer *host) wire.Message {
	pick := func(h *host, s sid.SocketID) sid.SocketID { return h.ids[int(uint64(s)%uint64(len(h.ids)))] }
	var k Key
	for x := range h.flows {
		k = x
	}
	switch m := m.(type) {
	case wire.Renegotiate:
		for i := range m.Claims {
			c := &m.Claims[i]
			if bits&2 != 0 && k.Stable.IsValid() {
				c.Stable, c.Server = k.Stable, k.Role == Client
			}
			if bits&4 != 0 {
				c.Quote = pick(h, c.Quote)
			}
			if bits&8 != 0 {
				c.Socket = pick(peer, c.Socket)
			}
			if bits&16 != 0 {
				c.Chain, c.Epoch, c.Seen = append(c.Chain[:0:0], peer.ids[0]), c.Epoch%4, c.Seen%4
			}
		}
		return m
	case wire.FlowFail:
		for i := range m.Flows {
			x := &m.Flows[i]
			if bits&2 != 0 && k.Stable.IsValid() {
				x.Stable, x.Server = k.Stable, k.Role == Client
			}
			if bits&4 != 0 {
				x.Socket = pick(h, x.Socket)
			}
			if bits&8 != 0 {
				x.Quote = pick(peer, x.Quote)
			}
		}
		return m
	}
	return m
}
