package host

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// adoption is one that the world's host could take part in.
func adoption() Adoption {
	return Adoption{
		Flow:  Tuple{Proto: sid.TCP, Local: netip.AddrPortFrom(webAddr, 80), Remote: netip.AddrPortFrom(peerP, 4000)},
		Local: Addr{here, 0x8000000000000001}, Peer: Addr{other, 0x8000000000000002},
		Transport: wire.Transport{ClientPort: 4000, ServerPort: 80, MSS: 1440, SndUna: 100, RcvNxt: 900},
	}
}

func TestAnAdoptionThatWouldFailLaterFailsAtOnce(t *testing.T) {
	w := newWorld(t)
	for what, spoil := range map[string]func(*Adoption){
		"a locator of another host": func(a *Adoption) { a.Local.Locator = there },
		"no connection":             func(a *Adoption) { a.Flow.Proto = sid.UDP },
		"small segments":            func(a *Adoption) { a.Transport.MSS = 1219 },
		"a window scale":            func(a *Adoption) { a.Transport.ClientScale = 15 },
		"another port":              func(a *Adoption) { a.Transport.ServerPort = 81 },
	} {
		a := adoption()
		spoil(&a)
		if err := w.edge.Adopt(a); err == nil {
			t.Errorf("%s: adopted", what)
		}
	}
	if n, err := w.edge.Count(); n != 0 || err != nil {
		t.Errorf("%d flows, %v; want none", n, err)
	}
}

func TestAnAdoptionTakesOnlyWhatBeginsIt(t *testing.T) {
	w := newWorld(t)
	a := adoption()
	must(t, w.edge.Adopt(a))
	for _, p := range []struct {
		flags    uint8
		seq, ack uint32
	}{{bpftest.ACK, 101, 900}, {bpftest.ACK, 100, 899}, {bpftest.ACK, 99, 900}, {bpftest.SYN, 100, 900},
		{bpftest.ACK | bpftest.FIN, 100, 900}, {bpftest.RST, 100, 900}} {
		packet := tcp(a.Peer.IP(), a.Local.IP(), 4000, 80, p.flags, p.seq, p.ack).Bytes()
		r, err := bpftest.Run(w.edge.programs[ethernetLen].EdgeIngress, testUplink, packet)
		if err != nil || r.Verdict != bpftest.Shot {
			t.Errorf("flags %#x seq %d ack %d: %v %v, want it dropped", p.flags, p.seq, p.ack, r, err)
		}
	}
	c, err := w.edge.Counters()
	if err != nil || c["drop_adopting"] != 6 {
		t.Errorf("%d packets counted, %v; want 6", c["drop_adopting"], err)
	}
}

// The process may die between the offer and the first segment. Another instance can go on from there, so the daemon is
// told; only where there is none does the client's program hear of it.
func TestAnAdoptionWithoutAListenerIsNoResetWhileTheDaemonReads(t *testing.T) {
	w := newWorld(t)
	a := adoption()
	must(t, w.edge.Adopt(a))
	first := tcp(a.Peer.IP(), a.Local.IP(), 4000, 80, bpftest.ACK, 100, 900).Bytes()
	run := func() bpftest.Result {
		t.Helper()
		r, err := bpftest.Run(w.edge.programs[ethernetLen].EdgeIngress, testUplink, first)
		must(t, err)
		return r
	}
	if r := run(); r.Verdict != bpftest.Redirect {
		t.Errorf("without a daemon: %v, want an RST back", r)
	}
	must(t, w.edge.Beat())
	for range 2 { // told once
		if r := run(); r.Verdict != bpftest.Shot {
			t.Errorf("with a daemon: %v, want it dropped", r)
		}
	}
	e, err := w.edge.ReadEvent()
	if err != nil || e.Kind != Died || e.Tuple != a.Flow {
		t.Errorf("%+v, %v: want that the process died, of %v", e, err, a.Flow)
	}
	if w.edge.Unread() {
		t.Error("told twice")
	}
}

func TestAnAdoptionThatDoesNotBeginEnds(t *testing.T) {
	w := newWorld(t)
	a := adoption()
	must(t, w.edge.Adopt(a))
	if _, err := w.edge.Sweep(nil); err != nil {
		t.Fatal(err)
	}
	if f, ok, err := w.edge.Lookup(a.Flow); !ok || err != nil || f.ID != a.Local.Socket || f.WirePeer.Addr() != a.Peer.IP() {
		t.Fatalf("adopted: %+v %v %v", f, ok, err)
	}
	id := network(uint64(a.Local.Socket))
	must(t, w.edge.maps.Adoptions.Put(id, &edgeAdoption{Until: 1}))
	if _, err := w.edge.Sweep(nil); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := w.edge.Lookup(a.Flow); ok {
		t.Error("its flow is still there")
	}
	if err := w.edge.maps.Adoptions.Lookup(id, new(edgeAdoption)); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("its record: %v", err)
	}
}

func TestAHostTellsWhetherItCanAdopt(t *testing.T) {
	e := newEdge(t, Config{})
	if err := e.CanAdopt(); err != nil {
		t.Logf("this kernel cannot: %v", err)
	}
	t.Setenv(features.Pretend, "adopting")
	if err := e.CanAdopt(); err == nil {
		t.Error("a kernel that lacks it can adopt")
	}
}
