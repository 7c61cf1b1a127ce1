package divert

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/internal/tests/nstest"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

// A packet is a frame to be built. Zero fields get the usual values.
type packet struct {
	src, dst    netip.AddrPort
	flags       byte
	seq         uint32
	options     []byte // filled up with zeros
	data        []byte
	ipOptions   int    // words of IPv4 options
	extensions  []byte // whole headers of IPv6
	firstHeader byte
	fragment    uint16 // IPv4: flags and offset
	half        bool   // the checksum is left to a device
	doff        int    // -1: one too few; 1: more than there is
	proto       int
}

func (p packet) frame() []byte {
	tcp := make([]byte, 20, 60)
	binary.BigEndian.PutUint16(tcp, p.src.Port())
	binary.BigEndian.PutUint16(tcp[2:], p.dst.Port())
	binary.BigEndian.PutUint32(tcp[4:], p.seq)
	tcp[13] = p.flags
	tcp = append(tcp, p.options...)
	for len(tcp)%4 != 0 {
		tcp = append(tcp, 0)
	}
	switch p.doff {
	case -1:
		tcp[12] = 4 << 4
	case 1:
		tcp[12] = 15 << 4
	default:
		tcp[12] = byte(len(tcp)/4) << 4
	}
	tcp = append(tcp, p.data...)
	sum := half(p.src.Addr(), p.dst.Addr(), len(tcp))
	if !p.half {
		sum = ^fold16(uint64(sum) + sum16(tcp))
	}
	binary.BigEndian.PutUint16(tcp[16:], sum)
	return append(p.header(len(tcp)), tcp...)
}

func (p packet) header(length int) []byte {
	b := make([]byte, 14, 14+60)
	copy(b, []byte{2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa})
	proto := byte(6)
	if p.proto != 0 {
		proto = byte(p.proto)
	}
	if p.src.Addr().Is4() {
		ip := make([]byte, 20+4*p.ipOptions)
		ip[0], ip[8], ip[9] = byte(0x45+p.ipOptions), 64, proto
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+length))
		binary.BigEndian.PutUint16(ip[6:], p.fragment)
		copy(ip[12:], p.src.Addr().AsSlice())
		copy(ip[16:], p.dst.Addr().AsSlice())
		binary.BigEndian.PutUint16(ip[10:], ^fold16(sum16(ip)))
		b[12], b[13] = 8, 0
		return append(b, ip...)
	}
	ip := make([]byte, 40)
	ip[0], ip[6], ip[7] = 0x60, proto, 64
	if len(p.extensions) > 0 {
		ip[6] = p.firstHeader
	}
	binary.BigEndian.PutUint16(ip[4:], uint16(len(p.extensions)+length))
	copy(ip[8:], p.src.Addr().AsSlice())
	copy(ip[24:], p.dst.Addr().AsSlice())
	b[12], b[13] = 0x86, 0xdd
	return append(append(b, ip...), p.extensions...)
}

var (
	client4, server4 = netip.MustParseAddrPort("192.0.2.7:40001"), netip.MustParseAddrPort("198.51.100.9:80")
	client6, server6 = netip.MustParseAddrPort("[2001:db8:1::7]:40001"), netip.MustParseAddrPort("[2001:db8:2::9]:80")
	usual            = []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}
)

func lane(number uint64, client, server string, port, slot uint16, bits uint8) Lane {
	return Lane{number, netip.MustParsePrefix(client), netip.MustParsePrefix(server), port, slot, bits}
}

var someLanes = []Lane{
	lane(1, "192.0.2.0/24", "198.51.100.0/24", 80, 1, 1), lane(2, "192.0.2.0/24", "198.51.100.0/24", 80, 0, 1),
	lane(3, "0.0.0.0/0", "198.51.100.0/24", 0, 0, 0), lane(4, "192.0.2.7/32", "198.51.100.9/32", 443, 0, 0),
	lane(5, "2001:db8:1::/48", "2001:db8:2::/48", 80, 0, 0), lane(6, "::/0", "::/0", 22, 0, 0), lane(7, "2001:db8:1::/64", "2001:db8:2::9/128", 0, 3, 2),
	lane(8, "0.0.0.0/0", "0.0.0.0/0", 8080, 0, 0),
}

// A bench runs the same frames through the program and the oracle.
type bench struct {
	*Diverter
	*oracle
	t *testing.T
}

func newBench(t *testing.T, room int, lanes ...Lane) bench {
	t.Helper()
	d := open(t, Config{Held: room, Hold: time.Hour, Listener: 9})
	must(t, d.SetLanes(lanes), d.patient())
	return bench{d, newOracle(room, lanes...), t}
}

func (b bench) hear() {
	b.t.Helper()
	must(b.t, b.Beat())
	b.heard = true
}

func (b bench) counters() map[string]uint64 {
	b.t.Helper()
	all, err := b.Counters()
	must(b.t, err)
	return all
}

// moved is the counter that differs, with its name.
func moved(before, after map[string]uint64) string {
	for name := range maps.Keys(after) {
		if after[name] != before[name] {
			return name
		}
	}
	return ""
}

// patient has the agent heard for an hour after a beat: a test is in no hurry.
func (d *Diverter) patient() error {
	return d.objs.Config.Put(uint32(0), divertDivertConfig{Hold: uint64(time.Hour), Stale: uint64(time.Hour), Mark: DefaultMark, Port: 9})
}

// never is a beat that is no less than an hour ago, as the program subtracts.
const never = ^uint64(0) >> 1

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// arrive compares what becomes of a frame.
func (b bench) both(t failer, what string, f []byte) {
	t.Helper()
	before := b.counters()
	verdict, out, err := bpftest.RunFrame(b.objs.Divert, 1, 0, f)
	if err != nil {
		t.Fatalf("%s: %v: %x", what, err, f)
	}
	want := b.arrive(f)
	if reason := moved(before, b.counters()); verdict != want.verdict || reason != want.reason {
		t.Fatalf("%s: verdict %d, counted as %q; the oracle says %d, %q: %x", what, verdict, reason, want.verdict, want.reason, f)
	}
	if !bytes.Equal(out, f) {
		t.Fatalf("%s: the frame was changed:\n%x\n%x", what, f, out)
	}
	if want.told == nil {
		return
	}
	told, err := b.Read()
	if err != nil || !reflect.DeepEqual(told, *want.told) {
		t.Fatalf("%s: told %+v, %v; the oracle says %+v", what, told, err, *want.told)
	}
}

func fragmentHeader(next byte, where uint16) []byte {
	return []byte{next, 0, byte(where >> 8), byte(where), 0, 0, 0, 9}
}

// cases are frames, each with something of its own.
func cases() map[string][]byte {
	all := map[string][]byte{}
	for family, ends := range map[string][2]netip.AddrPort{"IPv4": {client4, server4}, "IPv6": {client6, server6}} {
		base := packet{src: ends[0], dst: ends[1], flags: synFlag, seq: 77, options: usual}
		add := func(name string, change func(*packet)) {
			p := base
			change(&p)
			all[family+" "+name] = p.frame()
		}
		add("SYN", func(*packet) {})
		add("SYN of ECN", func(p *packet) { p.flags |= 0xc0 })
		add("SYN without options", func(p *packet) { p.options = nil })
		add("SYN with data", func(p *packet) { p.data = make([]byte, 300) })
		add("SYN with much data", func(p *packet) { p.data = make([]byte, 1600) })
		add("SYN whose checksum is half", func(p *packet) { p.half = true })
		add("SYN-ACK", func(p *packet) { p.flags |= ack })
		add("SYN and FIN", func(p *packet) { p.flags |= fin })
		add("RST", func(p *packet) { p.flags = rst })
		add("data", func(p *packet) { p.flags, p.data = ack, []byte("hello") })
		add("MD5", func(p *packet) { p.options = append([]byte{19, 18}, make([]byte, 16)...) })
		add("AO", func(p *packet) { p.options = append([]byte{1, 1, 29, 16}, make([]byte, 14)...) })
		add("AO behind the others", func(p *packet) { p.options = append(bytes.Clone(usual), 29, 4, 1, 1) })
		add("MD5 behind the end", func(p *packet) { p.options = []byte{2, 4, 5, 0xb4, 0, 19, 2, 0} })
		add("an option of no length", func(p *packet) { p.options = []byte{8, 0, 0, 0} })
		add("an option that is too long", func(p *packet) { p.options = []byte{1, 1, 8, 10} })
		add("an option without length", func(p *packet) { p.options = []byte{1, 1, 1, 8} })
		add("forty bytes of nothing", func(p *packet) { p.options = bytes.Repeat([]byte{1}, 40) })
		add("a scale of 200", func(p *packet) { p.options = []byte{3, 3, 200, 0} })
		add("an MSS twice", func(p *packet) { p.options = []byte{2, 4, 1, 1, 2, 4, 2, 2} })
		add("an MSS of three bytes", func(p *packet) { p.options = []byte{2, 3, 1, 1} })
		add("a short header", func(p *packet) { p.doff = -1 })
		add("a header beyond the end", func(p *packet) { p.doff = 1 })
		add("UDP", func(p *packet) { p.proto = 17 })
		add("another port", func(p *packet) { p.dst = netip.AddrPortFrom(p.dst.Addr(), 22) })
		add("a port of any client", func(p *packet) { p.dst = netip.AddrPortFrom(p.dst.Addr(), 8080) })
		add("the other slot", func(p *packet) { p.src = netip.AddrPortFrom(p.src.Addr(), 40002) })
		add("slot 3", func(p *packet) {
			p.src, p.dst = netip.AddrPortFrom(p.src.Addr(), 40003), netip.AddrPortFrom(p.dst.Addr(), 99)
		})
		add("backwards", func(p *packet) { p.src, p.dst = p.dst, p.src })
	}
	v4, v6 := packet{src: client4, dst: server4, flags: synFlag, options: usual}, packet{src: client6, dst: server6, flags: synFlag, options: usual}
	add4 := func(name string, change func(*packet)) { p := v4; change(&p); all["IPv4 "+name] = p.frame() }
	add6 := func(name string, first byte, headers []byte) {
		p := v6
		p.firstHeader, p.extensions = first, headers
		all["IPv6 "+name] = p.frame()
	}
	add4("not to be fragmented", func(p *packet) { p.fragment = 0x4000 })
	add4("first fragment", func(p *packet) { p.fragment = 0x2000 })
	add4("later fragment", func(p *packet) { p.fragment = 0x2003 })
	add4("last fragment", func(p *packet) { p.fragment = 3 })
	add4("options of IP", func(p *packet) { p.ipOptions = 3 })
	add6("first fragment", 44, fragmentHeader(6, 1))
	add6("later fragment", 44, fragmentHeader(6, 9))
	add6("last fragment", 44, fragmentHeader(6, 8))
	add6("atomic fragment", 44, fragmentHeader(6, 0))
	add6("hop-by-hop options", 0, []byte{6, 0, 1, 4, 0, 0, 0, 0})
	add6("long options", 60, append([]byte{6, 1, 1, 12}, make([]byte, 12)...))
	add6("both and a fragment", 0, append([]byte{60, 0, 1, 4, 0, 0, 0, 0, 44, 0, 1, 4, 0, 0, 0, 0}, fragmentHeader(6, 1)...))
	add6("a routing header", 43, []byte{6, 0, 4, 1, 0, 0, 0, 0})
	add6("an authentication header", 51, append([]byte{6, 4}, make([]byte, 22)...))
	add6("seven headers", 60, slices.Concat(bytes.Repeat([]byte{60, 0, 1, 4, 0, 0, 0, 0}, 6), []byte{6, 0, 1, 4, 0, 0, 0, 0}))
	add6("headers that do not end", 60, []byte{60, 200, 1, 4, 0, 0, 0, 0})
	mappedSrc, mappedDst := netip.MustParseAddrPort("[::ffff:192.0.2.7]:40001"), netip.MustParseAddrPort("[::ffff:198.51.100.9]:80")
	all["IPv6 with addresses of IPv4"] = packet{src: mappedSrc, dst: mappedDst, flags: synFlag}.frame()
	all["ARP"] = append(v4.frame()[:12:12], 8, 6, 0, 1, 8, 0, 6, 4, 0, 1)
	return all
}

func TestProgramAgreesWithTheOracle(t *testing.T) {
	for _, heard := range []bool{true, false} {
		for name, f := range cases() {
			b := sharedBench(t)
			b.forgetAll()
			if b.heard = heard; !heard {
				must(t, b.objs.Beat.Put(uint32(0), never))
			} else {
				b.hear()
			}
			for try := range 2 { // the second is sent again
				b.both(t, fmt.Sprintf("%s, try %d, agent heard: %v", name, try, heard), f)
			}
		}
	}
}

// TestCutFramesAgreeWithTheOracle cuts each frame everywhere, with the length that IP says, and with less than that.
func TestCutFramesAgreeWithTheOracle(t *testing.T) {
	b := sharedBench(t)
	b.hear()
	for name, f := range cases() {
		for n := shortest(f); n < min(len(f), 140); n++ {
			b.forgetAll()
			cut := bytes.Clone(f[:n])
			b.both(t, fmt.Sprintf("%s cut to %d", name, n), cut)
			if n > 20 && cut[12] == 8 {
				binary.BigEndian.PutUint16(cut[16:], uint16(n-14))
			} else if n > 60 {
				binary.BigEndian.PutUint16(cut[18:], uint16(n-54))
			}
			b.both(t, fmt.Sprintf("%s of %d bytes", name, n), cut)
		}
	}
}

// shortest is what BPF_PROG_TEST_RUN takes of a frame: the header of IP is whole.
func shortest(f []byte) int {
	switch binary.BigEndian.Uint16(f[12:]) {
	case 0x0800:
		return 34
	case 0x86dd:
		return 54
	}
	return 15
}

func sharedBench(t *testing.T) bench {
	t.Helper()
	if shared[t.Name()].t == nil {
		shared = map[string]bench{t.Name(): newBench(t, 8, someLanes...)}
	}
	return shared[t.Name()]
}

// shared has the bench of the test that runs.
var shared = map[string]bench{}

// forgetAll is for the next frame to be the first.
func (b bench) forgetAll() {
	b.t.Helper()
	for ends := range b.held {
		must(b.t, b.objs.Holds.Delete(ends))
		delete(b.held, ends)
	}
	for ends := range b.passed {
		must(b.t, b.objs.Passed.Delete(ends))
		delete(b.passed, ends)
	}
}

// TestRandomFramesAgreeWithTheOracle mixes addresses and ports of few, so that they meet again.
func TestRandomFramesAgreeWithTheOracle(t *testing.T) {
	b := newBench(t, 4, someLanes...)
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 30).Draw(t, "forget") == 0 {
			b.forgetAll()
		}
		b.heard = rapid.IntRange(0, 5).Draw(t, "heard") > 0
		beat := never
		if b.heard {
			beat = ktime.Now()
		}
		if err := b.objs.Beat.Put(uint32(0), beat); err != nil {
			t.Fatal(err)
		}
		b.both(t, "random", anyFrame(t))
	})
}

func anyFrame(t *rapid.T) []byte {
	p := packet{
		flags: rapid.SampledFrom([]byte{synFlag, synFlag, synFlag, synFlag | ack, ack, ack | fin, rst, 0}).Draw(t, "flags"),
		seq:   rapid.Uint32Range(0, 2).Draw(t, "seq"), data: make([]byte, rapid.SampledFrom([]int{0, 0, 1, 1500}).Draw(t, "data")),
		options: rapid.OneOf(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 3, 4, 8, 10, 18, 19, 29, 255}), 0, 40), rapid.Just(usual)).Draw(t, "options"),
		doff:    rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1}).Draw(t, "doff"),
		half:    rapid.Bool().Draw(t, "half"),
	}
	host, port := rapid.Uint16Range(6, 9).Draw(t, "host"), rapid.Uint16Range(40000, 40003).Draw(t, "port")
	server := rapid.SampledFrom([]uint16{80, 443, 22, 8080}).Draw(t, "server")
	if rapid.Bool().Draw(t, "IPv4") {
		p.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(2 + host%2), byte(host)}), port)
		p.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(host)}), server)
		p.fragment = rapid.SampledFrom([]uint16{0, 0, 0, 0x4000, 0x2000, 0x2001, 1}).Draw(t, "fragment")
		p.ipOptions = rapid.SampledFrom([]int{0, 0, 1, 10}).Draw(t, "IP options")
	} else {
		src, dst := client6.Addr().As16(), server6.Addr().As16()
		src[15], dst[15] = byte(host), byte(host)
		p.src, p.dst = netip.AddrPortFrom(netip.AddrFrom16(src), port), netip.AddrPortFrom(netip.AddrFrom16(dst), server)
		p.firstHeader, p.extensions = anyHeaders(t)
	}
	f := p.frame()
	if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
		f = f[:rapid.IntRange(shortest(f), len(f)).Draw(t, "length")]
	}
	if rapid.IntRange(0, 9).Draw(t, "damage") == 0 {
		f[rapid.IntRange(14, len(f)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	}
	return f
}

func anyHeaders(t *rapid.T) (first byte, all []byte) {
	first = 6
	for range rapid.IntRange(0, 3).Draw(t, "headers") {
		kind := rapid.SampledFrom([]byte{0, 60, 44, 43}).Draw(t, "header")
		h := []byte{first, 0, 0, 0, 0, 0, 0, 0}
		if kind == 44 {
			h[3] = rapid.SampledFrom([]byte{0, 1, 8, 9}).Draw(t, "where")
		}
		first, all = kind, append(h, all...)
	}
	return first, all
}

// FuzzFramesAgreeWithTheOracle lets anything arrive.
func FuzzFramesAgreeWithTheOracle(f *testing.F) {
	nstest.Root(f)
	for _, c := range cases() {
		f.Add(c)
	}
	var b bench
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 15 || len(frame) < shortest(frame) || len(frame) > 4000 {
			return
		}
		if b.t == nil {
			d, err := fuzzed(someLanes)
			must(t, err)
			b = bench{d, newOracle(8, someLanes...), t}
		}
		b.t = t
		b.forgetAll()
		b.hear()
		b.both(t, "fuzzed", frame)
	})
}

// fuzzed is a Diverter without ports: no namespace lives as long as a fuzzer's process.
func fuzzed(lanes []Lane) (*Diverter, error) {
	cfg, err := Config{Ports: []int{1}, Held: 8, Hold: time.Hour, Pin: nstest.BPFFS + "/fuzz"}.filled()
	if err != nil {
		return nil, err
	}
	d := &Diverter{cfg: cfg, hooks: map[hook]holder{}, gone: map[divertEnds]bool{}}
	if err := d.place(); err != nil {
		return nil, err
	}
	if err := d.load(); err != nil {
		return nil, err
	}
	if err := d.listenRing(); err != nil {
		return nil, err
	}
	return d, errors.Join(d.SetLanes(lanes), d.patient())
}

// TestAnUnfinishedFINLeavesAsReset compares the bytes with the oracle's, which computes each checksum anew.
func TestAnUnfinishedFINLeavesAsReset(t *testing.T) {
	safety.Test(t, safety.Bytes)
	b := newBench(t, 8)
	for name, ends := range map[string][2]netip.AddrPort{"IPv4": {server4, client4}, "IPv6": {server6, client6}} {
		for _, half := range []bool{false, true} {
			for _, data := range []string{"", "x", "some data"} {
				for _, flags := range []byte{fin | ack, fin | ack | 8, ack, ack | 8, rst, synFlag | ack} {
					f := packet{src: ends[0], dst: ends[1], flags: flags, seq: 5, data: []byte(data), half: half,
						options: []byte{1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8}}.frame()
					what := fmt.Sprintf("%s, flags %#x, %d bytes, half a checksum: %v", name, flags, len(data), half)
					b.leaves(t, what+", no session", f)
					must(t, b.Begin(ends[0], ends[1]))
					b.begun[endsOf(ends[0], ends[1])] = true
					b.leaves(t, what, f)
					must(t, b.Finish(ends[0], ends[1]))
					delete(b.begun, endsOf(ends[0], ends[1]))
					b.leaves(t, what+", finished", f)
					must(t, b.End(ends[0], ends[1]))
				}
			}
		}
	}
}

func (b bench) leaves(t *testing.T, what string, f []byte) {
	t.Helper()
	before := b.counters()
	verdict, out, err := bpftest.RunFrame(b.objs.Finish, 1, 0, f)
	must(t, err)
	want, reason := b.leave(f)
	if got := moved(before, b.counters()); verdict != bpftest.Next || got != reason || !bytes.Equal(out, want) {
		t.Errorf("%s: verdict %d, counted as %q; the oracle says %q\n got %x\nwant %x", what, verdict, got, reason, out, want)
	}
}

// TestASessionWithoutSocketGoesOn: late segments for a socket that is gone are answered by the end host.
func TestASessionWithoutSocketGoesOn(t *testing.T) {
	b := newBench(t, 8, someLanes...)
	b.hear()
	must(t, b.Begin(server4, client4))
	b.begun[endsOf(server4, client4)] = true
	b.both(t, "late data", packet{src: client4, dst: server4, flags: ack}.frame())
	b.both(t, "a new SYN", packet{src: client4, dst: server4, flags: synFlag}.frame())
}

// TestTheLimitOfHeldSYNs: what is beyond it goes on, and goes on again when it is sent again, even if there is room by then.
func TestTheLimitOfHeldSYNs(t *testing.T) {
	b := newBench(t, 4, lane(1, "0.0.0.0/0", "0.0.0.0/0", 0, 0, 0))
	b.hear()
	for i := range 10 {
		b.both(t, fmt.Sprint("SYN ", i), packet{src: netip.AddrPortFrom(client4.Addr(), uint16(50000+i)), dst: server4, flags: synFlag, seq: 9}.frame())
	}
	if all := b.counters(); all["held"] != 4 || all["passed_held_limit"] != 6 {
		t.Errorf("of 10 SYNs with room for 4: %v", all)
	}
	for ends := range maps.Clone(b.held) {
		must(t, b.objs.Holds.Delete(ends))
		delete(b.held, ends)
	}
	b.both(t, "one that went on, again", packet{src: netip.AddrPortFrom(client4.Addr(), 50009), dst: server4, flags: synFlag, seq: 9}.frame())
	b.both(t, "the next connection of that port", packet{src: netip.AddrPortFrom(client4.Addr(), 50009), dst: server4, flags: synFlag, seq: 10}.frame())
}

// TestAHoldEndsOnce: a decision counts for the SYN that it is about, and only the first.
func TestAHoldEndsOnce(t *testing.T) {
	b := newBench(t, 4, someLanes...)
	b.hear()
	b.both(t, "SYN", packet{src: client4, dst: server4, flags: synFlag, seq: 9}.frame())
	s := HeldSYN{Client: client4, Server: server4}
	s.Options.Sequence = 8
	if err := b.Accept(s); err != ErrDecided || b.Holds(s) {
		t.Errorf("a SYN with another sequence number is accepted: %v", err)
	}
	s.Options.Sequence = 9
	must(t, b.Accept(s))
	for name, err := range map[string]error{"accept": b.Accept(s), "pass": b.Pass(s), "forget": b.Forget(s)} {
		if err != ErrDecided {
			t.Errorf("%s behind accept: %v", name, err)
		}
	}
}

// TestAHoldEndsInTheKernelToo: where the agent stands still, a SYN that is sent again goes on after the limit.
func TestAHoldEndsInTheKernelToo(t *testing.T) {
	b := newBench(t, 4, someLanes...)
	b.hear()
	f := packet{src: client4, dst: server4, flags: synFlag, seq: 9}.frame()
	b.both(t, "SYN", f)
	must(t, b.objs.Config.Put(uint32(0), divertDivertConfig{Hold: 1, Stale: 1, Mark: DefaultMark}))
	before := b.counters()
	if verdict, _, err := bpftest.RunFrame(b.objs.Divert, 1, 0, f); err != nil || verdict != bpftest.Next || moved(before, b.counters()) != "passed_undecided" {
		t.Errorf("verdict %d, %v, %v", verdict, err, b.counters())
	}
}

// TestLanesAreReplacedWhole: those of before are gone, and none is met twice.
func TestLanesAreReplacedWhole(t *testing.T) {
	b := newBench(t, 64, someLanes...)
	b.hear()
	for round := range 5 {
		b.oracle.lanes = []Lane{lane(uint64(100+round), "192.0.2.0/24", "198.51.100.0/24", 80, 0, 0)}
		if round%2 == 1 {
			b.oracle.lanes = append(b.oracle.lanes, someLanes[4:]...)
		}
		must(t, b.SetLanes(b.oracle.lanes))
		for name, f := range cases() {
			b.forgetAll()
			b.both(t, fmt.Sprint(name, ", round ", round), f)
		}
	}
	must(t, b.SetLanes(nil), b.SetLanes(nil))
	var k divertServerKey
	var class uint32
	if it := b.objs.Servers.Iterate(); it.Next(&k, &class) {
		t.Errorf("without lanes there is still %+v", k)
	}
}

func TestLanesThatAreNoneAreRefused(t *testing.T) {
	d := open(t, Config{})
	for _, c := range []struct {
		lane Lane
		want string
	}{
		{lane(9, "192.0.2.1/24", "0.0.0.0/0", 0, 0, 0), "lane 9: the client's prefix is 192.0.2.1/24"},
		{lane(9, "192.0.2.0/24", "198.51.100.1/24", 0, 0, 0), "lane 9: the server's prefix"},
		{lane(9, "192.0.2.0/24", "::/0", 0, 0, 0), "different families"},
		{lane(9, "192.0.2.0/24", "0.0.0.0/0", 0, 4, 2), "slot 4 has more than 2 bits"},
		{lane(9, "192.0.2.0/24", "0.0.0.0/0", 0, 0, 17), "a slot of 17 bits"},
	} {
		if err := d.SetLanes([]Lane{c.lane}); err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("%+v: %v; want %q", c.lane, err, c.want)
		}
	}
	many := make([]Lane, maxRules+1)
	for i := range many {
		many[i] = lane(uint64(i), "0.0.0.0/0", "0.0.0.0/0", uint16(i+1), 0, 0)
	}
	if err := d.SetLanes(many); err == nil {
		t.Errorf("%d lanes between two prefixes are taken", len(many))
	}
	must(t, d.SetLanes(many[1:]))
}
