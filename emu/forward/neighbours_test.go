package forward_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

// A wire tap sees the frames that leave a router's port 1.
func newTapped(t *testing.T) (l *line, frames func() [][]byte) {
	t.Helper()
	l = newLine(t, 1, func(_ int, c *forward.Config) {
		c.Ports = []forward.PortConfig{{Addresses: []netip.Prefix{prefix("fd0a::ff/64"), prefix("10.0.1.254/24")}}, {
			Addresses: []netip.Prefix{prefix("fd0b::ff/64"), prefix("10.0.2.254/24")}, LAN: true, MAC: [6]byte{2, 0, 0, 0, 0, 0xff}, LinkLocal: addr("fe80::ff"),
		}}
	})
	var all [][]byte
	_, err := l.Links()[1].Watch(func(from int, _ time.Duration, frame []byte) {
		if from == 0 {
			all = append(all, bytes.Clone(frame))
		}
	})
	must(t, err)
	return l, func() [][]byte {
		now := all
		all = nil
		return now
	}
}

// pass moves the time on.
func (l *line) pass(t testing.TB, d time.Duration) {
	t.Helper()
	l.now += d
	must(t, l.Run(l.now))
}

// in lets a frame into the router by its port 1.
func (l *line) in(t testing.TB, to, from string, kind uint16, body []byte) {
	t.Helper()
	frame, err := hex.DecodeString(to + from)
	must(t, err)
	p, ok := l.ends[1].router.NewFrame(append(binary.BigEndian.AppendUint16(frame, kind), body...))
	if !ok {
		t.Fatal("no memory")
	}
	l.ends[1].router.Send(p, 0)
	l.pass(t, time.Millisecond)
}

const (
	routerMAC = "0200000000ff"
	hostMAC   = "020000000001"
)

func arp(operation byte, mac, from, target string) []byte {
	b, _ := hex.DecodeString("00010800060400" + hex.EncodeToString([]byte{operation}) + mac)
	b = append(b, addr(from).AsSlice()...)
	return append(append(b, make([]byte, 6)...), addr(target).AsSlice()...)
}

// Requests and answers byte for byte, as RFC 826 and RFC 4861 have them.
func TestNeighboursAreAskedAndAnswered(t *testing.T) {
	l, frames := newTapped(t)
	expect := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, b := range frames() {
			got = append(got, hex.EncodeToString(b))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	packet := traffic.Datagram(addr("10.0.1.1"), addr("10.0.2.1"), 64, 1, 40)
	l.ends[0].send(t, packet)
	l.pass(t, time.Millisecond)
	expect("request", "ffffffffffff"+routerMAC+"0806"+"0001080006040001"+routerMAC+"0a0002fe"+"000000000000"+"0a000201")
	l.in(t, routerMAC, hostMAC, 0x0806, arp(2, hostMAC, "10.0.2.1", "10.0.2.254"))
	expect("what had waited", hostMAC+routerMAC+"0800"+hex.EncodeToString(aged(packet, 63)))
	l.in(t, "ffffffffffff", hostMAC, 0x0806, arp(1, hostMAC, "10.0.2.1", "10.0.2.254"))
	expect("reply", hostMAC+routerMAC+"0806"+"0001080006040002"+routerMAC+"0a0002fe"+hostMAC+"0a000201")
	l.in(t, "ffffffffffff", hostMAC, 0x0806, arp(1, hostMAC, "10.0.2.1", "10.0.2.7"))
	expect("a request for another")

	packet = traffic.Datagram(addr("fd0a::1"), addr("fd0b::1"), 64, 1, 60)
	l.ends[0].send(t, packet)
	l.pass(t, time.Millisecond)
	ask := solicitation("fe80::ff", "ff02::1:ff00:1", "fd0b::1")
	ask[71] = 0xff // the router's Ethernet address
	ask[42], ask[43] = 0, 0
	binary.BigEndian.PutUint16(ask[42:], checksum(ask[8:40], []byte{0, 32, 0, 58}, ask[40:]))
	expect("solicitation", "3333ff000001"+routerMAC+"86dd"+hex.EncodeToString(ask))
	l.in(t, routerMAC, hostMAC, 0x86dd, advertisement("fd0b::1", "fe80::ff", "fd0b::1", 0x60, hostMAC))
	expect("what had waited", hostMAC+routerMAC+"86dd"+hex.EncodeToString(aged(packet, 63)))
	l.in(t, "3333ff0000ff", hostMAC, 0x86dd, solicitation("fe80::1", "ff02::1:ff00:ff", "fd0b::ff"))
	expect("advertisement", hostMAC+routerMAC+"86dd"+hex.EncodeToString(advertisement("fd0b::ff", "fe80::1", "fd0b::ff", 0xe0, routerMAC)))
	l.in(t, "3333ff0000ff", hostMAC, 0x86dd, unsourced(solicitation("::", "ff02::1:ff00:ff", "fd0b::ff")))
	expect("advertisement to all", "333300000001"+routerMAC+"86dd"+hex.EncodeToString(advertisement("fd0b::ff", "ff02::1", "fd0b::ff", 0xa0, routerMAC)))
	far := solicitation("fe80::1", "ff02::1:ff00:ff", "fd0b::ff")
	l.in(t, "3333ff0000ff", hostMAC, 0x86dd, aged(far, 254))
	expect("a solicitation from afar")
}

// unsourced is a solicitation of who has no address yet.
func unsourced(b []byte) []byte {
	b = b[:64]
	b[5], b[42], b[43] = 24, 0, 0
	binary.BigEndian.PutUint16(b[42:], checksum(b[8:40], []byte{0, 24, 0, 58}, b[40:]))
	return b
}

func advertisement(from, to, target string, flags byte, mac string) []byte {
	b := solicitation(from, to, target)
	b[40], b[44], b[64] = 136, flags, 2
	at, _ := hex.DecodeString(mac)
	copy(b[66:], at)
	b[42], b[43] = 0, 0
	binary.BigEndian.PutUint16(b[42:], checksum(b[8:40], []byte{0, 32, 0, 58}, b[40:]))
	return b
}

func TestNeighboursThatDoNotAnswerAreGivenUp(t *testing.T) {
	l, frames := newTapped(t)
	for range 20 {
		l.ends[0].send(t, traffic.Datagram(addr("fd0a::1"), addr("fd0b::1"), 64, 1, 60))
	}
	l.pass(t, 10*time.Second)
	c := l.routers[0].Counters()
	if len(frames()) != 3 || c.Told[forward.HostUnreachable] != 16 || c.Drops[forward.QueueFull] != 4 || len(l.ends[0].got) != 16 {
		t.Errorf("%+v, %d errors", c, len(l.ends[0].got))
	}
}

func TestNeighboursAreConfirmedWhileInUse(t *testing.T) {
	l, frames := newTapped(t)
	l.in(t, "ffffffffffff", hostMAC, 0x0806, arp(1, hostMAC, "10.0.2.1", "10.0.2.254"))
	frames()
	send := func() (asked int) {
		l.ends[0].send(t, traffic.Datagram(addr("10.0.1.1"), addr("10.0.2.1"), 64, 1, 40))
		l.pass(t, time.Millisecond)
		sent := 0
		for _, b := range frames() {
			if b[12] == 8 && b[13] == 6 {
				if hex.EncodeToString(b[:6]) != hostMAC {
					t.Errorf("asked %x", b)
				}
				asked++
			} else {
				sent++
			}
		}
		if sent != 1 {
			t.Errorf("%d packets left", sent)
		}
		return asked
	}
	if send() != 1 {
		t.Error("who asked for the router was taken at its word")
	}
	l.in(t, routerMAC, hostMAC, 0x0806, arp(2, hostMAC, "10.0.2.1", "10.0.2.254"))
	if send() != 0 {
		t.Error("asked again who had answered")
	}
	l.pass(t, 31*time.Second)
	if send() != 1 {
		t.Error("not asked after 31 seconds")
	}
	l.pass(t, 10*time.Second)
	if list, _ := l.routers[0].Handlers(l.nodes[0])["neighbours"].Get(); list != "" {
		t.Errorf("still there: %s", list)
	}
}

// A router that was down goes on to ask.
func TestNeighboursAreGivenUpAfterARouterWasDown(t *testing.T) {
	l, _ := newTapped(t)
	send := func() {
		l.ends[0].send(t, traffic.Datagram(addr("fd0a::1"), addr("fd0b::1"), 64, 1, 60))
		l.pass(t, time.Millisecond)
	}
	send()
	l.nodes[0].SetDown(true)
	l.pass(t, 10*time.Second)
	l.nodes[0].SetDown(false)
	send()
	l.pass(t, 10*time.Second)
	if told := l.routers[0].Counters().Told[forward.HostUnreachable]; told != 2 {
		t.Errorf("%d of 2 are told", told)
	}
}

// What waits for a neighbour lies in memory that a router leaves when it moves.
func TestRoutersMoveWhilePacketsWait(t *testing.T) {
	n := emu.New(emu.Options{Virtual: true, Shards: 2, Split: true, Memory: emu.Memory{Small: 1 << 12, Large: 8}})
	defer n.Close()
	f, err := forward.New(forward.Config{Addresses: []netip.Addr{addr("fd00::1")}, Ports: []forward.PortConfig{{}, {Addresses: []netip.Prefix{prefix("fd0b::ff/64")}, LAN: true}}})
	must(t, err)
	must(t, f.Add(forward.To(prefix("fd0a::/16"), 0)))
	a, b := &probe{}, &probe{}
	a.router, b.router = n.Router("a", a), n.Router("b", b)
	r := n.Router("r", f)
	slow := emu.Params{Delay: time.Millisecond}
	for _, end := range []*emu.Router{a.router, b.router} {
		_, err := n.Link(end, r, [2]emu.Params{slow, slow})
		must(t, err)
	}
	must(t, n.Run(0))
	for i := range 20 {
		a.send(t, traffic.Datagram(addr("fd0a::1"), addr("fd0b::1"), 64, 1, 60))
		must(t, n.Run(time.Duration(i+1)*100*time.Millisecond))
		must(t, n.Move(emu.Move{Router: r, Shard: i % 2}))
	}
	must(t, n.Run(10*time.Second))
	if held := n.Held(); held != 2 || r.Failure() != nil { // a slot to read into for each shard
		t.Errorf("%d frames are held, %v", held, r.Failure())
	}
}
