package host

import (
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// TestAllFlowsThatMoveAreSilentUnderTheirFormerNames: 20,000 flows move at once, and of each a late packet comes to the
// socketID that it gave up. None is told that its flow is gone, which would end it or begin a failover.
func TestAllFlowsThatMoveAreSilentUnderTheirFormerNames(t *testing.T) {
	const flows = 20_000 // an LRU of 16,384 was too small
	e := newEdge(t, Config{MaxFlows: flows})
	must(t, e.SetUplink(testUplink, Uplink{Locator: here}))
	must(t, e.AcceptLocator(here, true))
	var keys []edgeFlowKey
	var outs []edgeEgressFlow
	var ids []uint64
	var ins []edgeIngressFlow
	var steps []Step
	for i := range uint64(flows) {
		key := edgeFlowKey{Local: vid.As16(), Remote: webAddr.As16(), Lport: portBytes(uint16(i)), Rport: portBytes(80), Proto: 6}
		first, next := half(1<<63|i), half(1<<63|1<<40|i)
		keys, outs = append(keys, key), append(outs, edgeEgressFlow{State: uint32(BoundFlow), Role: uint8(Client), Proto: 6, Socket: next, Newest: next, Birth: first})
		ids = append(ids, network(1<<63|i), network(1<<63|1<<40|i))
		in := edgeIngressFlow{Key: key, State: uint32(BoundFlow), Role: uint8(Client), Birth: first}
		newer := in
		newer.Older = first
		ins = append(ins, in, newer)
		steps = append(steps, Step{Verb: Drop, Flow: tupleOf(&key), Local: Addr{here, sid.NewSocketID(i)}})
	}
	_, err := e.maps.EgressFlows.BatchUpdate(keys, outs, nil)
	must(t, err)
	_, err = e.maps.IngressFlows.BatchUpdate(ids, ins, nil)
	must(t, err)
	if failed, err := e.Steer(steps); err != nil || len(failed) > 0 {
		t.Fatalf("%d of %d were not given up: %v", len(failed), flows, err)
	}
	prog := e.programs[ethernetLen].EdgeIngress
	const late = 2000
	for i := range late {
		_, err := bpftest.Run(prog, testUplink, tcp(peerP, here.Addr(1<<63|uint64(i)), 80, uint16(i), bpftest.ACK, 1, 1).Bytes())
		must(t, err)
	}
	all, err := e.Counters()
	if err != nil || all["drop_retired"] != late {
		t.Errorf("of %d late packets %d count as drop_retired, %d were answered; %v", late, all["drop_retired"], all["reset"]+all["stray"], err)
	}
	// A minute later they are forgotten.
	var n int
	must(t, scan(e.maps.FormerIds, func(id, when *uint64) bool { n++; *when = 1; ids[n-1] = *id; return true }))
	ones := make([]uint64, n)
	for i := range ones {
		ones[i] = 1
	}
	_, err = e.maps.FormerIds.BatchUpdate(ids[:n], ones, nil)
	must(t, err)
	must(t, e.sweepFormer(ktime.Now()+uint64(retiredFor)))
	n = 0
	must(t, scan(e.maps.FormerIds, func(_, _ *uint64) bool { n++; return true }))
	if n != 0 {
		t.Errorf("%d are remembered still", n)
	}
}

// TestAnOlderEdgeIsTakenOver with what it remembers of socketIDs, and its flows are counted by their peers.
func TestAnOlderEdgeIsTakenOver(t *testing.T) {
	pin := filepath.Join(nstest.BPFFS, "host-older")
	e := newEdge(t, Config{Pin: pin})
	key := edgeFlowKey{Local: webAddr.As16(), Remote: peerP.As16(), Lport: portBytes(80), Rport: portBytes(4000), Proto: 6}
	must(t, e.maps.EgressFlows.Put(&key, &edgeEgressFlow{Role: uint8(Server), Proto: 6, State: uint32(BoundFlow)}))
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "retired", Type: ebpf.LRUHash, KeySize: 8, ValueSize: 8, MaxEntries: 1 << 14})
	must(t, err)
	defer m.Close()
	now := ktime.Now()
	must(t, m.Put(uint64(5), now))
	must(t, m.Pin(filepath.Join(pin, "retired")))
	must(t, e.maps.Peers.Unpin())
	must(t, e.maps.FormerIds.Unpin())
	must(t, e.Close(true))
	next := newEdge(t, Config{Pin: pin})
	var when uint64
	if err := next.maps.FormerIds.Lookup(uint64(5), &when); err != nil || when != now {
		t.Errorf("the socketID that was given up: %d %v, want %d", when, err, now)
	}
	if n := *next.peers.at(int(uint16(there))); n != 1 || !next.Adopted() {
		t.Errorf("%d flows of the peer are counted, want 1", n)
	}
	must(t, next.Close(false))
	if left, _ := filepath.Glob(filepath.Join(pin, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
