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
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/nstest"
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
	to = append(to, netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("ff02::1"))
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

func newKernel(t *testing.T) *kernel {
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
		errs = append(errs, r.SetTable(x.Triple, resolveTargets(x.Targets)))
	}
	errs = append(errs, r.SetRedirect(movedLoc, movedTo), r.SetGone(goneLoc, true))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func resolveTargets(targets []plan.Target) (all []resolve.Target) {
	for _, x := range targets {
		all = append(all, resolve.Target(x))
	}
	return all
}

// fate is what became of a packet: the counter that moved, and what is sent.
func (k *kernel) fate(t *testing.T, packet []byte) (reason string, r bpftest.Result) {
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
		reason, r := k.fate(t, p)
		if len(p) < ipv6Len || reason == "" {
			continue
		}
		// The kernel's clock and ours differ: of those who were told lately all know, and the test waits for none.
		if reason == "dropped_gone_limit" {
			a.told.lately(noon, netip.AddrFrom16([16]byte(p[8:24])))
		} else if reason == "answered_gone" {
			a.told = told{}
		}
		var got Answer
		mine := counted(t, a, func() { got = a.Answer(noon.Add(time.Duration(i)*time.Microsecond), ByAddress, framed(p)) })
		if mine != reason {
			t.Fatalf("seed %d: packet %d: the kernel says %s, we %q: %x", seed, i, reason, mine, p)
		}
		seen[reason]++
		switch {
		case r.Verdict == bpftest.Shot:
			if got.Frame != nil {
				t.Fatalf("seed %d: packet %d: the kernel drops %x", seed, i, p)
			}
		case got.Frame == nil || got.Back != (r.Verdict == bpftest.Redirect) || !bytes.Equal(got.Frame[ethernetLen:], r.Packet):
			t.Fatalf("seed %d: packet %d (%s): %x\nkernel %v\nwe     %x", seed, i, reason, p, r, got.Frame)
		}
	}
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
