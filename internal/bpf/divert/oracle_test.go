package divert

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
)

// An oracle says what divert.bpf.c does with a frame, slowly and without its tricks. It knows no sockets: a session's
// segments go on, as they do where its socket is gone.
type oracle struct {
	lanes  []Lane
	heard  bool
	room   int
	held   map[divertEnds]uint32 // sequence numbers
	passed map[divertEnds]uint32
	begun  map[divertEnds]bool // sessions
}

func newOracle(room int, lanes ...Lane) *oracle {
	return &oracle{lanes: lanes, room: room, held: map[divertEnds]uint32{}, passed: map[divertEnds]uint32{}, begun: map[divertEnds]bool{}}
}

// A fate is a verdict, the counter that moved ("" none), and what the agent is told.
type fate struct {
	verdict int
	reason  string
	told    *HeldSYN
}

var goesOn = fate{verdict: bpftest.Next}

func on(reason string) fate { return fate{verdict: bpftest.Next, reason: reason} }

// A seen segment is what the oracle reads in a frame.
type seen struct {
	ends           divertEnds
	client, server netip.AddrPort
	seq            uint32
	flags          byte
	fragment       bool
	options        []byte
	l4, end, head  int
	v6             bool
}

const (
	fin, synFlag, rst, ack = 1, 2, 4, 16
)

func (o *oracle) arrive(f []byte) fate {
	s, ok := see(f)
	if !ok {
		return goesOn
	}
	first := s.flags&(fin|synFlag|rst|ack) == synFlag
	var before string
	if !s.fragment && !first && o.begun[s.ends] {
		before = "passed_no_socket"
	}
	if !first {
		return on(before)
	}
	return o.syn(f, s)
}

func (o *oracle) syn(f []byte, s seen) fate {
	if _, held := o.held[s.ends]; held && !s.fragment {
		if o.heard {
			return fate{verdict: bpftest.Shot, reason: "held_again"}
		}
		delete(o.held, s.ends)
		return o.pass(s, "passed_agent_away")
	}
	lane, found := o.lane(s)
	if !found {
		return goesOn
	}
	if s.fragment {
		return on("passed_fragment")
	}
	options, protected, ok := readOptions(s.options)
	options.Sequence = s.seq
	seq, again := o.passed[s.ends]
	switch {
	case protected && ok:
		return on("passed_protected")
	case !ok:
		return on("passed_malformed")
	case len(f) > 1536:
		return on("passed_long")
	case again && seq == s.seq:
		return on("passed_again")
	case !o.heard:
		return o.pass(s, "passed_agent_away")
	case len(o.held) >= o.room:
		return o.pass(s, "passed_held_limit")
	}
	o.held[s.ends] = s.seq
	return fate{bpftest.Shot, "held", &HeldSYN{Client: s.client, Server: s.server, Lane: lane, Options: options, Port: 1, Frame: f}}
}

func (o *oracle) pass(s seen, reason string) fate {
	o.passed[s.ends] = s.seq
	return on(reason)
}

// lane looks at all lanes: the one whose prefixes are longest, then the one with a port, then the finest slot.
func (o *oracle) lane(s seen) (number uint64, found bool) {
	var best Lane
	for _, l := range o.lanes {
		fits := l.Client.Contains(s.client.Addr()) && l.Server.Contains(s.server.Addr()) && (l.Port == 0 || l.Port == s.server.Port()) &&
			s.client.Port()%(1<<min(l.SlotBits, 15)) == l.Slot
		if fits && (!found || better(l, best)) {
			best, found = l, true
		}
	}
	return best.Number, found
}

func better(a, b Lane) bool {
	switch {
	case a.Server.Bits() != b.Server.Bits():
		return a.Server.Bits() > b.Server.Bits()
	case a.Client.Bits() != b.Client.Bits():
		return a.Client.Bits() > b.Client.Bits()
	case (a.Port == 0) != (b.Port == 0):
		return a.Port != 0
	case a.SlotBits != b.SlotBits:
		return a.SlotBits > b.SlotBits
	}
	return a.Number < b.Number
}

// see reads a frame as it arrives: the server is its destination.
func see(f []byte) (s seen, ok bool) {
	if len(f) < 14 {
		return s, false
	}
	var src, dst netip.Addr
	var proto byte
	switch binary.BigEndian.Uint16(f[12:]) {
	case 0x0800:
		src, dst, proto, ok = s.ip4(f)
	case 0x86dd:
		src, dst, proto, ok = s.ip6(f)
	}
	if !ok || proto != 6 || len(f) < s.l4+20 {
		return s, false
	}
	tcp := f[s.l4:]
	s.head = int(tcp[12]>>4) * 4
	if s.head < 20 || s.l4+s.head > s.end {
		return s, false
	}
	s.client = netip.AddrPortFrom(src, binary.BigEndian.Uint16(tcp))
	s.server = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(tcp[2:]))
	s.ends = endsOf(s.server, s.client)
	s.seq, s.flags, s.options = binary.BigEndian.Uint32(tcp[4:]), tcp[13], tcp[20:s.head]
	return s, true
}

func (s *seen) ip4(f []byte) (src, dst netip.Addr, proto byte, ok bool) {
	if len(f) < 34 {
		return
	}
	ip := f[14:]
	length, total, where := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:])), binary.BigEndian.Uint16(ip[6:])
	s.l4, s.end = 14+length, 14+total
	if total == 0 {
		s.end = len(f)
	}
	if ip[0]>>4 != 4 || length < 20 || where&0x1fff != 0 || s.end > len(f) {
		return
	}
	s.fragment = where&0x2000 != 0
	return netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:])), ip[9], true
}

func (s *seen) ip6(f []byte) (src, dst netip.Addr, proto byte, ok bool) {
	if len(f) < 54 {
		return
	}
	ip := f[14:]
	payload := int(binary.BigEndian.Uint16(ip[4:]))
	s.v6, s.l4, s.end = true, 54, 54+payload
	if payload == 0 {
		s.end = len(f)
	}
	src, dst = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
	if ip[0]>>4 != 6 || src.Is4In6() || dst.Is4In6() || s.end > len(f) {
		return
	}
	proto, ok = s.extensions(f, ip[6])
	return src, dst, proto, ok
}

func (s *seen) extensions(f []byte, proto byte) (byte, bool) {
	for range 6 {
		if proto != 0 && proto != 44 && proto != 60 {
			return proto, true
		}
		if len(f) < s.l4+8 {
			return 0, false
		}
		h := f[s.l4:]
		if proto != 44 {
			s.l4 += int(h[1])*8 + 8
		} else {
			where := binary.BigEndian.Uint16(h[2:])
			if where&0xfff8 != 0 {
				return 0, false
			}
			s.fragment = where&1 != 0
			s.l4 += 8
		}
		proto = h[0]
	}
	return 0, false
}

// readOptions reads the options of a SYN (RFC 9293 §3.1, RFC 7323, RFC 2018).
func readOptions(b []byte) (o frame.Options, protected, ok bool) {
	for len(b) > 0 {
		switch b[0] {
		case 0:
			return o, protected, true
		case 1:
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return o, false, false
		}
		value := b[2:b[1]]
		switch {
		case b[0] == 19 || b[0] == 29:
			protected = true
		case b[0] == 2 && len(value) == 2:
			o.MSS = binary.BigEndian.Uint16(value)
		case b[0] == 3 && len(value) == 1:
			o.WindowScale, o.Scaled = min(value[0], 14), true
		case b[0] == 4 && len(value) == 0:
			o.SACK = true
		case b[0] == 8 && len(value) == 8:
			o.Timestamp, o.HasTimestamps = binary.BigEndian.Uint32(value), true
		}
		b = b[b[1]:]
	}
	return o, protected, true
}

// leave says what finish does with a frame: the bytes that leave.
func (o *oracle) leave(f []byte) (out []byte, reason string) {
	s, ok := see(f)
	out = bytes.Clone(f)
	ends := endsOf(s.client, s.server) // who sends is local
	if !ok || s.fragment || s.flags&fin == 0 || !o.begun[ends] {
		return out, ""
	}
	unfinished := binary.BigEndian.Uint16(out[s.l4+16:]) == half(s.client.Addr(), s.server.Addr(), s.end-s.l4)
	out = out[:s.l4+s.head]
	out[s.l4+13] = out[s.l4+13]&^(fin|8|32) | rst
	if s.v6 {
		binary.BigEndian.PutUint16(out[18:], uint16(len(out)-54))
	} else {
		binary.BigEndian.PutUint16(out[16:], uint16(len(out)-14))
		binary.BigEndian.PutUint16(out[24:], 0)
		binary.BigEndian.PutUint16(out[24:], ^fold16(sum16(out[14:s.l4])))
	}
	sum := half(s.client.Addr(), s.server.Addr(), s.head)
	if !unfinished {
		binary.BigEndian.PutUint16(out[s.l4+16:], 0)
		sum = ^fold16(uint64(sum) + sum16(out[s.l4:]))
	}
	binary.BigEndian.PutUint16(out[s.l4+16:], sum)
	return out, "reset_unfinished"
}

// half is the sum of the pseudo header: what a sender leaves whose device completes the checksum.
func half(a, b netip.Addr, length int) uint16 {
	return fold16(sum16(a.AsSlice()) + sum16(b.AsSlice()) + uint64(length) + 6)
}

func sum16(b []byte) (n uint64) {
	for ; len(b) >= 2; b = b[2:] {
		n += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		n += uint64(b[0]) << 8
	}
	return n
}

func fold16(n uint64) uint16 {
	for n > 0xffff {
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}
