package answers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/packet/checksum"
	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// What the tests' rules are about.
var (
	plain     = sid.DefaultSpace()
	ownLoc    = plain.Locator(0x100)
	web       = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
	forbidden = sid.ServiceID{SS: 1, Suffix: 0x10001}
	empty     = sid.ServiceID{SS: 1, Suffix: 0x10002}
	movedLoc  = plain.Locator(0x401)
	movedTo   = plain.Locator(0x501)
	goneLoc   = plain.Locator(0x402)
	clientLoc = plain.Locator(0x202)
	client    = clientLoc.Addr(0x8000_1234_5678_9abc)
	noon      = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// someTargets are hosts with those weights.
func someTargets(weights ...uint32) (all []resolve.Target) {
	for i, w := range weights {
		all = append(all, resolve.Target{Locator: plain.Locator(uint16(0x301 + i)), Weight: w})
	}
	return all
}

// testRules have web on TCP 80, UDP 53 and any port, and fewer for fragments.
func testRules() plan.Rules {
	triple := func(p sid.Proto, port uint16) sid.Triple { return sid.Triple{Service: web, Proto: p, Port: port} }
	return plan.Rules{
		Services: []plan.ServiceRule{{Service: web, Instances: 3}, {Service: forbidden, Instances: 1, Forbidden: true}, {Service: empty}},
		Resolutions: []plan.Resolution{{Triple: triple(sid.TCP, 80), Targets: someTargets(1, 2, 3)}, {Triple: triple(sid.UDP, 53), Targets: someTargets(3, 2, 1)},
			{Triple: triple(sid.UDP, 0), Targets: someTargets(1, 1)}, {Triple: triple(0, 0), Targets: someTargets(1, 1, 1)}},
		Redirects: []plan.Redirect{{From: movedLoc, To: movedTo}},
		Gone:      []plan.Gone{{Locator: goneLoc}},
	}
}

func testAnswers() *Answers {
	a := New()
	a.SetRouter(plain, ownLoc, true)
	a.Begin()
	a.Apply(testRules())
	a.Commit()
	return a
}

// framed is the packet as a switch punts it.
func framed(packet []byte) []byte {
	f := make([]byte, ethernetLen, ethernetLen+len(packet))
	copy(f, bpftest.DstMAC[:])
	copy(f[6:], bpftest.SrcMAC[:])
	binary.BigEndian.PutUint16(f[12:], header.EtherIPv6)
	return append(f, packet...)
}

func synTo(dst netip.Addr, port uint16) bpftest.Packet {
	return bpftest.Packet{Src: client, Dst: dst, Proto: bpftest.TCP, SPort: 40000, DPort: port, Flags: bpftest.SYN}
}

// counted is the reason that went up by one.
func counted(t *testing.T, a *Answers, f func()) string {
	t.Helper()
	before := map[string]uint64{}
	for k, v := range a.counts {
		before[k] = v
	}
	f()
	found := ""
	for k, v := range a.counts {
		if v != before[k] {
			if found != "" || v != before[k]+1 {
				t.Errorf("%s and %s were counted", found, k)
			}
			found = k
		}
	}
	return found
}

func TestAnswers(t *testing.T) {
	echo := bpftest.Packet{Src: client, Dst: ownLoc.Host(), Proto: bpftest.ICMPv6, Type: 128, Word: 7, Payload: []byte("ping")}
	mistake := bpftest.Packet{Src: client, Dst: goneLoc.Addr(9), Proto: bpftest.ICMPv6, Type: 1, Payload: make([]byte, 48)}
	foreign := synTo(goneLoc.Addr(9), 80)
	foreign.Src = netip.MustParseAddr("2001:db8::1")
	for name, c := range map[string]struct {
		class  Class
		packet bpftest.Packet
		reason string
		icmp   []byte // type and code
	}{
		"unknown":              {ByAddress, synTo(plain.ServiceAddr(sid.ServiceID{SS: 9, Suffix: web.Suffix}), 80), "refused_unknown", []byte{1, 0}},
		"forbidden":            {ByAddress, synTo(plain.ServiceAddr(forbidden), 80), "refused_forbidden", []byte{1, 1}},
		"no instance":          {ByAddress, synTo(plain.ServiceAddr(empty), 80), "refused_no_instance", []byte{1, 3}},
		"no port":              {ByAddress, synTo(plain.ServiceAddr(web), 81), "refused_no_port", []byte{1, 4}},
		"no port in the AS":    {ByAddress, synTo(plain.Locator(0).Addr(uint64(web.Suffix)), 81), "refused_no_port", []byte{1, 4}},
		"hop limit":            {HopLimit, synTo(movedLoc.Addr(1<<63), 81), "expired_hop_limit", []byte{3, 0}},
		"no route":             {NoRoute, synTo(plain.Locator(0x999).Addr(1<<63), 81), "refused_no_route", []byte{1, 0}},
		"no route for errors":  {NoRoute, mistake, "dropped_malformed", nil},
		"gone, not for a flow": {ByAddress, foreign, "refused_no_route", []byte{1, 0}},
		"ping":                 {Addressed, echo, "answered_echo", []byte{129, 0}},
		"a port of the router": {Addressed, synTo(ownLoc.Host(), 22), "refused_not_served", []byte{1, 4}},
		"back again":           {ByAddress, synTo(plain.Locator(0x403).Addr(1<<63), 1), "", nil},
	} {
		a := testAnswers()
		var got Answer
		in := c.packet.Bytes()
		if reason := counted(t, a, func() { got = a.Answer(noon, c.class, framed(in)) }); reason != c.reason {
			t.Errorf("%s: counted as %q, want %q", name, reason, c.reason)
		}
		if c.icmp == nil {
			if got.Frame != nil {
				t.Errorf("%s: answered with % x", name, got.Frame)
			}
			continue
		}
		if got.Frame == nil || !got.Back {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		ip := got.Frame[ethernetLen:]
		src, dst := bpftest.Addrs(ip)
		if src != ownLoc.Host() || dst != c.packet.Src || !bytes.Equal(ip[40:42], c.icmp) || !bpftest.ChecksumOK(ip) {
			t.Errorf("%s: % x", name, ip)
		}
		if !bytes.Equal(got.Frame[:6], bpftest.SrcMAC[:]) || !bytes.Equal(got.Frame[6:12], bpftest.DstMAC[:]) {
			t.Errorf("%s: not turned around", name)
		}
		if c.icmp[0] != 129 && !bytes.HasPrefix(in, ip[48:]) || c.icmp[0] == 129 && !bytes.Equal(ip[44:], in[44:]) {
			t.Errorf("%s: quotes % x", name, ip[48:])
		}
	}
}

// TestRetriesMeetTheOracle: what was returned meets whom internal/core/resolve says.
func TestRetriesMeetTheOracle(t *testing.T) {
	a := testAnswers()
	targets := someTargets(1, 2, 3)
	table, err := resolve.New(targets)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(200) {
		p := synTo(plain.ServiceAddr(web), 80)
		p.Src = clientLoc.Addr(1<<63 | i*0x9e3779b97f4a7c15)
		label := sid.NewLabel(targets[i/3%3].Locator, uint8(i&3))
		p.FlowLabel = uint32(label)
		got := a.Answer(noon, ByAddress, framed(p.Bytes()))
		want, _ := table.Choose(p.Src, label)
		if got.Frame == nil || got.Back {
			t.Fatalf("%+v", got)
		}
		if _, dst := bpftest.Addrs(got.Frame[ethernetLen:]); dst != want.Addr(uint64(web.Suffix)) || !bpftest.ChecksumOK(got.Frame[ethernetLen:]) {
			t.Fatalf("sent to %v, want %v", dst, want)
		}
	}
}

// TestARefusalOfWhatWasReturnedFindsItsSender: it is not at the port where the packet came in, so the refusal goes through
// the switch's tables, and these take what is sent to the router's MAC address.
func TestARefusalOfWhatWasReturnedFindsItsSender(t *testing.T) {
	a := testAnswers()
	for retry := range uint8(3) {
		p := synTo(plain.ServiceAddr(web), 81)
		p.FlowLabel = uint32(sid.NewLabel(0, retry))
		frame := framed(p.Bytes())
		macs := append(append([]byte{}, frame[6:12]...), frame[:6]...)
		if retry > 0 {
			macs = bytes.Clone(frame[:12])
		}
		got := a.Answer(noon, ByAddress, frame)
		if got.Frame == nil || got.Back != (retry == 0) || !bytes.Equal(got.Frame[:12], macs) {
			t.Errorf("retry %d: %+v, want it from and to %x", retry, got, macs)
		}
	}
}

// TestHalfChecksumsAreFinished: as senders leave them whose switch carries offloads.
func TestHalfChecksumsAreFinished(t *testing.T) {
	a := testAnswers()
	for _, proto := range []uint8{bpftest.TCP, bpftest.UDP} {
		p := bpftest.Packet{Src: client, Dst: movedLoc.Addr(1 << 63), Proto: proto, SPort: 5, DPort: 53, Payload: []byte("odd")}
		in := p.Bytes()
		at := 40 + map[uint8]int{bpftest.TCP: 16, bpftest.UDP: 6}[proto]
		binary.BigEndian.PutUint16(in[at:], checksum.Fold(checksum.Pseudo(p.Src, p.Dst, proto, len(in)-40)))
		got := a.Answer(noon, ByAddress, framed(in))
		if got.Frame == nil || !bpftest.ChecksumOK(got.Frame[ethernetLen:]) {
			t.Errorf("protocol %d: %x", proto, got.Frame)
		}
		binary.BigEndian.PutUint16(in[24+6:], 0x402) // to where nobody is: quoted as it came, by a packet that is whole
		in[24+6], in[24+7] = 4, 2
		if got := a.Answer(noon, ByAddress, framed(in)); got.Frame == nil || !bpftest.ChecksumOK(got.Frame[ethernetLen:]) {
			t.Errorf("protocol %d: answer %x", proto, got.Frame)
		}
		a.told = told{}
	}
}

func TestFailsSayWhereNobodyIs(t *testing.T) {
	a := testAnswers()
	in := synTo(goneLoc.Addr(1<<63|1), 80).Bytes()
	ask := func(at time.Duration, packet []byte) []byte {
		return a.Answer(noon.Add(at), ByAddress, framed(packet)).Frame
	}
	f := ask(0, in)
	if f == nil {
		t.Fatal("no answer")
	}
	src, dst := bpftest.Addrs(f[ethernetLen:])
	m, err := wire.Parse(f[ethernetLen+48:])
	if fail, ok := m.(wire.Fail); !ok || fail.Reason != wire.HostGone || !bytes.Equal(fail.Quote, in) || src != ownLoc.Host() || dst != client {
		t.Errorf("%+v, %v, from %v to %v", m, err, src, dst)
	}
	if !bpftest.ChecksumOK(f[ethernetLen:]) {
		t.Error("wrong checksum")
	}
	other := synTo(goneLoc.Addr(1<<63|1), 80)
	other.Src = clientLoc.Addr(1<<63 | 77)
	for _, c := range []struct {
		at   time.Duration
		in   []byte
		told bool
	}{{99 * time.Millisecond, in, false}, {99 * time.Millisecond, other.Bytes(), true}, {101 * time.Millisecond, in, true}, {150 * time.Millisecond, in, false},
		{198 * time.Millisecond, other.Bytes(), false}, {210 * time.Millisecond, in, true}} {
		if got := ask(c.at, c.in); (got != nil) != c.told {
			t.Errorf("after %v: %x", c.at, got)
		}
	}
}

// TestAnswersAreLimited, and what remembers who was told is bounded.
func TestAnswersAreLimited(t *testing.T) {
	a := testAnswers()
	frame := framed(synTo(plain.ServiceAddr(empty), 80).Bytes())
	sent := 0
	for i := range 2 * answersMost {
		if a.Answer(noon.Add(time.Duration(i)*time.Microsecond), ByAddress, frame).Frame != nil {
			sent++
		}
	}
	if want := answersMost + 2*answersMost/50; sent < want-2 || sent > want+2 {
		t.Errorf("%d answers, want %d", sent, want)
	}
	if a.counts["dropped_refusal_limit"] != uint64(2*answersMost-sent) {
		t.Errorf("counters %v", a.counts)
	}
	p := synTo(goneLoc.Addr(1<<63|1), 80)
	for i := range uint64(3 * toldMax) {
		p.Src = clientLoc.Addr(1<<63 | i)
		a.Answer(noon, ByAddress, framed(p.Bytes()))
	}
	if n := len(a.told.now) + len(a.told.before); n > 2*toldMax {
		t.Errorf("%d senders are remembered", n)
	}
}

// TestSnapshotRemovesWhatItDoesNotName, and a change leaves the rest alone.
func TestSnapshotRemovesWhatItDoesNotName(t *testing.T) {
	a := testAnswers()
	a.Apply(plan.Rules{Services: []plan.ServiceRule{{Service: forbidden, Gone: true}}, Redirects: []plan.Redirect{{From: movedLoc, Gone: true}}, Gone: []plan.Gone{{Locator: goneLoc, Back: true}}})
	if got := fmt.Sprint(len(a.services), len(a.short), len(a.tables), len(a.redirects), len(a.gone), a.instances); got != "2 2 4 0 0 6" {
		t.Error("after a change:", got)
	}
	a.Begin()
	a.Apply(plan.Rules{Services: []plan.ServiceRule{{Service: web, Instances: 1}}, Resolutions: testRules().Resolutions[:1], Gone: []plan.Gone{{Locator: movedLoc}}})
	a.Commit()
	if got := fmt.Sprint(len(a.services), len(a.short), len(a.tables), len(a.redirects), len(a.gone), a.instances); got != "1 1 1 0 1 3" {
		t.Error("after a snapshot:", got)
	}
}

func TestNothingIsAnsweredBeforeTheFirstCommit(t *testing.T) {
	a := New()
	a.SetRouter(plain, ownLoc, true)
	a.Apply(testRules())
	if got := a.Answer(noon, ByAddress, framed(synTo(plain.ServiceAddr(empty), 80).Bytes())); got.Frame != nil {
		t.Errorf("%x", got.Frame)
	}
}

// FuzzAnswer: whatever is punted, what is sent is a packet with a right checksum.
func FuzzAnswer(f *testing.F) {
	for _, p := range vectors() {
		f.Add(uint8(1), p)
	}
	a := testAnswers()
	f.Fuzz(func(t *testing.T, class uint8, packet []byte) {
		a.refusals, a.fails, a.told = limiter(), limiter(), told{}
		got := a.Decide(noon, Class(class%4), framed(packet))
		if got.To.IsValid() { // the packet itself goes on
			if out := got.packet.sentTo(got.To, got.label); len(out) > ethernetLen+len(packet) {
				t.Errorf("grew to % x", out)
			}
			return
		}
		if got.Frame != nil && (len(got.Frame) > ethernetLen+ipv6Len+28+maxQuote && got.Frame[54] != echoReply || !bpftest.ChecksumOK(got.Frame[ethernetLen:])) {
			t.Errorf("% x", got.Frame)
		}
	})
}

func TestWhoSendsTooMuchIsToldHowMuchFits(t *testing.T) {
	a := testAnswers()
	got := a.TooBig(noon, framed(synTo(plain.Locator(0x301).Addr(1<<63), 80).Bytes()), 1400)
	if got.Frame == nil || got.Back {
		t.Fatalf("got %+v: want an answer that goes through the tables, for the packet was on its way out", got)
	}
	icmp := got.Frame[ethernetLen+ipv6Len:]
	if icmp[0] != icmpTooBig || binary.BigEndian.Uint32(icmp[4:]) != 1400 {
		t.Errorf("the answer begins with % x, want type 2 and 1400", icmp[:8])
	}
	if a.counts["refused_too_big"] != 1 {
		t.Errorf("counted: %v", a.counts)
	}
}
