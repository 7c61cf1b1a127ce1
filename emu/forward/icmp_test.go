package forward_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/traffic"
)

// checksum adds in ones' complement, slowly.
func checksum(parts ...[]byte) uint16 {
	n := 0
	for _, b := range parts {
		for i, c := range b {
			n += int(c) << (8 * (1 - i%2))
		}
	}
	for n > 0xffff {
		n = n&0xffff + n>>16
	}
	return ^uint16(n)
}

// aged is a packet with another hop limit.
func aged(packet []byte, hop byte) []byte {
	b := bytes.Clone(packet)
	if b[0]>>4 == 6 {
		b[7] = hop
		return b
	}
	b[8], b[10], b[11] = hop, 0, 0
	binary.BigEndian.PutUint16(b[10:], checksum(b[:20]))
	return b
}

// complaint is the error that RFC 4443 and RFC 792 ask for.
func complaint(from string, about []byte, kind, code byte, argument uint32) []byte {
	six := about[0]>>4 == 6
	room := 548
	if six {
		room = 1232
	}
	body := append([]byte{kind, code, 0, 0}, binary.BigEndian.AppendUint32(nil, argument)...)
	body = append(body, about[:min(room, len(about))]...)
	source := addr(from).AsSlice()
	if six {
		head := append([]byte{0x60, 0, 0, 0, byte(len(body) >> 8), byte(len(body)), 58, 64}, source...)
		head = append(head, about[8:24]...)
		binary.BigEndian.PutUint16(body[2:], checksum(head[8:], []byte{byte(len(body) >> 8), byte(len(body)), 0, 58}, body))
		return append(head, body...)
	}
	total := 20 + len(body)
	head := append([]byte{0x45, 0xc0, byte(total >> 8), byte(total), 0, 1, 0, 0, 64, 1, 0, 0}, source...)
	head = append(head, about[12:16]...)
	binary.BigEndian.PutUint16(head[10:], checksum(head))
	binary.BigEndian.PutUint16(body[2:], checksum(body))
	return append(head, body...)
}

func TestErrorsAreThoseOfTheRFCs(t *testing.T) {
	for _, c := range []struct {
		name, to   string
		hop, aged  byte
		size       int
		from       string // the router that complains
		kind, code byte
		argument   uint32
		hops       byte // hop limit of the error when it arrives
	}{
		{"hop limit 6", "fd0b::1", 2, 1, 100, "fd00::2", 3, 0, 0, 63},
		{"hop limit 4", "10.0.2.1", 2, 1, 100, "10.9.0.2", 11, 0, 0, 63},
		{"hop limit of a long packet", "fd0b::1", 1, 1, 1400, "fd00::1", 3, 0, 0, 64},
		{"hop limit of a long packet 4", "10.0.2.1", 1, 1, 1400, "10.9.0.1", 11, 0, 0, 64},
		{"no route 6", "fd0c::1", 64, 64, 100, "fd00::1", 1, 0, 0, 64},
		{"no route 4", "10.0.3.1", 64, 64, 100, "10.9.0.1", 3, 0, 0, 64},
		{"unreachable 6", "fd0b:1::1", 64, 63, 100, "fd00::2", 1, 6, 0, 63},
		{"unreachable 4", "10.0.2.9", 64, 63, 100, "10.9.0.2", 3, 1, 0, 63},
		{"too big 6", "fd0b::1", 64, 62, 1401, "fd00::3", 2, 0, 1400, 62},
		{"port 6", "fd00::3", 64, 62, 100, "fd00::3", 1, 4, 0, 62},
		{"port 4", "10.9.0.3", 64, 62, 100, "10.9.0.3", 3, 3, 0, 62},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLine(t, 3, func(i int, config *forward.Config) {
				if i == 2 {
					config.Ports = []forward.PortConfig{{}, {MTU: 1400}}
				}
			})
			must(t, l.routers[1].Add(forward.Route{Prefix: prefix("fd0b:1::/32"), Kind: forward.Unreachable}))
			must(t, l.routers[1].Add(forward.Route{Prefix: prefix("10.0.2.8/30"), Kind: forward.Unreachable}))
			sent := l.from0(t, c.to, c.hop, c.size)
			want := aged(complaint(c.from, aged(sent, c.aged), c.kind, c.code, c.argument), c.hops)
			if got := l.ends[0].got; len(got) != 1 || !bytes.Equal(aged(got[0].bytes, got[0].hop), want) {
				t.Fatalf("got  %v\nwant %x", got, want)
			}
		})
	}
}

// One error byte by byte, as a capture would have it.
func TestATimeExceededOnTheWire(t *testing.T) {
	l := newLine(t, 1, nil)
	l.from0(t, "10.0.2.1", 1, 32)
	const want = "45c0003c00010000400164f6" + "0a090001" + "0a000101" + // header, router, sender
		"0b000c1f" + "00000000" + // time exceeded
		"45000020000000000111a2cc" + "0a000101" + "0a000201" + "04000009000ce4cb00000000" // the packet
	if got := l.ends[0].got; len(got) != 1 || hex.EncodeToString(got[0].bytes) != want {
		t.Errorf("got  %x\nwant %s", got[0].bytes, want)
	}
}

func TestNobodyIsToldAboutWhatMustNotBe(t *testing.T) {
	six := traffic.Datagram(addr("fd0a::1"), addr("fd0c::1"), 64, 1024, 100)
	four := traffic.Datagram(addr("10.0.1.1"), addr("10.0.3.1"), 64, 1024, 100)
	change := func(b []byte, f func(b []byte)) []byte {
		b = bytes.Clone(b)
		f(b)
		if b[0]>>4 == 4 {
			return aged(b, b[8])
		}
		return b
	}
	for name, b := range map[string][]byte{
		"error 6":              change(six, func(b []byte) { b[6], b[40] = 58, 3 }),
		"redirect 6":           change(six, func(b []byte) { b[6], b[40] = 58, 137 }),
		"error behind options": change(six, func(b []byte) { b[6], b[40], b[41], b[48] = 60, 58, 0, 1 }),
		"error 4":              change(four, func(b []byte) { b[9], b[20] = 1, 11 }),
		"later fragment 6":     change(six, func(b []byte) { b[6], b[40], b[42], b[43] = 44, 17, 1, 0 }),
		"later fragment 4":     change(four, func(b []byte) { b[7] = 8 }),
		"multicast source 6":   change(six, func(b []byte) { b[8] = 0xff }),
		"no source 6":          change(six, func(b []byte) { clear(b[8:24]) }),
		"martian source 4":     change(four, func(b []byte) { b[12] = 127 }),
		"no source 4":          change(four, func(b []byte) { clear(b[12:16]) }),
		"multicast":            traffic.Datagram(addr("fd0a::1"), addr("ff0e::1"), 64, 1024, 100),
	} {
		l := newLine(t, 1, nil)
		l.ends[0].send(t, b)
		l.run(t)
		if len(l.ends[0].got)+len(l.ends[1].got) > 0 {
			t.Errorf("%s: got %v, %v", name, l.ends[0].got, l.ends[1].got)
		}
	}
	l := newLine(t, 1, nil)
	l.ends[0].send(t, change(six, func(b []byte) { b[6], b[40], b[41], b[48] = 60, 58, 0, 128 }), change(four, func(b []byte) { b[9], b[20] = 1, 8 }))
	l.run(t)
	if len(l.ends[0].got) != 2 {
		t.Errorf("echo requests: %d errors", len(l.ends[0].got))
	}
}

func TestErrorsAreNoMoreThanTheRate(t *testing.T) {
	l := newLine(t, 1, func(_ int, c *forward.Config) { c.ICMPRate = 100 })
	b := traffic.Datagram(addr("fd0a::1"), addr("fd0c::1"), 64, 1024, 100)
	for range 1000 { // in two seconds
		l.ends[0].send(t, b)
		l.now += 2 * time.Millisecond
		must(t, l.Run(l.now))
	}
	if n := len(l.ends[0].got); n < 248 || n > 251 { // a burst, and two seconds
		t.Errorf("%d errors", n)
	}
	c := l.routers[0].Counters()
	if c.Told[forward.NoRoute]+c.Limited != 1000 || c.Drops[forward.NoRoute] != 1000 {
		t.Errorf("%+v", c)
	}
}

func TestARouterAnswersEchoRequests(t *testing.T) {
	l := newLine(t, 2, nil)
	for to, from := range map[string]string{"fd00::2": "fd0a::1", "10.9.0.2": "10.0.1.1"} {
		request := echo(addr(from), addr(to), "how are you?")
		l.ends[0].got = nil
		l.ends[0].send(t, request)
		l.run(t)
		want := echo(addr(to), addr(from), "how are you?")
		at := 20
		if want[0]>>4 == 6 {
			at = 40
		}
		want[at] = map[bool]byte{true: 129, false: 0}[at == 40]
		want = summed(want)
		if got := l.ends[0].got; len(got) != 1 || !bytes.Equal(aged(got[0].bytes, 64), aged(want, 64)) || got[0].hop != 63 {
			t.Errorf("%s: got %v\nwant %x", to, got, want)
		}
	}
}

// echo is an echo request.
func echo(from, to netip.Addr, text string) []byte {
	b := traffic.Datagram(from, to, 64, 0, 8+len(text)+map[bool]int{true: 20, false: 40}[to.Is4()])
	if to.Is4() {
		b[9] = 1
		copy(b[20:], append([]byte{8, 0, 0, 0, 1, 2, 0, 1}, text...))
	} else {
		b[6] = 58
		copy(b[40:], append([]byte{128, 0, 0, 0, 1, 2, 0, 1}, text...))
	}
	return summed(b)
}

// summed is an ICMP message with the right checksums.
func summed(b []byte) []byte {
	if b[0]>>4 == 6 {
		b[42], b[43] = 0, 0
		binary.BigEndian.PutUint16(b[42:], checksum(b[8:40], []byte{b[4], b[5], 0, 58}, b[40:]))
		return b
	}
	b[22], b[23] = 0, 0
	binary.BigEndian.PutUint16(b[22:], checksum(b[20:]))
	return aged(b, b[8])
}
