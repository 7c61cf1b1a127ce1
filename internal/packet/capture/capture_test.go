package capture

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

var (
	space   = sid.DefaultSpace()
	web     = sid.ServiceID{SS: 1, Suffix: 0x20000}
	other   = sid.ServiceID{SS: 1, Suffix: 0x30000}
	client  = sid.Locator(0xfd5d000000010301)
	server  = sid.Locator(0xfd5d000000010101)
	elsewhe = sid.Locator(0xfd5d000000010201)
	p, r    = client.Addr(1<<63 | 7), server.Addr(1<<63 | 9)
	q       = client.Addr(1<<63 | 8) // of another flow
	names   = Names{Service: "web", Hosts: map[sid.Locator]string{client: "c1", server: "s1"}}
	noon    = time.Date(2026, 1, 2, 12, 0, 1, 123456000, time.UTC)
)

func tcp(src, dst netip.Addr, sport, dport uint16, flags uint8) bpftest.Packet {
	return bpftest.Packet{Src: src, Dst: dst, Proto: bpftest.TCP, SPort: sport, DPort: dport, Flags: flags, Seq: 5, Payload: []byte("abc")}
}

func seen(b []byte, out bool) Packet { return Packet{At: noon, Out: out, Data: b, Length: len(b)} }

// take parses a packet and has the follower look at it.
func take(t *testing.T, f *Follower, b bpftest.Packet) (string, Verdict) {
	t.Helper()
	packet := seen(b.Bytes(), true)
	h, ok := Parse(packet)
	if !ok {
		t.Fatalf("%v does not parse", b)
	}
	v := f.Take(h)
	return names.Line(packet, h, v), v
}

func mine(t *testing.T, f *Follower, b bpftest.Packet, want string) {
	t.Helper()
	if line, v := take(t, f, b); !v.Mine || !strings.Contains(line, want) {
		t.Errorf("the line is %q (of the service: %v), want %q in it", line, v.Mine, want)
	}
}

func TestAFlowIsFollowedFromItsFirstPacketOn(t *testing.T) {
	f := NewFollower(space, web)
	first := tcp(p, space.ServiceAddr(web), 41234, 80, bpftest.SYN)
	first.FlowLabel = 2
	mine(t, f, first, "12:00:01.123456 > c1:41234 > web:80  TCP SYN seq 5 ack 0 len 3 retry 2  (fd5d:0:1:301:8000::7 > fd5c::1:0:0:2:0)")
	mine(t, f, tcp(r, p, 80, 41234, bpftest.SYN|bpftest.ACK), "web@s1:80 > c1:41234  TCP SYN-ACK")
	mine(t, f, tcp(p, r, 41234, 80, bpftest.ACK), "c1:41234 > web@s1:80")
	if _, v := take(t, f, tcp(q, space.ServiceAddr(other), 41234, 80, bpftest.SYN)); v.Mine {
		t.Error("a first packet to another service is taken for ours")
	}
}

func TestAtItsServerAFlowIsKnownByTheSuffix(t *testing.T) {
	f := NewFollower(space, web)
	mine(t, f, tcp(p, server.Addr(uint64(web.Suffix)), 41234, 80, bpftest.SYN), "c1:41234 > web@s1:80")
	mine(t, f, tcp(r, p, 80, 41234, bpftest.SYN|bpftest.ACK), "web@s1:80 > c1:41234")
	if _, v := take(t, f, tcp(q, server.Addr(uint64(other.Suffix)), 41234, 80, bpftest.SYN)); v.Mine || v.Unknown {
		t.Errorf("another service's first packet: %+v", v)
	}
}

func TestAFlowOfBeforeIsAskedFor(t *testing.T) {
	f := NewFollower(space, web)
	if _, v := take(t, f, tcp(p, r, 41234, 80, bpftest.ACK)); v.Mine || !v.Unknown {
		t.Fatalf("a packet that nobody told of: %+v, want unknown", v)
	}
	f.Learn([]Known{{Local: p, Peer: r}})
	mine(t, f, tcp(p, r, 41234, 80, bpftest.ACK), "c1:41234 > web@s1:80")
	if _, v := take(t, f, tcp(p, netip.MustParseAddr("2001:db8::1"), 1, 2, 0)); !v.Mine {
		t.Errorf("a known end's packet to elsewhere: %+v", v)
	}
}

func TestAFlowIsFollowedWhenItMoves(t *testing.T) {
	f := NewFollower(space, web)
	f.Learn([]Known{{Local: p, Peer: r}})
	fresh := sid.SocketID(1<<63 | 77)
	rsyn := wire.Renegotiate{Kind: wire.TypeRSYN, Locator: elsewhe, Old: client, Claims: []wire.Claim{{Stable: p, Epoch: 1, Socket: fresh, Quote: 1<<63 | 9, Chain: []sid.SocketID{1<<63 | 7}}}}
	mine(t, f, bpftest.Packet{Src: elsewhe.Addr(uint64(fresh)), Dst: r, Proto: bpftest.UDP, SPort: sid.Port, DPort: sid.Port, Payload: rsyn.Append(nil)},
		"RSYN of 1 flows, fd5d:0:1:301::/64 to fd5d:0:1:201::/64")
	moved := elsewhe.Addr(uint64(fresh))
	again := server.Addr(1<<63 | 99) // the peer's end has another name, too
	mine(t, f, tcp(again, moved, 80, 41234, bpftest.ACK), "web@s1:80 > fd5d:0:1:201::/64:41234")
}

func TestErrorsAboutAFlowBelongToIt(t *testing.T) {
	f := NewFollower(space, web)
	syn := tcp(p, space.ServiceAddr(web), 41234, 80, bpftest.SYN)
	mine(t, f, syn, "SYN")
	router := netip.MustParseAddr("fd5d:0:1:100::1")
	mine(t, f, bpftest.Packet{Src: router, Dst: p, Proto: bpftest.ICMPv6, Type: 1, Code: 3, Payload: syn.Bytes()},
		"ICMPv6 unreachable code 3 about a packet to [fd5c::1:0:0:2:0]:80")
}

func TestTheLeastUsedIsForgottenFirst(t *testing.T) {
	f := NewFollower(space, web)
	mine(t, f, tcp(p, space.ServiceAddr(web), 1, 80, bpftest.SYN), "SYN")
	for i := range 2 * endsMost {
		f.Learn([]Known{{Local: client.Addr(1<<63 | uint64(1000+i))}})
	}
	if len(f.ends) > endsMost || f.ends[p] == nil {
		t.Errorf("%d ends, at most %d; the one that was used is there: %v", len(f.ends), endsMost, f.ends[p] != nil)
	}
}

// The filter passes what has an address of the network and nothing else.
func TestTheKernelsFilterPassesTheNetworksPackets(t *testing.T) {
	raw, err := filter(space)
	if err != nil {
		t.Fatal(err)
	}
	var program []bpf.Instruction
	for _, x := range raw {
		program = append(program, bpf.RawInstruction{Op: x.Code, Jt: x.Jt, Jf: x.Jf, K: x.K}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	alien, nearly := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("fd5d:0:2::1")
	for _, c := range []struct {
		src, dst netip.Addr
		want     bool
	}{{p, r, true}, {p, alien, true}, {alien, p, true}, {alien, space.ServiceAddr(web), true}, {space.ServiceAddr(web), alien, true}, {alien, alien, false}, {nearly, nearly, false}} {
		n, err := vm.Run(tcp(c.src, c.dst, 1, 2, 0).Bytes())
		if err != nil || (n > 0) != c.want {
			t.Errorf("%v to %v: %d bytes pass, %v; want some: %v", c.src, c.dst, n, err, c.want)
		}
	}
	v4 := tcp(p, r, 1, 2, 0).Bytes()
	v4[0] = 0x45
	if n, _ := vm.Run(v4); n > 0 {
		t.Error("a packet of IPv4 passes")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tcp(p, r, 1, 2, bpftest.SYN).Bytes(), 0)
	f.Add(bpftest.Packet{Src: p, Dst: r, Proto: bpftest.ICMPv6, Type: 1, Payload: tcp(r, p, 1, 2, 0).Bytes()}.Bytes(), 5)
	f.Add(bpftest.Packet{Src: p, Dst: r, Proto: bpftest.UDP, SPort: sid.Port, DPort: sid.Port, Payload: wire.Bound{Socket: 1 << 63}.Append(nil)}.Bytes(), 0)
	f.Fuzz(func(t *testing.T, b []byte, more int) {
		packet := Packet{At: noon, Data: b, Length: len(b) + more&0xffff}
		if h, ok := Parse(packet); ok {
			fo := NewFollower(space, web)
			fo.Learn([]Known{{Local: h.Src}})
			names.Line(packet, h, fo.Take(h))
		}
	})
}
