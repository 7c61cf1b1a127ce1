package forward_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

// stream of packets of every kind that a router meets often, errors among them.
func newStream(t testing.TB, classes bool) (*line, *traffic.Source, *traffic.Sink) {
	t.Helper()
	l := newLine(t, 8, nil)
	if classes {
		_, err := forward.Compile(l.Net)
		must(t, err)
	}
	source, sink := &traffic.Source{
		From: addr("fd0a::1"), To: []netip.Addr{addr("fd0b::1"), addr("fd0b::2"), addr("fd0c::1"), addr("fd00::8")}, Size: 74, Gap: 10 * time.Microsecond, Burst: 10,
	}, &traffic.Sink{}
	for _, f := range l.routers[1:] {
		must(t, f.Add(forward.Route{Prefix: prefix("fd0b::2/128"), Hops: []forward.NextHop{{Port: 1}, {Port: 1}}}))
	}
	l.ends[0].router.Swap(source)
	l.ends[1].router.Swap(sink)
	l.run(t)
	return l, source, sink
}

func TestNothingIsAllocatedForPackets(t *testing.T) {
	for _, classes := range []bool{false, true} {
		l, source, sink := newStream(t, classes)
		before := source.Sent
		if n := testing.AllocsPerRun(100, func() {
			l.now += time.Millisecond
			must(t, l.Run(l.now))
		}); n != 0 {
			t.Errorf("classes %t: %g allocations in a millisecond of 1000 packets", classes, n)
		}
		if source.Sent-before < 100_000 || sink.Packets < source.Sent/2-100 {
			t.Errorf("%d sent, %d arrived", source.Sent-before, sink.Packets)
		}
	}
}

// Whatever comes, a router does not panic, and gives back all memory.
func FuzzFrames(f *testing.F) {
	six, four := traffic.Datagram(addr("fd0a::1"), addr("fd00::1"), 64, 1, 100), traffic.Datagram(addr("10.0.1.1"), addr("10.9.0.1"), 64, 1, 100)
	for _, b := range [][]byte{six, four, echo(addr("fd0a::1"), addr("fd00::1"), "?"), echo(addr("10.0.1.1"), addr("10.9.0.1"), "?")} {
		for _, at := range []int{6, 9} {
			for _, protocol := range []byte{0, 1, 6, 17, 43, 44, 58, 59, 60} {
				c := append([]byte(nil), b...)
				c[at] = protocol
				f.Add(uint8(0), uint16(0x86dd), c)
				f.Add(uint8(1), uint16(0x0800), aged(c, 1))
			}
		}
	}
	f.Add(uint8(1), uint16(0x0806), append([]byte{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 2, 7, 0, 0, 0, 0, 0, 0, 10, 0, 2, 254}, make([]byte, 18)...))
	f.Add(uint8(1), uint16(0x86dd), solicitation("fe80::1", "ff02::1:ff00:ff", "fd0b::ff"))
	f.Fuzz(func(t *testing.T, port uint8, kind uint16, body []byte) {
		if len(body) < 20 || len(body) > 1900 {
			return
		}
		l := newLine(t, 1, func(_ int, c *forward.Config) {
			c.Ports = []forward.PortConfig{
				{Addresses: []netip.Prefix{prefix("fd0a::ff/64"), prefix("10.0.1.254/24")}, MTU: 1000},
				{Addresses: []netip.Prefix{prefix("fd0b::ff/64"), prefix("10.0.2.254/24")}, LAN: true, MTU: 1000},
			}
		})
		held := l.Held()
		frame := append([]byte{0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1}, byte(kind>>8), byte(kind))
		if port > 1 {
			frame[0], port = 2, port&1
		}
		end := l.ends[port&1]
		p, ok := end.router.NewFrame(append(frame, body...))
		if !ok {
			t.Fatal("no memory")
		}
		end.router.Send(p, 0)
		for range 10 { // until neighbours that do not answer are forgotten
			l.run(t)
		}
		if l.nodes[0].Failure() != nil {
			t.Fatal(l.nodes[0].Failure())
		}
		if now := l.Held(); now != held {
			t.Errorf("%d frames are held, %d before", now, held)
		}
	})
}

// solicitation is a neighbour solicitation with the sender's Ethernet address.
func solicitation(from, to, target string) []byte {
	b := traffic.Datagram(addr(from), addr(to), 255, 1, 72)
	b[6] = 58
	body := b[40:]
	clear(body)
	body[0] = 135
	copy(body[8:], addr(target).AsSlice())
	copy(body[24:], []byte{1, 1, 2, 0, 0, 0, 0, 1})
	binary.BigEndian.PutUint16(body[2:], checksum(b[8:40], []byte{0, 32, 0, 58}, body))
	return b
}

// A program that keeps packets gives them back when its router gets another one.
func TestPacketsThatWaitAreLetGo(t *testing.T) {
	l := newLine(t, 1, func(_ int, c *forward.Config) {
		c.Ports = []forward.PortConfig{{}, {Addresses: []netip.Prefix{prefix("fd0b::ff/64")}, LAN: true}}
	})
	held := l.Held()
	for range 30 {
		l.ends[0].send(t, traffic.Datagram(addr("fd0a::1"), addr("fd0b::1"), 64, 1, 100))
	}
	l.now += time.Millisecond
	must(t, l.Run(l.now))
	if n := l.Held() - held; n != 16 {
		t.Errorf("%d packets wait for the neighbour", n)
	}
	next, err := forward.New(l.routers[0].Config())
	must(t, err)
	must(t, l.Do(l.nodes[0], func() { l.nodes[0].Swap(next) }))
	if n := l.Held() - held; n != 0 {
		t.Errorf("%d packets are held", n)
	}
}
