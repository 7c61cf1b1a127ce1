package router

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	messages "scaffold.dev/scaffold/wire"
)

var nobody = space.Locator(0x120)

// sender is a flow's end of its own: FAILs are metered by it.
func sender(i int) netip.Addr { return host(0).Addr(uint64(sid.NewSocketID(uint64(0x1000 + i)))) }

func TestWhoSendsToNobodyIsToldSo(t *testing.T) {
	r := ready(t)
	must(t, r.SetGone(nobody, true))
	to := nobody.Addr(uint64(sid.NewSocketID(9)))
	for i, size := range []int{0, 3, 60, 1300} {
		p := syn(sender(i), to, 80)
		p.Payload = make([]byte, size)
		checkFail(t, r, sender(i), p.Bytes())
	}
	rsyn := bpftest.Packet{Src: sender(9), Dst: to, Proto: bpftest.UDP, SPort: sid.Port, DPort: sid.Port, Payload: messages.Probe{}.Append(nil)}
	checkFail(t, r, sender(9), rsyn.Bytes())
	short := bpftest.Packet{Src: sender(10), Dst: to, Proto: bpftest.UDP, SPort: 5, DPort: 6}
	checkFail(t, r, sender(10), short.Bytes())
	if c, _ := r.Counters(); c["answered_gone"] != 6 {
		t.Errorf("counters %v, want 6 answered_gone", c)
	}
}

func checkFail(t *testing.T, r *Resolver, sender netip.Addr, in []byte) {
	t.Helper()
	res := run(t, r, in)
	src, dst := bpftest.Addrs(res.Packet)
	if res.Verdict != bpftest.Redirect || !res.Swapped || src != own.Host() || dst != sender {
		t.Fatalf("%v from %v to %v; want it turned around, from %v to %v", res, src, dst, own.Host(), sender)
	}
	if p := res.Packet; p[6] != bpftest.UDP || !bpftest.ChecksumOK(p) || !bytes.Equal(p[40:44], []byte{23727 >> 8, 23727 & 255, 23727 >> 8, 23727 & 255}) {
		t.Fatalf("%x; want UDP between ports 23727 with a right checksum", p)
	}
	m, err := messages.Parse(res.Packet[48:])
	f, ok := m.(messages.Fail)
	if !ok || f.Reason != messages.HostGone || f.KeyID != 0 || f.Nonce != 0 {
		t.Fatalf("%v, %v: %x; want a FAIL, host gone", m, err, res.Packet[48:])
	}
	quoted := min(len(in), len(f.Quote))
	if !bytes.Equal(f.Quote[:quoted], in[:quoted]) || len(bytes.Trim(f.Quote[quoted:], "\x00")) != 0 {
		t.Errorf("it quotes %x of %x", f.Quote, in)
	}
}

// One end of a flow is told at most every 100 ms, whatever it sends; another one is told all the same.
func TestFailsAreMeteredByFlow(t *testing.T) {
	r := ready(t)
	must(t, r.SetGone(nobody, true))
	to := nobody.Addr(uint64(sid.NewSocketID(9)))
	checkFail(t, r, sender(1), syn(sender(1), to, 80).Bytes())
	if res := run(t, r, syn(sender(1), to, 80).Bytes()); res.Verdict != bpftest.Shot {
		t.Errorf("the second packet within a moment: %v, want it dropped", res)
	}
	checkFail(t, r, sender(2), syn(sender(2), to, 80).Bytes())
	if c, _ := r.Counters(); c["answered_gone"] != 2 || c["dropped_gone_limit"] != 1 {
		t.Errorf("counters %v", c)
	}
}

func TestARedirectGoesBeforeGoneAndBackEndsIt(t *testing.T) {
	r := ready(t)
	must(t, r.SetGone(nobody, true), r.SetRedirect(nobody, host(1)))
	to := uint64(sid.NewSocketID(9))
	res := run(t, r, syn(sender(1), nobody.Addr(to), 80).Bytes())
	if _, dst := bpftest.Addrs(res.Packet); dst != host(1).Addr(to) {
		t.Errorf("%v, want it sent on to %v", res, host(1))
	}
	must(t, r.RemoveRedirect(nobody), r.SetGone(nobody, false))
	in := syn(sender(1), nobody.Addr(to), 80).Bytes()
	if res := run(t, r, in); res.Verdict != bpftest.Next || !bytes.Equal(res.Packet, in) {
		t.Errorf("%v, want it untouched", res)
	}
}

// The kernel answers others: FAIL is for flows of this network only, and never for a daemon's own packets.
func TestSendersWithoutAFlowAreNotTold(t *testing.T) {
	r := ready(t)
	must(t, r.SetGone(nobody, true))
	for name, src := range map[string]netip.Addr{
		"from elsewhere": netip.MustParseAddr("2001:db8::8000:0:0:1"), "from a host itself": host(0).Host(),
	} {
		in := syn(src, nobody.Addr(uint64(sid.NewSocketID(9))), 80).Bytes()
		if res := run(t, r, in); res.Verdict != bpftest.Next || !bytes.Equal(res.Packet, in) {
			t.Errorf("%s: %v, want it untouched", name, res)
		}
	}
}

// A network router passes first packets on, resolved by nobody yet, and sees to what was left.
func TestAPlainRouterOnlySeesToWhatWasLeft(t *testing.T) {
	r := open(t, Config{Plain: true})
	must(t, r.SetLocator(own), r.Commit(1), r.SetGone(nobody, true), r.SetRedirect(host(2), host(1)))
	for name, dst := range map[string]netip.Addr{
		"a service": space.ServiceAddr(web), "a service of the AS": space.Locator(0).Addr(uint64(web.Suffix)),
	} {
		in := syn(from, dst, 80).Bytes()
		if res := run(t, r, in); res.Verdict != bpftest.Next || !bytes.Equal(res.Packet, in) {
			t.Errorf("%s: %v, want it untouched", name, res)
		}
	}
	to := uint64(sid.NewSocketID(9))
	checkFail(t, r, sender(1), syn(sender(1), nobody.Addr(to), 80).Bytes())
	res := run(t, r, syn(sender(1), host(2).Addr(to), 80).Bytes())
	if _, dst := bpftest.Addrs(res.Packet); dst != host(1).Addr(to) || !bpftest.ChecksumOK(res.Packet) {
		t.Errorf("%v, want it sent on to %v", res, host(1))
	}
}

func TestWhatWasLeftIsAdopted(t *testing.T) {
	pin := filepath.Join(nstest.BPFFS, "router-left")
	first := open(t, Config{Pin: pin, Plain: true})
	must(t, first.Commit(1), first.SetGone(nobody, true), first.SetRedirect(host(8), host(9)))
	second := open(t, Config{Pin: pin}) // while the program is there that an interface would keep
	must(t, first.Close(true))
	if gone, on := slices.Collect(second.Gone()), slices.Collect(second.Redirects()); !slices.Equal(gone, []sid.Locator{nobody}) || !slices.Equal(on, []sid.Locator{host(8)}) {
		t.Errorf("adopted gone %v, redirected %v", gone, on)
	}
	must(t, second.SetService(web, Service{}))
	if res := run(t, second, syn(from, space.ServiceAddr(web), 80).Bytes()); res.Verdict != bpftest.Redirect {
		t.Errorf("a service router that took over from a network router: %v, want a refusal", res)
	}
	must(t, second.SetSpace(sid.Space{Services: netip.MustParsePrefix("fd6c::/32"), AS: netip.MustParsePrefix("fd6d:0:1::/48"), Identities: space.Identities}))
	if len(slices.Collect(second.Gone())) != 0 {
		t.Error("what was gone in another network is gone in this one")
	}
}
