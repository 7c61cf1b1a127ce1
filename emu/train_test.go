package emu

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A shape is a kind of train.
type shape struct {
	name  string
	ip6   bool
	tcp   bool
	tag   bool // 802.1Q
	more  int  // bytes of TCP options
	kind  byte
	flags byte
}

var shapes = []shape{
	{"TCP over IPv6", true, true, false, 12, kindTCP6, tcpFIN | tcpPSH | 0x10},
	{"TCP over IPv4", false, true, false, 12, kindTCP4 | kindECN, tcpPSH | tcpCWR | 0x10},
	{"UDP over IPv6", true, false, false, 0, kindUDP, 0},
	{"UDP over IPv4", false, false, false, 0, kindUDP, 0},
	{"TCP over IPv6 in a VLAN", true, true, true, 0, kindTCP6, 0x10},
}

// train builds what the kernel hands over: one header, checksums left partial.
func (s shape) train(size int, payload []byte) []byte {
	b := make([]byte, vnetLen+12)
	if s.tag {
		b = append(b, 0x81, 0, 0, 5)
	}
	ip := len(b) + 2
	proto, l4 := byte(17), udpLen
	if s.tcp {
		proto, l4 = 6, tcpLen+s.more
	}
	addrs := bytes.Repeat([]byte{0xfd, 1, 2, 3}, 8)
	if s.ip6 {
		b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(l4+len(payload)))
		b = append(append(b, proto, 64), addrs...)
	} else {
		b = append(b, 8, 0, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(20+l4+len(payload)))
		b = append(append(b, 0xff, 0xff, 0x40, 0, 64, proto, 0, 0), addrs[:8]...)
	}
	start := len(b)
	at := 6
	if s.tcp {
		at = 16
		b = append(b, 0, 80, 0, 81, 0xff, 0xff, 0xff, 0, 1, 2, 3, 4, byte((tcpLen+s.more)/4<<4), s.flags, 9, 9, 0, 0, 0, 0)
		b = append(b, bytes.Repeat([]byte{1}, s.more)...)
	} else {
		b = append(b, 0, 80, 0, 81)
		b = append(binary.BigEndian.AppendUint16(b, uint16(l4+len(payload))), 0, 0)
	}
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b[start+at:], s.pseudo(b[ip:], proto, len(b)-start))
	b[vnetFlags], b[vnetKind] = needsSum, s.kind
	native.PutUint16(b[vnetHeadLen:], uint16(len(b)-vnetLen)) // as the kernel does with linear buffers
	native.PutUint16(b[vnetSize:], uint16(size))
	native.PutUint16(b[vnetSumStart:], uint16(start-vnetLen))
	native.PutUint16(b[vnetSumAt:], uint16(at))
	return b
}

// pseudo is the sum over the pseudo header.
func (s shape) pseudo(ip []byte, proto byte, length int) uint16 {
	addrs := ip[12:20]
	if s.ip6 {
		addrs = ip[8:40]
	}
	return sum(uint16(int(proto)+length), addrs)
}

func sum(s uint16, b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(bytes.Clone(b), 0)
	}
	for ; len(b) > 0; b = b[2:] {
		n := uint32(s) + uint32(binary.BigEndian.Uint16(b))
		s = uint16(n + n>>16)
	}
	return s
}

// Every part of a train is a frame that a receiver takes: lengths, checksums, sequence numbers and
// flags are right, and the payloads together are that of the train.
func TestPartsOfTrainsAreProperFrames(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { s.check(t) }) })
	}
}

func (s shape) check(t *rapid.T) {
	size := rapid.IntRange(1, 1400).Draw(t, "size")
	payload := rapid.SliceOfN(rapid.Byte(), size+1, 20*size).Draw(t, "payload")
	b := s.train(size, payload)
	f := describe(b)
	if want := (len(payload) + size - 1) / size; int(f.Count) != want || int(f.Head) != len(b)-vnetLen-len(payload) {
		t.Fatalf("%+v; want %d packets", f, want)
	}
	var got []byte
	for first := uint32(0); first < f.Count; {
		p := Packet{first: uint16(first), count: uint16(min(rapid.Uint32Range(1, 5).Draw(t, "count"), f.Count-first))}
		var head [maxHead]byte
		header, data := cut(head[:], b, f, p)
		s.checkPart(t, header, data, f, p)
		got = append(got, data...)
		first += uint32(p.count)
	}
	if !bytes.Equal(got, payload) {
		t.Fatal("the payload is another one")
	}
}

func (s shape) checkPart(t *rapid.T, header, data []byte, f Frame, p Packet) {
	packet := append(bytes.Clone(header[vnetLen:]), data...)
	start, at := int(native.Uint16(header[vnetSumStart:])), int(native.Uint16(header[vnetSumAt:]))
	ip := packet[network(packet):]
	length, proto := len(packet)-start, byte(17)
	if s.tcp {
		proto = 6
	}
	if partial := binary.BigEndian.Uint16(packet[start+at:]); partial%0xffff != s.pseudo(ip, proto, length)%0xffff {
		t.Fatalf("%+v: partial checksum %#x, want %#x", p, partial, s.pseudo(ip, proto, length))
	}
	switch total := int(binary.BigEndian.Uint16(ip[2:])); {
	case s.ip6 && int(binary.BigEndian.Uint16(ip[4:])) != len(ip)-40, !s.ip6 && total != len(ip):
		t.Fatalf("%+v: the IP header has another length than %d", p, len(ip))
	case !s.ip6 && sum(0, ip[:20]) != 0xffff:
		t.Fatalf("%+v: checksum of the IPv4 header", p)
	case !s.ip6 && binary.BigEndian.Uint16(ip[4:]) != 0xffff+p.first:
		t.Fatalf("%+v: IPv4 identification", p)
	}
	if single := header[vnetKind]&^kindECN == kindNone; single != (p.count == 1) || int(native.Uint16(header[vnetHeadLen:])) > len(packet) {
		t.Fatalf("%+v: vnet header % x", p, header[:vnetLen])
	}
	l4 := packet[start:]
	if !s.tcp {
		if int(binary.BigEndian.Uint16(l4[4:])) != length {
			t.Fatalf("%+v: length in the UDP header", p)
		}
		return
	}
	const late = tcpFIN | tcpPSH
	want := s.flags
	if uint32(p.first+p.count) < f.Count {
		want &^= late
	}
	if p.first > 0 {
		want &^= tcpCWR
	}
	if seq := binary.BigEndian.Uint32(l4[4:]); seq != 0xffffff00+uint32(p.first)*f.Size || l4[tcpFlagsAt] != want {
		t.Fatalf("%+v: sequence %#x, flags %#x, want %#x", p, seq, l4[tcpFlagsAt], want)
	}
}

// Programs in a namespace can send any bytes with any vnet header.
func FuzzTrain(f *testing.F) {
	for _, s := range shapes {
		f.Add(s.train(100, make([]byte, 1000)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) <= vnetLen+etherLen || len(b) > largeFrame {
			return
		}
		frame := describe(b)
		l := NewLine(Params{Rate: 1e8, Loss: 0.3, Duplicate: 0.3, Reorder: 0.3})
		l.Send(0, frame, Packet{count: uint16(frame.Count)})
		for p, ok := l.Take(time.Hour); ok; p, ok = l.Take(time.Hour) {
			if uint32(p.count) == frame.Count {
				continue
			}
			var head [maxHead]byte
			if _, data := cut(head[:], b, frame, p.Packet); len(data) == 0 {
				t.Fatalf("%+v of %+v is empty", p, frame)
			}
		}
	})
}
