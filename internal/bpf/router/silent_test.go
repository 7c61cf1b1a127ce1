package router

import (
	"bytes"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/sid"
)

// meets is where a first packet goes, and its flow label.
func meets(t *testing.T, r *Resolver, p bpftest.Packet) (sid.Locator, sid.Label) {
	t.Helper()
	res := run(t, r, p.Bytes())
	src, dst := bpftest.Addrs(res.Packet)
	if res.Verdict != bpftest.Next || src != p.Src || sid.Low(dst) != uint64(web.Suffix) || !bpftest.ChecksumOK(res.Packet) {
		t.Fatalf("%v from %v to %v, want it for an instance of the service, with a right checksum", res, src, dst)
	}
	return sid.LocatorOf(dst), sid.LabelOf(res.Packet)
}

// TestFirstPacketsPassASilentHostBy whichever router chose it; other flows stay where they were.
func TestFirstPacketsPassASilentHostBy(t *testing.T) {
	for _, proto := range []uint8{bpftest.TCP, bpftest.UDP} {
		r := ready(t)
		first := func(i int, to netip.Addr) bpftest.Packet {
			p := syn(sender(i), to, 80)
			if p.Proto = proto; proto == bpftest.UDP {
				p.Flags, p.DPort = 0, 53
			}
			return p
		}
		const flows = 60
		var before [flows]sid.Locator
		for i := range flows {
			before[i], _ = meets(t, r, first(i, space.ServiceAddr(web)))
		}
		must(t, r.SetSilent(host(0), true), r.SetSilent(host(1), true))
		passed := uint64(0)
		for i := range flows {
			now, label := meets(t, r, first(i, space.ServiceAddr(web)))
			if now != host(2) {
				t.Fatalf("protocol %d: flow %d goes to %v, want %v, who answers", proto, i, now, host(2))
			}
			if before[i] == host(2) {
				if label != 0 {
					t.Errorf("flow %d was for one who answers, and has the label %#x", i, label)
				}
				continue
			}
			passed++
			if last := label.Refuser(); label.Retry() == 0 || last != uint16(host(0)) && last != uint16(host(1)) {
				t.Errorf("flow %d: label %#x, want it to name a silent host", i, label)
			}
			// The router before has chosen.
			if at, _ := meets(t, r, first(i, before[i].Addr(uint64(web.Suffix)))); at != host(2) {
				t.Errorf("flow %d, which was for %v, goes to %v, want %v", i, before[i], at, host(2))
			}
			passed++
		}
		if c, _ := r.Counters(); passed == 0 || c["resolved_past_silent"] != passed {
			t.Errorf("counters %v, want %d past silent hosts", c, passed)
		}
		must(t, r.SetSilent(host(0), false), r.SetSilent(host(1), false))
		for i := range flows {
			if now, _ := meets(t, r, first(i, space.ServiceAddr(web))); now != before[i] {
				t.Errorf("flow %d goes to %v again, want %v", i, now, before[i])
			}
		}
	}
}

// TestASilentHostThatNobodyReplacesGetsItsPackets: it may be the prober that is late.
func TestASilentHostThatNobodyReplacesGetsItsPackets(t *testing.T) {
	r := ready(t)
	for i := range 3 {
		must(t, r.SetSilent(host(i), true))
	}
	meets(t, r, syn(sender(1), space.ServiceAddr(web), 80))
	must(t, r.SetTable(webTCP, targets(1)), r.SetSilent(host(1), false), r.SetSilent(host(2), false))
	if at, _ := meets(t, r, syn(sender(1), space.ServiceAddr(web), 80)); at != host(0) {
		t.Errorf("it goes to %v, want %v, the only one", at, host(0))
	}
	asked := syn(sender(1), host(0).Addr(uint64(web.Suffix)), 53)
	asked.FlowLabel = uint32(sid.NewLabel(host(0), sid.MaxRetry))
	for name, p := range map[string]bpftest.Packet{
		"the only one's":               syn(sender(1), host(0).Addr(uint64(web.Suffix)), 80),
		"a bound flow's":               syn(sender(1), host(0).Addr(uint64(sid.NewSocketID(9))), 80),
		"the host's own":               syn(sender(1), host(0).Host(), 80),
		"of a service that is unknown": syn(sender(1), host(0).Addr(0x123456), 80),
		"sent to this host itself":     asked,
	} {
		in := p.Bytes()
		if res := run(t, r, in); res.Verdict != bpftest.Next || !bytes.Equal(res.Packet, in) {
			t.Errorf("a packet %s: %v, want it untouched", name, res)
		}
	}
}

// TestARouterThatResolvesNothingGivesASilentHostsPacketsBack to one that does, which chooses somebody else.
func TestARouterThatResolvesNothingGivesASilentHostsPacketsBack(t *testing.T) {
	plain := open(t, Config{Plain: true})
	must(t, plain.SetLocator(own), plain.Commit(1), plain.SetSilent(host(0), true))
	p := syn(sender(1), host(0).Addr(uint64(web.Suffix)), 80)
	res := run(t, plain, p.Bytes())
	_, dst := bpftest.Addrs(res.Packet)
	if label := sid.LabelOf(res.Packet); res.Verdict != bpftest.Next || dst != space.Locator(0).Addr(uint64(web.Suffix)) ||
		label != sid.NewLabel(host(0), 1) || !bpftest.ChecksumOK(res.Packet) {
		t.Fatalf("%v to %v with label %#x, want it for any instance, as if %v had returned it", res, dst, label, host(0))
	}
	r := ready(t)
	res = run(t, r, res.Packet)
	if _, dst := bpftest.Addrs(res.Packet); sid.LocatorOf(dst) == host(0) || sid.Low(dst) != uint64(web.Suffix) {
		t.Errorf("it goes to %v, want another instance than %v", dst, host(0))
	}
	returned := syn(sender(1), host(0).Addr(uint64(web.Suffix)), 80)
	returned.FlowLabel = uint32(sid.NewLabel(host(1), 2))
	for name, p := range map[string]bpftest.Packet{
		"one that somebody has returned": returned, // who did would get it again
		"a bound flow's":                 syn(sender(1), host(0).Addr(uint64(sid.NewSocketID(9))), 80),
		"the host's own":                 syn(sender(1), host(0).Host(), 80),
		"for another host":               syn(sender(1), host(1).Addr(uint64(web.Suffix)), 80),
	} {
		in := p.Bytes()
		if res := run(t, plain, in); res.Verdict != bpftest.Next || !bytes.Equal(res.Packet, in) {
			t.Errorf("a packet %s: %v, want it untouched", name, res)
		}
	}
}

// TestWhoReturnedAPacketDoesNotGetItInASilentHostsPlace: with nobody else left, the silent host gets it, which may be back.
func TestWhoReturnedAPacketDoesNotGetItInASilentHostsPlace(t *testing.T) {
	r := ready(t)
	must(t, r.SetTable(webTCP, targets(1, 1)), r.SetSilent(host(0), true))
	for i := range 40 {
		p := syn(sender(i), space.ServiceAddr(web), 80)
		p.FlowLabel = uint32(sid.NewLabel(host(1), 1))
		if at, label := meets(t, r, p); at != host(0) || label != sid.NewLabel(host(1), 1) {
			t.Errorf("flow %d, which %v returned, goes to %v with label %#x, want %v as if nobody were silent", i, host(1), at, label, host(0))
		}
		at := p // another router chose the silent host
		at.Dst = host(0).Addr(uint64(web.Suffix))
		if to, _ := meets(t, r, at); to != host(0) {
			t.Errorf("flow %d, which %v returned and which was for %v, goes to %v", i, host(1), host(0), to)
		}
	}
	must(t, r.SetTable(webTCP, targets(1, 1, 1)))
	for i := range 40 {
		p := syn(sender(i), space.ServiceAddr(web), 80)
		p.FlowLabel = uint32(sid.NewLabel(host(1), 1))
		if at, _ := meets(t, r, p); at != host(2) {
			t.Errorf("flow %d goes to %v, want %v: one has returned it, one is silent", i, at, host(2))
		}
	}
}

// TestSilenceEndsWithWhoeverSaysSo: without a daemon nobody sees that a host is back.
func TestSilenceEndsWithWhoeverSaysSo(t *testing.T) {
	r := ready(t)
	must(t, r.SetTable(webTCP, targets(1, 1)), r.SetSilent(host(0), true), r.RenewSilent())
	p := syn(sender(1), host(0).Addr(uint64(web.Suffix)), 80)
	if at, _ := meets(t, r, p); at != host(1) {
		t.Fatalf("it goes to %v, want %v, who answers", at, host(1))
	}
	must(t, r.objs.Silent.Put(uint64(host(0)), silentUntil()-uint64(2*silentFor))) // as time does
	if at, _ := meets(t, r, p); at != host(0) {
		t.Errorf("it goes to %v, want %v: nobody has said for long that it is silent", at, host(0))
	}
	must(t, r.RenewSilent())
	if at, _ := meets(t, r, p); at != host(1) {
		t.Errorf("it goes to %v, want %v, who answers", at, host(1))
	}
}
