package host

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/sid"
)

// TestProgramAndOracleAgree gives both the same random lives: packets over few addresses, ports and sequence
// numbers, so that they meet each other's flows, with admissions, policies and moves in between.
func TestProgramAndOracleAgree(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(r *rapid.T) {
		w.reset(r)
		l := life{w: w, r: r}
		l.addrs = []netip.Addr{vid, webAddr, dnsAddr, nowhere, peerP, peerQ, here.Host(), there.Host(),
			here.Addr(uint64(web.Suffix)), here.Addr(uint64(dns.Suffix)), old.Addr(uint64(web.Suffix)),
			there.Addr(uint64(web.Suffix)), there.Addr(uint64(dns.Suffix)), here.Addr(uint64(absent.Suffix)),
			netip.MustParseAddr("2001:db8::1")}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			l.step()
		}
	})
}

// A life draws what happens next.
type life struct {
	w     *world
	r     *rapid.T
	addrs []netip.Addr
	seen  [][]byte // packets that passed: material for quotes
}

func (l *life) step() {
	switch rapid.IntRange(0, 28).Draw(l.r, "what") {
	case 0:
		l.w.admit(l.triple())
	case 1:
		l.w.withdraw(l.triple())
	case 2:
		d := Datagrams(rapid.IntRange(0, 2).Draw(l.r, "datagrams"))
		l.w.policy(l.service(), Policy{Datagrams: d, DSCP: uint8(rapid.IntRange(0, 63).Draw(l.r, "dscp"))})
	case 3:
		l.w.uplink(rapid.SampledFrom([]sid.Locator{here, old, 0}).Draw(l.r, "locator"), uint16(rapid.SampledFrom([]int{0, 1280, 1500}).Draw(l.r, "mtu")))
	case 6:
		l.w.uplinkAt(2, rapid.SampledFrom([]sid.Locator{old, there, 0}).Draw(l.r, "second locator"), 1400)
	case 26:
		l.w.quiet(rapid.SampledFrom([]sid.Locator{here, old, there}).Draw(l.r, "quiet at"), rapid.IntRange(0, 2).Draw(l.r, "quiet") > 0)
	case 7, 8, 9:
		l.steer()
	case 27, 28:
		l.answer()
	case 10:
		l.w.access(l.service(), drawAccess(l.r))
	case 5:
		l.w.dying = rapid.Bool().Draw(l.r, "dying")
	case 4:
		l.w.tell(rapid.Bool().Draw(l.r, "told"))
	default:
		l.packet()
	}
}

// flow draws one of those that are there.
func (l *life) flow() (Flow, bool) {
	var all []Flow
	must(l.r, l.w.edge.FlowsAll(func(f Flow) bool { all = append(all, f); return true }))
	if len(all) == 0 {
		return Flow{}, false
	}
	slices.SortFunc(all, func(a, b Flow) int { return cmp.Compare(fmt.Sprint(a.Tuple), fmt.Sprint(b.Tuple)) })
	return rapid.SampledFrom(all).Draw(l.r, "flow"), true
}

// answer has a datagram socket ask, or somebody answer it from any port: from those its next question may go to the wrong one.
func (l *life) answer() {
	f, ok := l.flow()
	if !ok || f.Role != Client || f.Proto != sid.UDP {
		l.w.send(udp(vid, dnsAddr, 5000, l.port(), "q").Bytes())
		return
	}
	from := rapid.SampledFrom([]netip.Addr{f.WirePeer.Addr(), peerP, peerQ}).Draw(l.r, "from")
	if to := f.WireLocal.Addr(); to.IsValid() && from != dnsAddr && from != webAddr {
		l.w.arrive(udp(from, to, l.port(), f.Local.Port(), "a").Bytes())
	}
	l.w.send(udp(f.Local.Addr(), f.Peer.Addr(), f.Local.Port(), l.port(), "q").Bytes())
}

// steer does something to one of the flows.
func (l *life) steer() {
	f, ok := l.flow()
	if !ok {
		return
	}
	s := Step{Verb: Verb(rapid.IntRange(1, 7).Draw(l.r, "verb")), Flow: f.Tuple}
	s.Local = Addr{rapid.SampledFrom([]sid.Locator{here, old, there}).Draw(l.r, "at"), sid.NewSocketID(rapid.Uint64Range(0, 20).Draw(l.r, "socket"))}
	if s.Verb == Bind || rapid.Bool().Draw(l.r, "with peer") {
		s.Peer = addrOf(rapid.SampledFrom([]netip.Addr{peerP, peerQ, peerP2}).Draw(l.r, "peer"))
	}
	l.w.steer(s)
	l.addrs = append(l.addrs, s.Local.IP())
}

func (l *life) service() sid.ServiceID {
	return rapid.SampledFrom([]sid.ServiceID{web, dns}).Draw(l.r, "service")
}

func (l *life) triple() sid.Triple {
	return sid.Triple{Service: l.service(), Proto: rapid.SampledFrom([]sid.Proto{sid.TCP, sid.UDP}).Draw(l.r, "proto"), Port: l.port()}
}

func (l *life) port() uint16 {
	return uint16(rapid.SampledFrom([]int{53, 80, 4000, 5000, 23727}).Draw(l.r, "port"))
}

func (l *life) addr(name string) netip.Addr { return rapid.SampledFrom(l.addrs).Draw(l.r, name) }

// packet gives one to both sides and learns addresses from what comes out.
func (l *life) packet() {
	b := l.draw().Bytes()
	if rapid.IntRange(0, 30).Draw(l.r, "cut") == 0 {
		b = b[:rapid.IntRange(40, len(b)).Draw(l.r, "length")] // BPF_PROG_TEST_RUN wants a whole IPv6 header
	}
	pieces := [][]byte{b}
	if len(b) > 48 && b[6] == bpftest.UDP && rapid.IntRange(0, 5).Draw(l.r, "fragments") == 0 {
		pieces = cut(b, 16)
	}
	for _, b := range pieces {
		var o flow.Output
		if rapid.Bool().Draw(l.r, "leaves") {
			o = l.w.send(b)
		} else {
			o = l.w.arrive(b)
		}
		if o.Verdict == flow.Pass && len(o.Data) >= 40 {
			src, dst := addrs(o)
			l.addrs = append(l.addrs, src, dst)
			l.seen = append(l.seen, o.Data)
		}
	}
}

func (l *life) draw() bpftest.Packet {
	p := bpftest.Packet{
		Src: l.addr("src"), Dst: l.addr("dst"), SPort: l.port(), DPort: l.port(),
		TrafficClass: rapid.Uint8().Draw(l.r, "class"), FlowLabel: rapid.Uint32Range(0, 7).Draw(l.r, "label"),
		HopLimit: rapid.SampledFrom([]uint8{1, 2, 64}).Draw(l.r, "hops"),
		Seq:      rapid.Uint32Range(1, 4).Draw(l.r, "seq"), Ack: rapid.Uint32Range(1, 4).Draw(l.r, "ack"),
		Payload: rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(l.r, "payload"),
	}
	p.BadChecksum = rapid.IntRange(0, 9).Draw(l.r, "sum") == 0
	switch rapid.IntRange(0, 9).Draw(l.r, "proto") {
	case 0, 1, 2, 3:
		p.Proto = bpftest.TCP
		p.Flags = rapid.SampledFrom([]uint8{bpftest.SYN, bpftest.SYN | bpftest.ACK, bpftest.ACK, bpftest.RST, bpftest.RST | bpftest.ACK, bpftest.FIN | bpftest.ACK, bpftest.SYN}).Draw(l.r, "flags")
		p.Options = rapid.SampledFrom([][]byte{nil, {2, 4, 5, 0xb4}, {1, 2, 4, 5, 0xb4, 0, 0, 0}, {8, 10, 2, 4, 5, 0xb4, 0, 0, 0, 0, 2, 4}, {2, 0, 0, 0}}).Draw(l.r, "options")
	case 4, 5, 6:
		p.Proto = bpftest.UDP
		if p.DPort == sid.Port && len(p.Payload) > 1 {
			p.Payload[0], p.Payload[1] = 1, rapid.Uint8Range(3, 6).Draw(l.r, "type")
		}
	case 7:
		p.Proto, p.Type, p.Word = bpftest.ICMPv6, rapid.Uint8Range(128, 129).Draw(l.r, "echo"), uint32(l.port())<<16
	case 8:
		p.Proto, p.Type, p.Code = bpftest.ICMPv6, rapid.Uint8Range(1, 4).Draw(l.r, "error"), rapid.Uint8Range(0, 5).Draw(l.r, "code")
		if len(l.seen) > 0 {
			p.Payload = rapid.SampledFrom(l.seen).Draw(l.r, "quote")
			p.Payload = p.Payload[:min(len(p.Payload), rapid.IntRange(30, 200).Draw(l.r, "quoted"))]
			p.Dst, _ = sourceOf(p.Payload, p.Dst)
		}
	case 9:
		p.Proto = rapid.Uint8().Draw(l.r, "number")
	}
	if rapid.IntRange(0, 9).Draw(l.r, "extended") == 0 {
		p.FirstExt, p.Extensions = 60, []byte{p.Proto, 0, 1, 4, 0, 0, 0, 0}
	}
	return p
}

// sourceOf is the address to which an error about b belongs.
func sourceOf(b []byte, otherwise netip.Addr) (netip.Addr, bool) {
	if len(b) < 40 {
		return otherwise, false
	}
	src, _ := bpftest.Addrs(b)
	return src, true
}

// cut makes fragments of a UDP packet's bytes.
func cut(b []byte, size int) [][]byte {
	src, dst := bpftest.Addrs(b)
	p := bpftest.Packet{Src: src, Dst: dst, Payload: b[40:]}
	out := fragments(p, 77, size)
	for _, f := range out {
		copy(f[:4], b[:4])
		f[7] = b[7]
	}
	return out
}
