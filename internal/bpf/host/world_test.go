package host

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// The world of the vectors: a host with two locators of which one is old, and two services.
const testUplink = 1 // the loopback exists in every namespace

var (
	space    = sid.DefaultSpace()
	here     = space.Locator(0x101)
	old      = space.Locator(0x102)
	there    = space.Locator(0x201)
	other    = space.Locator(0x202)
	web      = sid.ServiceID{SS: 1, Suffix: 0x00c0ffee00c0ffee}
	dns      = sid.ServiceID{SS: 1, Suffix: 0x00d00d0000d00d00}
	absent   = sid.ServiceID{SS: 2, Suffix: 0x00aa00aa00aa00aa}
	webAddr  = space.ServiceAddr(web)
	dnsAddr  = space.ServiceAddr(dns)
	nowhere  = space.ServiceAddr(absent)
	peerP    = there.Addr(0x8123456789abcdef)
	peerQ    = other.Addr(0xfedcba9876543210)
	testKey  = [2]uint64{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	testTime = time.Unix(1_000_000_000, 0)
)

// A world is the edge and its oracle, side by side.
type world struct {
	t    tester
	edge *Edge
	flow *flow.Machine
	told bool
	// dying makes what is sent come from the socket of a process that died.
	dying bool
	// carried makes it come from an agent of boost on the same machine.
	carried bool
	idled   time.Duration // how much older the flows were made
	packet  uint64
}

// socket is another one for each packet, as it is when the kernel runs a program on one.
func (w *world) socket() uint64 { w.packet++; return w.packet }

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

// newWorld loads the edge once; reset makes it new for the next vector.
func newWorld(t testing.TB) *world {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	e := newEdge(t, Config{})
	pinToCPU(t)
	w := &world{t: t, edge: e}
	w.reset(t)
	return w
}

// pinToCPU keeps the counter of socketIDs on one CPU.
func pinToCPU(t testing.TB) {
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	one.Set(0)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatalf("stay on CPU 0, so that socketIDs repeat: %v", err)
	}
	t.Cleanup(func() { unix.SchedSetaffinity(0, &before) })
}

func (w *world) reset(t tester) {
	w.t, w.told, w.dying, w.carried, w.idled = t, false, false, false, 0
	for _, m := range []*ebpf.Map{w.edge.maps.EgressFlows, w.edge.maps.EgressHalf, w.edge.maps.Answers} {
		empty(t, m, new(edgeFlowKey))
	}
	for _, m := range []*ebpf.Map{w.edge.maps.IngressFlows, w.edge.maps.IngressHalf, w.edge.maps.Services, w.edge.maps.FormerIds, w.edge.maps.Strays} {
		empty(t, m, new(uint64))
	}
	empty(t, w.edge.maps.Guards, new(edgeAccessKey))
	clear(w.edge.access)
	empty(t, w.edge.maps.Fragments, new([40]byte))
	empty(t, w.edge.maps.Policies, new([16]byte))
	empty(t, w.edge.maps.Instances, new(edgeInstanceKey))
	cpus, err := ebpf.PossibleCPU()
	must(t, err)
	must(t, w.edge.maps.Ids.Put(uint32(0), make([]uint64, cpus)))
	must(t, w.edge.maps.Places.Put(uint32(0), &edgePlace{}))
	for i := range uint32(4) {
		must(t, w.edge.maps.Meters.Put(i, &edgeMeter{}))
	}
	for i := range uint32(16) {
		must(t, w.edge.maps.Budgets.Put(i, &edgeMeter{}))
	}
	for _, l := range []sid.Locator{here, there, other, 0} {
		must(t, w.edge.maps.Credits.Put(uint32(uint16(l)), uint64(0)))
	}
	w.edge.secret = testKey
	clear(w.edge.peers.memory)
	tags, none := make([]uint32, 4096), make([][16]byte, 4096)
	for i := range tags {
		tags[i] = uint32(i)
	}
	_, err = w.edge.maps.Tags.BatchUpdate(tags, none, nil)
	must(t, err)
	w.tell(false)
	w.flow = flow.New(flow.Config{Space: space, Key: testKey, NewID: (&flow.IDs{Key: testKey}).New})
	w.uplink(here, 1400)
	w.accept(here)
	w.accept(old)
	w.admit(sid.Triple{Service: web, Proto: sid.TCP, Port: 80})
	w.admit(sid.Triple{Service: dns, Proto: sid.UDP, Port: 53})
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func empty(t tester, m *ebpf.Map, key any) {
	t.Helper()
	for {
		err := m.NextKey(nil, key)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return
		}
		must(t, err)
		must(t, m.Delete(key))
	}
}

// tell makes the edge believe that somebody reads its events.
func (w *world) tell(told bool) {
	c := edgeHostConfig{Abi: abiVersion, Secret: testKey}
	if told {
		c.Heartbeat = ktime.Now()
	}
	must(w.t, w.edge.maps.Config.Put(uint32(0), &c))
	w.told = told
	if w.flow != nil {
		w.flow.SetTold(told)
	}
}

func (w *world) uplink(l sid.Locator, mtu uint16) { w.uplinkAt(testUplink, l, mtu) }

// uplinkAt sets any uplink; packets are sent by testUplink.
func (w *world) uplinkAt(n int, l sid.Locator, mtu uint16) {
	router := netip.MustParseAddr("fe80::1")
	must(w.t, w.edge.SetUplink(n, Uplink{Locator: l, MTU: mtu, Router: router}))
	must(w.t, w.flow.SetUplink(n, flow.Uplink{Locator: l, MTU: mtu}))
}

func (w *world) quiet(l sid.Locator, yes bool) {
	must(w.t, w.edge.Quiet(l, yes))
	w.flow.Quiet(l, yes)
}

// steer does a step on both sides and checks that they agree whether it can be done.
func (w *world) steer(s Step) bool {
	w.t.Helper()
	failed, err := w.edge.Steer([]Step{s})
	must(w.t, err)
	o := flow.Step{Verb: flow.Verb(s.Verb), Local: s.Flow.Local, Remote: s.Flow.Remote, Proto: s.Flow.Proto, From: s.Local.IP()}
	if s.Peer != (Addr{}) {
		o.To = s.Peer.IP()
	}
	err = w.flow.Steer(testTime.Add(w.idled), o)
	if (err == nil) != (len(failed) == 0) {
		w.t.Fatalf("%v of %v -> %v from %v to %v: the oracle says %v, the edge failed %v", s.Verb, s.Flow.Local, s.Flow.Remote, o.From, o.To, err, failed)
	}
	return err == nil
}

func (w *world) accept(l sid.Locator) {
	must(w.t, w.edge.AcceptLocator(l, true))
	w.flow.AcceptLocator(l, true)
}

func (w *world) admit(t sid.Triple) {
	must(w.t, w.edge.Admit(t))
	must(w.t, w.flow.Admit(t))
}

func (w *world) withdraw(t sid.Triple) {
	must(w.t, w.edge.Withdraw(t))
	w.flow.Withdraw(t)
}

func (w *world) policy(id sid.ServiceID, p Policy) {
	must(w.t, w.edge.SetService(id, p))
	must(w.t, w.flow.SetService(id, flow.Policy{Datagrams: flow.Datagrams(p.Datagrams), DSCP: p.DSCP}))
}

// access says who may connect on both sides.
func (w *world) access(id sid.ServiceID, g resolve.AccessList) {
	w.t.Helper()
	must(w.t, w.edge.SetAccess(id, g))
	var allows func(sid.Locator) bool
	if g != nil {
		allows = g.Allows
	}
	must(w.t, w.flow.SetAccess(id, allows))
}

// send and arrive give a packet to both and check that they agree; the oracle's output is returned.
func (w *world) send(b []byte) flow.Output   { w.t.Helper(); return w.step(flow.FromHost, b) }
func (w *world) arrive(b []byte) flow.Output { w.t.Helper(); return w.step(flow.FromWire, b) }

func (w *world) step(from flow.Direction, b []byte) flow.Output {
	w.t.Helper()
	if w.told {
		w.tell(true) // fresh
	}
	w.flow.Handle(testTime.Add(w.idled), flow.Packet{From: from, Uplink: testUplink, Data: b, Dying: w.dying, Forwarded: w.carried, Socket: w.socket()})
	outs := w.flow.Drain()
	if len(outs) != 1 {
		w.t.Fatalf("the oracle gave %d outputs for one packet", len(outs))
	}
	want := outs[0]
	prog := w.edge.programs[ethernetLen].EdgeEgress
	if from == flow.FromWire {
		prog = w.edge.programs[ethernetLen].EdgeIngress
	}
	before, err := w.edge.Counters()
	must(w.t, err)
	mark := uint32(0)
	if w.dying {
		mark = markDying
	}
	if w.carried {
		mark = markCarried
	}
	got, err := bpftest.RunMarked(prog, testUplink, mark, b)
	must(w.t, err)
	after, err := w.edge.Counters()
	must(w.t, err)
	if diff := w.compare(got, want, before, after); diff != "" {
		w.t.Fatalf("%s %x\nprogram: %v %v\noracle:  %v %q %x\n%s", [...]string{"from host", "from wire"}[from], b,
			got, moved(before, after), want.Verdict, want.Reason, want.Data, diff)
	}
	return want
}

func (w *world) compare(got bpftest.Result, want flow.Output, before, after map[string]uint64) string {
	verdicts := map[flow.Verdict]int{flow.Pass: bpftest.Next, flow.Drop: bpftest.Shot, flow.SendBack: bpftest.Redirect, flow.Tell: bpftest.Shot,
		flow.Elsewhere: bpftest.Redirect, flow.Swallow: bpftest.Redirect}
	if got.Verdict != verdicts[want.Verdict] {
		return "verdicts differ"
	}
	if want.Reason != "" && after[want.Reason] == before[want.Reason] {
		return "counter " + want.Reason + " did not move"
	}
	if want.Reason == "" && len(moved(before, after)) > 0 {
		return "a counter moved"
	}
	if answers := w.flow.Answers(); w.told && len(answers) > 0 {
		if ev, ok := w.event(); !ok || ev.Kind != Answered || !bytes.Equal(ev.Packet, answers[0]) {
			return fmt.Sprintf("no event tells of the answer: %+v", ev)
		}
	}
	switch want.Verdict {
	case flow.Drop, flow.Swallow:
		return ""
	case flow.Tell:
		if ev, ok := w.event(); !ok || !bytes.Equal(ev.Packet, want.Data) {
			return fmt.Sprintf("events differ: %x", ev.Packet)
		}
	default:
		if !bytes.Equal(got.Packet, want.Data) {
			return "bytes differ"
		}
		if got.Swapped != (want.Verdict == flow.SendBack) {
			return "MAC addresses"
		}
	}
	return ""
}

func (w *world) event() (Event, bool) {
	w.edge.ring.SetDeadline(time.Now().Add(time.Second))
	r, err := w.edge.ring.Read()
	if err != nil {
		return Event{}, false
	}
	return parseEvent(r.RawSample)
}

func moved(before, after map[string]uint64) (names []string) {
	for name, n := range after {
		if n != before[name] {
			names = append(names, name)
		}
	}
	return names
}

// addrs reads source and destination of an output.
func addrs(o flow.Output) (src, dst netip.Addr) { return bpftest.Addrs(o.Data) }
