package router

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

var (
	space   = sid.DefaultSpace()
	own     = space.Locator(0x100)
	web     = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
	webTCP  = sid.Triple{Service: web, Proto: sid.TCP, Port: 80}
	webUDP  = sid.Triple{Service: web, Proto: sid.UDP, Port: 53}
	anyPort = sid.Triple{Service: web}
	anyUDP  = sid.Triple{Service: web, Proto: sid.UDP}
	from    = netip.MustParseAddr("fd5d:0:1:202:8000:1234:5678:9abc")
)

func host(i int) sid.Locator { return space.Locator(uint16(0x301 + i)) }

func targets(weights ...uint32) []resolve.Target {
	var ts []resolve.Target
	for i, w := range weights {
		ts = append(ts, resolve.Target{Locator: host(i), Weight: w})
	}
	return ts
}

// open loads a resolver that is ready, with web on TCP 80, UDP 53 and any port.
func open(t *testing.T, cfg Config) *Resolver {
	t.Helper()
	nstest.Root(t)
	cfg.Space = space
	r, err := Open(cfg)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() { r.Close(false) })
	return r
}

func ready(t *testing.T) *Resolver {
	r := open(t, Config{})
	must(t, r.SetLocator(own), r.Commit(1), r.SetService(web, Service{Instances: 3}),
		r.SetTable(webTCP, targets(1, 2, 3)), r.SetTable(webUDP, targets(1, 2, 3)), r.SetTable(anyPort, targets(1, 2, 3)))
	return r
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func run(t testing.TB, r *Resolver, p []byte) bpftest.Result {
	t.Helper()
	res, err := bpftest.Run(r.objs.Resolve, 1, p)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func syn(src netip.Addr, to netip.Addr, port uint16) bpftest.Packet {
	return bpftest.Packet{Src: src, Dst: to, Proto: bpftest.TCP, SPort: 40000, DPort: port, Flags: bpftest.SYN}
}

// TestKernelChoosesAsTheOracle runs random sources, retries and tables of all shapes through both.
func TestKernelChoosesAsTheOracle(t *testing.T) {
	r := ready(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 2, 3, 15, 16, 17, 40, 300, 2000} {
		ts := make([]resolve.Target, n)
		for i := range ts {
			ts[i] = resolve.Target{Locator: host(i), Weight: []uint32{1, 100, 1000, 65535, rnd.Uint32N(65536)}[rnd.IntN(5)]}
		}
		must(t, r.SetTable(webTCP, ts))
		table, err := resolve.New(ts)
		must(t, err)
		for range 300 {
			src := host(5000 + rnd.IntN(9)).Addr(uint64(sid.NewSocketID(rnd.Uint64())))
			retry := uint8(rnd.IntN(sid.MaxRetry + 1))
			label := sid.NewLabel(host(rnd.IntN(n+1)), retry*uint8(rnd.IntN(2)))
			p := syn(src, space.ServiceAddr(web), 80)
			p.FlowLabel = uint32(label)
			res := run(t, r, p.Bytes())
			want, outcome := table.Choose(src, label)
			if outcome == resolve.AllRefused {
				if res.Packet[6] != bpftest.ICMPv6 || res.Packet[40] != 1 || res.Packet[41] != 4 {
					t.Fatalf("seed %d, %d targets, from %v label %#x: %v; the oracle says that all have refused", seed, n, src, label, res)
				}
				continue
			}
			_, dst := bpftest.Addrs(res.Packet)
			if sid.LocatorOf(dst) != want || sid.Low(dst) != uint64(web.Suffix) || res.Verdict != bpftest.Next || !bpftest.ChecksumOK(res.Packet) {
				t.Fatalf("seed %d, %d targets, from %v label %#x: %v; the oracle says %v", seed, n, src, label, res, want)
			}
		}
	}
}

// TestPacketsAreResolvedWithRightChecksums covers the kinds of first packets.
func TestPacketsAreResolvedWithRightChecksums(t *testing.T) {
	r := ready(t)
	table, _ := resolve.New(targets(1, 2, 3))
	want, _ := table.Pick(resolve.Hash(from, 0))
	unresolved := space.Locator(0).Addr(uint64(web.Suffix))
	for name, p := range map[string]bpftest.Packet{
		"SYN":          syn(from, space.ServiceAddr(web), 80),
		"SYN in AS":    syn(from, unresolved, 80),
		"datagram":     {Src: from, Dst: space.ServiceAddr(web), Proto: bpftest.UDP, SPort: 5, DPort: 53, Payload: []byte("question")},
		"odd datagram": {Src: from, Dst: space.ServiceAddr(web), Proto: bpftest.UDP, SPort: 5, DPort: 53, Payload: []byte("q")},
		"echo":         {Src: from, Dst: space.ServiceAddr(web), Proto: bpftest.ICMPv6, Type: 128, Payload: []byte("ping")},
		"options":      {Src: from, Dst: space.ServiceAddr(web), Proto: bpftest.TCP, DPort: 80, Flags: bpftest.SYN, FirstExt: 60, Extensions: []byte{6, 0, 1, 4, 0, 0, 0, 0}},
	} {
		before, _ := r.Counters()
		in := p.Bytes()
		res := run(t, r, in)
		after, _ := r.Counters()
		_, dst := bpftest.Addrs(res.Packet)
		if dst != want.Addr(uint64(web.Suffix)) || res.Verdict != bpftest.Next || after["resolved"] != before["resolved"]+1 {
			t.Errorf("%s: %v; want it sent on to %v; counters %v", name, res, want, after)
		}
		if !bpftest.ChecksumOK(res.Packet) {
			t.Errorf("%s: the checksum is wrong now: %x", name, res.Packet)
		}
		if !bytes.Equal(in[:24], res.Packet[:24]) || p.Proto == bpftest.UDP && !bytes.Equal(in[48:], res.Packet[48:]) {
			t.Errorf("%s: more than the destination changed:\n%x\n%x", name, in, res.Packet)
		}
	}
}

// fragments cuts a datagram into two as an IPv6 host does (RFC 8200 §4.5).
func fragments(p bpftest.Packet, at int) (first, later []byte) {
	whole := p.Bytes()
	cut := func(part []byte, offset int, more byte) []byte {
		b := append([]byte(nil), whole[:40]...)
		binary.BigEndian.PutUint16(b[4:], uint16(8+len(part)))
		b[6] = bpftest.Fragment
		b = append(b, p.Proto, 0, byte(offset>>8), byte(offset)|more, 0, 0, 0, 9)
		return append(b, part...)
	}
	return cut(whole[40:40+at], 0, 1), cut(whole[40+at:], at, 0)
}

// TestFragmentsMeetTheSameInstance also joins them again to look at the checksum.
func TestFragmentsMeetTheSameInstance(t *testing.T) {
	r := ready(t)
	must(t, r.SetTable(anyUDP, targets(1, 1, 1, 1, 1, 1)), r.SetTable(anyPort, nil))
	for i := range 50 {
		src := host(7).Addr(uint64(sid.NewSocketID(uint64(i) * 0x9e3779b97f4a7c15)))
		p := bpftest.Packet{Src: src, Dst: space.ServiceAddr(web), Proto: bpftest.UDP, SPort: 5, DPort: 53, Payload: make([]byte, 1000)}
		a, b := fragments(p, 512)
		first, later := run(t, r, a), run(t, r, b)
		_, to := bpftest.Addrs(first.Packet)
		_, also := bpftest.Addrs(later.Packet)
		if to != also || sid.LocatorOf(to) == sid.LocatorOf(p.Dst) {
			t.Fatalf("fragments from %v go to %v and %v", src, to, also)
		}
		if joined := append(append([]byte(nil), first.Packet[48:]...), later.Packet[48:]...); bpftest.Checksum(src, to, bpftest.UDP, joined) != 0 {
			t.Fatalf("the datagram joined from the fragments has a wrong checksum: %x", joined[:16])
		}
	}
}

func TestRefusalsHaveTheirCodes(t *testing.T) {
	r := ready(t)
	forbidden, empty, drained := web, web, web
	forbidden.Suffix, empty.Suffix, drained.Suffix = 0x10001, 0x10002, 0x10003
	must(t, r.SetService(forbidden, Service{Instances: 1, Forbidden: true}), r.SetService(empty, Service{}),
		r.SetService(drained, Service{Instances: 1}), r.SetTable(sid.Triple{Service: drained, Proto: sid.TCP, Port: 80}, targets(0, 0)))
	unknown := sid.ServiceID{SS: 2, Suffix: 0x10004}
	for _, c := range []struct {
		name    string
		to      sid.ServiceID
		port    uint16
		code    byte
		counter string
	}{
		{"unknown service", unknown, 80, 0, "refused_unknown"},
		{"unknown ssID", sid.ServiceID{SS: 2, Suffix: web.Suffix}, 80, 0, "refused_unknown"},
		{"forbidden", forbidden, 80, 1, "refused_forbidden"},
		{"no instance", empty, 80, 3, "refused_no_instance"},
		{"all drained", drained, 80, 3, "refused_no_instance"},
		{"no such port", web, 81, 4, "refused_no_port"},
	} {
		for _, size := range []int{0, 4, 400} {
			before, _ := r.Counters()
			p := syn(from, space.ServiceAddr(c.to), c.port)
			p.Payload = make([]byte, size)
			in := p.Bytes()
			res := run(t, r, in)
			after, _ := r.Counters()
			if after[c.counter] != before[c.counter]+1 {
				t.Errorf("%s: counters %v, want %s one up from %d", c.name, after, c.counter, before[c.counter])
			}
			checkRefusal(t, c.name, res, in, c.code)
		}
	}
}

func checkRefusal(t *testing.T, name string, res bpftest.Result, in []byte, code byte) {
	t.Helper()
	src, dst := bpftest.Addrs(res.Packet)
	if res.Verdict != bpftest.Redirect || !res.Swapped || src != own.Host() || dst != from {
		t.Errorf("%s: %v from %v to %v; want it turned around, from %v to %v", name, res, src, dst, own.Host(), from)
		return
	}
	if res.Packet[6] != bpftest.ICMPv6 || res.Packet[40] != 1 || res.Packet[41] != code || !bpftest.ChecksumOK(res.Packet) {
		t.Errorf("%s: %x; want ICMPv6 type 1 code %d with a right checksum", name, res.Packet, code)
	}
	if quote := res.Packet[48:]; len(quote) < 48 || !bytes.HasPrefix(in, quote) {
		t.Errorf("%s: quotes %x of %x", name, quote, in)
	}
}

func TestWhatIsNotForUsPasses(t *testing.T) {
	r := ready(t)
	moved, now := space.Locator(0x401), space.Locator(0x501)
	must(t, r.SetRedirect(moved, now))
	bound := uint64(sid.NewSocketID(7))
	for name, dst := range map[string]netip.Addr{
		"bound flow": host(1).Addr(bound), "host": host(1).Host(), "elsewhere": netip.MustParseAddr("2001:db8::1"),
		"socketID at the AS": space.Locator(0).Addr(bound), "link-local": netip.MustParseAddr("fe80::1"),
	} {
		in := syn(from, dst, 80).Bytes()
		if res := run(t, r, in); res.Verdict != bpftest.Next || !bytes.Equal(res.Packet, in) {
			t.Errorf("%s: %v, want it untouched", name, res)
		}
	}
	res := run(t, r, syn(from, moved.Addr(bound), 80).Bytes())
	if _, dst := bpftest.Addrs(res.Packet); dst != now.Addr(bound) || !bpftest.ChecksumOK(res.Packet) {
		t.Errorf("to a host that moved: %v, want it sent on to %v", res, now)
	}
	must(t, r.RemoveRedirect(moved))
	if res := run(t, r, syn(from, moved.Addr(bound), 80).Bytes()); res.Verdict != bpftest.Next {
		t.Errorf("after the redirect's end: %v", res)
	}
}

func TestOddPacketsAreCounted(t *testing.T) {
	r := ready(t)
	to := space.ServiceAddr(web)
	multicast := netip.MustParseAddr("ff02::1")
	short := syn(from, to, 80).Bytes()[:50]
	late := syn(from, to, 80)
	late.HopLimit = 1
	_, later := fragments(bpftest.Packet{Src: from, Dst: to, Proto: bpftest.UDP, DPort: 53, Payload: make([]byte, 64)}, 16)
	must(t, r.SetTable(anyPort, nil))
	for _, c := range []struct {
		name    string
		in      []byte
		verdict int
		counter string
	}{
		{"half a SYN", short, bpftest.Shot, "dropped_malformed"},
		{"an answer to multicast", syn(multicast, to, 81).Bytes(), bpftest.Shot, "dropped_malformed"},
		{"an ICMPv6 error to a service", bpftest.Packet{Src: from, Dst: to, Proto: bpftest.ICMPv6, Type: 1, Payload: make([]byte, 48)}.Bytes(), bpftest.Shot, "dropped_icmp"},
		{"the last hop", late.Bytes(), bpftest.Redirect, "expired_hop_limit"},
		{"a fragment without a table", later, bpftest.Shot, "dropped_fragment"},
		{"a protocol that nobody serves", bpftest.Packet{Src: from, Dst: to, Proto: 132, Payload: make([]byte, 20)}.Bytes(), bpftest.Redirect, "refused_no_port"},
	} {
		before, _ := r.Counters()
		res := run(t, r, c.in)
		if after, _ := r.Counters(); res.Verdict != c.verdict || after[c.counter] != before[c.counter]+1 {
			t.Errorf("%s: %v, counters %v; want verdict %d and %s", c.name, res, after, c.verdict, c.counter)
		}
	}
}

// A traceroute sees the service router: the kernel knows no way for what is not resolved yet.
func TestTheLastHopIsAnsweredWithTimeExceeded(t *testing.T) {
	r := ready(t)
	p := syn(from, space.ServiceAddr(web), 80)
	p.HopLimit = 1
	in := p.Bytes()
	res := run(t, r, in)
	src, dst := bpftest.Addrs(res.Packet)
	if res.Verdict != bpftest.Redirect || !res.Swapped || dst != from || src != own.Host() {
		t.Fatalf("%v, want a time exceeded from %v to %v", res, own.Host(), from)
	}
	if p := res.Packet; p[40] != 3 || p[41] != 0 || !bpftest.ChecksumOK(p) || !bytes.HasPrefix(in, p[48:]) {
		t.Errorf("%x: want ICMPv6 type 3 code 0 with a right checksum and a quote of %x", p, in)
	}
}

func TestNothingIsRefusedBeforeTheFirstCommit(t *testing.T) {
	r := open(t, Config{})
	in := syn(from, space.ServiceAddr(web), 80).Bytes()
	if res := run(t, r, in); res.Verdict != bpftest.Next || !bytes.Equal(res.Packet, in) {
		t.Errorf("%v, want it untouched: the rules are not known yet", res)
	}
}

// TestABI compares what the generator cannot: names and constants.
func TestABI(t *testing.T) {
	text, err := os.ReadFile("abi.h")
	must(t, err)
	enum := regexp.MustCompile(`ROUTER_[A-Z_]+,`).FindAllString(string(text), -1)
	if len(enum) != len(reasons) {
		t.Errorf("abi.h counts %d reasons, counters.go names %d", len(enum), len(reasons))
	}
	for _, want := range []string{"#define ROUTER_ABI 2\n", "#define FANOUT 16 ", "#define MAX_DEPTH 8 "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("abi.h has no %q", want)
		}
	}
	if abi != 2 || resolve.Fanout != 16 || resolve.MaxDepth != 8 {
		t.Errorf("Go has abi %d, fanout %d, depth %d", abi, resolve.Fanout, resolve.MaxDepth)
	}
}

func TestPinnedMapsHaveTheLayoutOfTheirVersion(t *testing.T) {
	spec, err := loadResolve()
	if err != nil {
		t.Fatal(err)
	}
	pinned := slices.DeleteFunc(slices.Collect(maps.Keys(spec.Maps)), func(name string) bool { return name[0] == '.' })
	bpftest.HoldLayout(t, spec, pinned, abi, "raise ROUTER_ABI in abi.h and abi in open.go")
}

// TestARefusalOfAReturnedPacketGoesToItsSender: not back to the host that returned it.
func TestARefusalOfAReturnedPacketGoesToItsSender(t *testing.T) {
	r := ready(t)
	one := []resolve.Target{{Locator: host(0), Weight: 1}}
	must(t, r.SetTable(webTCP, one))
	p := syn(from, space.ServiceAddr(web), 80)
	p.FlowLabel = uint32(sid.NewLabel(host(0), 1))
	res := run(t, r, p.Bytes())
	_, dst := bpftest.Addrs(res.Packet)
	if dst != from || res.Packet[40] != 1 || res.Packet[41] != 4 || res.Verdict != bpftest.Next {
		t.Errorf("%v; want code 4 for %v, by the kernel's routes", res, from)
	}
}
