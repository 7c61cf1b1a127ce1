package mobility

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// FuzzEvent hands a daemon any packets, as its edge does, in a network with keys and in an open one: none makes it
// panic, pass over the table of flows, or take a flow into its books that the packet does not name at both ends.
func FuzzEvent(f *testing.F) {
	x := newAttacker()
	at := x.anywhere()
	for _, m := range x.kinds(at) {
		p := fakePacket{at.Addr(1<<63 | 1), placeB.Addr(1<<63 | 2), m.Append(nil)}
		f.Add(true, uint8(host.Message), p.packet())
		f.Add(false, uint8(host.Message), p.packet())
		f.Add(false, uint8(host.Stray), p.packet())
	}
	p := fakePacket{at.Addr(1<<63 | 1), placeB.Host(), wire.ProbeAck{}.Append(nil)}
	f.Add(true, uint8(host.Message), p.packet())
	f.Fuzz(func(t *testing.T, keys bool, kind uint8, packet []byte) {
		n := newFakeNet(nil)
		a, b := n.host(placeA), n.host(placeB)
		if keys {
			n.signs(map[*fakeHost][]sid.Locator{a: {placeA}, b: {placeB}})
		}
		n.connect(a, b, 1000, sid.TCP)
		b.Settle(time.Now())
		b.edge.walks = 0
		e := host.Event{Kind: host.Message, Packet: packet}
		if kind == uint8(host.Stray) {
			e.Kind = host.Stray
		}
		b.Event(e)
		b.Settle(time.Now())
		if b.edge.walks > 0 || b.engine.Len() > 0 {
			t.Fatalf("%x: %d walks, %d flows", packet, b.edge.walks, b.engine.Len())
		}
	})
}
