package answers

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/router"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// vectors are packets of all kinds that a router's tables may punt, and some that they do not.
func vectors() (all [][]byte) {
	lower := []uint64{uint64(web.Suffix), uint64(forbidden.Suffix), uint64(empty.Suffix), 0x77777, 1 << 63, 1<<63 | 5, 1}
	var to []netip.Addr
	for _, low := range lower {
		for _, l := range []sid.Locator{plain.Locator(0), movedLoc, goneLoc, plain.Locator(0x777), sid.LocatorOf(plain.ServiceAddr(web)), sid.LocatorOf(plain.ServiceAddr(web)) + 1} {
			to = append(to, l.Addr(low))
		}
	}
	to = append(to, netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("ff02::1"), plain.Locator(0x301).Addr(lower[0]), plain.Locator(0x302).Addr(lower[0]))
	from := []netip.Addr{client, clientLoc.Addr(7), netip.MustParseAddr("2001:db8::2"), netip.IPv6Unspecified(), netip.MustParseAddr("ff05::2")}
	options := []byte{6, 0, 1, 4, 0, 0, 0, 0}
	for i, dst := range to {
		src := from[0]
		if i%5 == 4 {
			src = from[i%len(from)]
		}
		for _, p := range []bpftest.Packet{
			{Proto: bpftest.TCP, DPort: 80, Flags: bpftest.SYN}, {Proto: bpftest.TCP, DPort: 81, Flags: bpftest.SYN, Payload: make([]byte, 301)},
			{Proto: bpftest.TCP, DPort: 80, FlowLabel: 2, Options: make([]byte, 40)}, {Proto: bpftest.TCP, DPort: 80, HopLimit: 1},
			{Proto: bpftest.UDP, DPort: 53, Payload: []byte("question")}, {Proto: bpftest.UDP, DPort: 54, Payload: []byte("q"), FlowLabel: 3},
			{Proto: bpftest.ICMPv6, Type: 128, Payload: []byte("ping")}, {Proto: bpftest.ICMPv6, Type: 1, Payload: make([]byte, 60)},
			{Proto: 132, Payload: make([]byte, 20)}, {Proto: bpftest.TCP, DPort: 80, FirstExt: 60, Extensions: options}, {Proto: bpftest.TCP, DPort: 80, BadChecksum: true},
		} {
			p.Src, p.Dst = src, dst
			all = append(all, p.Bytes())
		}
		whole := bpftest.Packet{Src: src, Dst: dst, Proto: bpftest.UDP, DPort: 53, Payload: make([]byte, 1000)}.Bytes()
		for _, where := range []uint16{1, 512 | 1, 512} { // first, between, last
			b := append(append(append([]byte{}, whole[:40]...), bpftest.UDP, 0, byte(where>>8), byte(where), 0, 0, 0, 9), whole[40:552]...)
			b[6] = bpftest.Fragment
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			all = append(all, b)
		}
	}
	return append(all, all[0][:40], all[0][:50], all[4][:44])
}

// A kernel is the program of a Linux router with the rules of the tests.
type kernel struct {
	*router.Resolver
	counts map[string]uint64
}

func newKernel(t testing.TB) *kernel {
	nstest.Root(t)
	r, err := router.Open(router.Config{Space: plain})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(false) })
	k := &kernel{Resolver: r}
	errs := []error{r.SetLocator(ownLoc), r.Commit(1)}
	for _, x := range testRules().Services {
		errs = append(errs, r.SetService(x.Service, router.Service{Instances: x.Instances, Forbidden: x.Forbidden}))
	}
	for _, x := range testRules().Resolutions {
		errs = append(errs, r.SetTable(x.Triple, x.Targets))
	}
	errs = append(errs, r.SetRedirect(movedLoc, movedTo), r.SetGone(goneLoc, true))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// fate is what became of a packet: the counter that moved, and what is sent.
func (k *kernel) fate(t testing.TB, packet []byte) (reason string, r bpftest.Result) {
	t.Helper()
	r, err := bpftest.Run(k.Program(), 1, packet)
	if err != nil {
		t.Fatal(err)
	}
	now, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range now {
		if n != k.counts[name] && k.counts != nil {
			reason = name
		}
	}
	k.counts = now
	return reason, r
}

// TestAnswersAsTheKernel runs the vectors, and changed ones, through the program of a Linux router too. Where that
// leaves a packet to the kernel, the kernel's part is ours alone.
func TestAnswersAsTheKernel(t *testing.T) {
	k := newKernel(t)
	a := testAnswers()
	seen := k.agreesOnMany(t, a)
	for _, reason := range []string{"resolved", "redirected", "refused_unknown", "refused_forbidden", "refused_no_instance", "refused_no_port",
		"expired_hop_limit", "dropped_malformed", "dropped_icmp", "answered_gone", "dropped_gone_limit"} {
		if seen[reason] == 0 {
			t.Errorf("no packet was %s", reason)
		}
	}
	t.Log(seen)
	names, _ := k.Counters()
	for name := range a.counts {
		if _, ok := names[name]; !ok && name != "refused_no_route" && name != "refused_not_served" && name != "answered_echo" {
			t.Errorf("a Linux router does not count %s", name)
		}
	}
}

// TestAnswersAsTheKernelPastSilentHosts, of which there are one, two, and as many as serve.
func TestAnswersAsTheKernelPastSilentHosts(t *testing.T) {
	for n := uint16(1); n <= 3; n++ {
		k, a := newKernel(t), testAnswers()
		for i := range n {
			k.silences(t, a, plain.Locator(0x301+i))
		}
		seen := k.agreesOnMany(t, a)
		if passed := seen["resolved_past_silent"]; (passed > 0) != (n < 3) {
			t.Errorf("%d of 3 are silent, and %d packets passed them by", n, passed)
		}
	}
}

func (k *kernel) silences(t testing.TB, a *Answers, l sid.Locator) {
	t.Helper()
	if err := k.SetSilent(l, true); err != nil {
		t.Fatal(err)
	}
	a.SetSilent(l, true)
}

// agreesOnMany gives vectors, and changed ones, to both, and returns how many met which fate.
func (k *kernel) agreesOnMany(t *testing.T, a *Answers) map[string]int {
	t.Helper()
	k.fate(t, vectors()[0])
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	all := vectors()
	for range 1500 {
		p := bytes.Clone(all[random.IntN(len(vectors()))])
		for range 1 + random.IntN(3) {
			at := random.IntN(len(p))
			if at == 4 || at == 5 {
				continue // a length that is too short would only be cut off differently
			}
			p[at] = byte(random.Uint32())
		}
		all = append(all, p)
	}
	// Random bytes in the upper half of an address rarely fit.
	seen := map[string]int{}
	for i, p := range all {
		if i%100 == 0 { // a daemon does each second
			if err := k.RenewSilent(); err != nil {
				t.Fatal(err)
			}
		}
		if reason := k.agrees(t, a, noon.Add(time.Duration(i)*time.Microsecond), p); reason != "" {
			seen[reason]++
		}
		if t.Failed() {
			t.Fatalf("seed %d: packet %d", seed, i)
		}
	}
	return seen
}

// agrees gives the packet to both and returns what was counted: "" where the program leaves it to the kernel.
func (k *kernel) agrees(t *testing.T, a *Answers, now time.Time, p []byte) (reason string) {
	t.Helper()
	reason, r := k.fate(t, p)
	if len(p) < ipv6Len || reason == "" {
		return ""
	}
	// The kernel's clock and ours differ: of those who were told lately all know, and the test waits for none.
	if reason == "dropped_gone_limit" {
		a.told.lately(now, netip.AddrFrom16([16]byte(p[8:24])))
	} else if reason == "answered_gone" {
		a.told = told{}
	}
	var got Answer
	mine := counted(t, a, func() { got = a.Answer(now, ByAddress, framed(p)) })
	switch {
	case mine != reason:
		t.Errorf("the kernel says %s, we %q: %x", reason, mine, p)
	case r.Verdict == bpftest.Shot:
		if got.Frame != nil {
			t.Errorf("the kernel drops %x", p)
		}
	case got.Frame == nil || got.Back != (r.Verdict == bpftest.Redirect) || !bytes.Equal(got.Frame[ethernetLen:], r.Packet):
		t.Errorf("%s: %x\nkernel %v\nwe     %x", reason, p, r, got.Frame)
	}
	return reason
}

// FuzzAnswersAsTheKernel is the same with whatever bytes: the parsers of a router's program against this package.
func FuzzAnswersAsTheKernel(f *testing.F) {
	k, a := newKernel(f), testAnswers()
	for _, p := range vectors() {
		f.Add(p)
	}
	now := noon
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) < ipv6Len || len(p) > 1500 || int(binary.BigEndian.Uint16(p[4:])) != len(p)-ipv6Len {
			return // BPF_PROG_TEST_RUN wants a whole header; a kernel cuts or drops what says another length
		}
		p = bytes.Clone(p)
		p[0] = 6<<4 | p[0]&0xf
		if k.counts == nil {
			k.fate(t, p)
		}
		now = now.Add(time.Millisecond) // both have limits a second
		k.agrees(t, a, now, p)
	})
}
