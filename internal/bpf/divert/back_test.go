package divert

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/bpf/bpftest"
)

// TestWhatComesBack: by lo to the port where it came, and there as was decided; what is held no more goes on.
func TestWhatComesBack(t *testing.T) {
	b := newBench(t, 4, someLanes...)
	b.hear()
	for _, ends := range [][2]netip.AddrPort{{client4, server4}, {client6, server6}} {
		f := packet{src: ends[0], dst: ends[1], flags: synFlag, seq: 9, options: usual}.frame()
		held := func() HeldSYN {
			b.both(t, "SYN", f)
			return HeldSYN{Client: ends[0], Server: ends[1], Options: frame.Options{Sequence: 9}}
		}
		b.marked(t, "held by nobody, at lo", b.objs.Reinject, f, bpftest.Next, "no_hold")
		b.marked(t, "held by nobody", b.objs.Divert, f, bpftest.Next, "no_hold")
		s := held()
		if verdict, _, err := bpftest.RunFrame(b.objs.Reinject, 1, 0, f); err != nil || verdict != bpftest.Next {
			t.Errorf("without the mark at lo: verdict %d, %v", verdict, err)
		}
		must(t, b.Accept(s))
		b.marked(t, "accepted, at lo", b.objs.Reinject, f, bpftest.Redirect, "")
		b.marked(t, "accepted, without a listener", b.objs.Divert, f, bpftest.Shot, "dropped_no_listener")
		b.marked(t, "accepted, again", b.objs.Divert, f, bpftest.Next, "no_hold")
		delete(b.held, endsOf(ends[1], ends[0]))
		must(t, b.Pass(held()))
		b.marked(t, "passed", b.objs.Divert, f, bpftest.Next, "passed")
		delete(b.held, endsOf(ends[1], ends[0]))
		b.passed[endsOf(ends[1], ends[0])] = 9
		b.both(t, "sent again", f)
	}
}

func (b bench) marked(t *testing.T, what string, prog *ebpf.Program, f []byte, verdict int, reason string) {
	t.Helper()
	before := b.counters()
	got, _, err := bpftest.RunFrame(prog, 1, DefaultMark, f)
	if moved := moved(before, b.counters()); err != nil || got != verdict || moved != reason {
		t.Errorf("%s: verdict %d, counted as %q, %v; expected %d, %q", what, got, moved, err, verdict, reason)
	}
}

// quote is an ICMP error of that type about the segment, which it quotes up to n bytes behind IP's header.
func quote(kind byte, of packet, n int) []byte {
	p := of.frame()[14:]
	ip := 20
	error := packet{src: of.dst, dst: of.src, proto: 1}
	if of.src.Addr().Is6() {
		ip, error.proto = 40, 58
	}
	body := append([]byte{kind, 1, 0, 0, 0, 0, 0, 0}, p[:min(len(p), ip+n)]...)
	return append(error.header(len(body)), body...)
}

// TestErrorsAboutSessionsAreDelivered: those of routers that quote a segment of ours, as far as its ports. The oracle is this
// table.
func TestErrorsAboutSessionsAreDelivered(t *testing.T) {
	b := newBench(t, 4)
	for _, c := range []struct {
		local, remote netip.AddrPort
		errors        []byte
	}{{server4, client4, []byte{3, 11, 12}}, {server6, client6, []byte{1, 2, 3, 4}}} {
		out := packet{src: c.local, dst: c.remote, flags: ack, data: []byte("data")}
		for kind := range 256 {
			for n := range 24 {
				f := quote(byte(kind), out, n)
				what := fmt.Sprintf("type %d about %v, %d bytes quoted", kind, c.local, n)
				b.error(t, what+", no session", f, false)
				must(t, b.Begin(c.local, c.remote))
				b.error(t, what, f, slices.Contains(c.errors, byte(kind)) && n >= 4)
				must(t, b.End(c.local, c.remote))
			}
		}
	}
	must(t, b.Begin(server4, client4))
	fragment := quote(3, packet{src: server4, dst: client4, fragment: 5}, 20)
	b.error(t, "about a later fragment", fragment, false)
	inPieces := quote(3, packet{src: server4, dst: client4}, 20)
	binary.BigEndian.PutUint16(inPieces[20:], 0x2000)
	b.error(t, "in pieces", inPieces, false)
}

func (b bench) error(t *testing.T, what string, f []byte, delivered bool) {
	t.Helper()
	before := b.counters()
	verdict, _, err := bpftest.RunFrame(b.objs.Divert, 1, 0, f)
	want, reason := bpftest.Next, ""
	if delivered {
		want, reason = bpftest.OK, "delivered_error"
	}
	if moved := moved(before, b.counters()); err != nil || verdict != want || moved != reason {
		t.Fatalf("%s: verdict %d, counted as %q, %v; expected %d, %q: %x", what, verdict, moved, err, want, reason, f)
	}
}

// TestOwnOptionsAreKept: of the first SYN or SYN-ACK that leaves.
func TestOwnOptionsAreKept(t *testing.T) {
	b := newBench(t, 4)
	for _, ends := range [][2]netip.AddrPort{{server4, client4}, {client6, server6}} {
		must(t, b.Begin(ends[0], ends[1]))
		want := frame.Options{Sequence: 9, Timestamp: 0x01020304, MSS: 1460, WindowScale: 7, Scaled: true, SACK: true, HasTimestamps: true}
		for _, p := range []packet{
			{flags: rst | synFlag, seq: 7}, {flags: synFlag | ack, seq: 8, options: []byte{2, 1}},
			{flags: synFlag | ack, seq: 9, options: usual}, {flags: synFlag | ack, seq: 9}, {flags: ack, seq: 10},
		} {
			p.src, p.dst = ends[0], ends[1]
			b.leaves(t, fmt.Sprintf("flags %#x, sequence %d", p.flags, p.seq), p.frame())
		}
		if own, peer := b.Said(ends[0], ends[1]); own != want || peer != (frame.Options{}) {
			t.Errorf("of %v: own %+v, the other's %+v; want %+v", ends[0], own, peer, want)
		}
	}
}
