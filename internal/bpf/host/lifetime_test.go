package host

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/bpf/ktime"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// older makes every flow look idle for d more. An entry that is written while the map is walked may be met again.
func older(t *testing.T, e *Edge, d time.Duration) {
	t.Helper()
	in, out := map[uint64]edgeIngressFlow{}, map[edgeFlowKey]edgeEgressFlow{}
	must(t, scan(e.maps.IngressFlows, func(id *uint64, v *edgeIngressFlow) bool { in[*id] = *v; return true }))
	must(t, scan(e.maps.EgressFlows, func(key *edgeFlowKey, v *edgeEgressFlow) bool { out[*key] = *v; return true }))
	for id, v := range in {
		v.Seen -= uint64(d)
		must(t, e.maps.IngressFlows.Put(id, &v))
	}
	for key, v := range out {
		v.Seen -= uint64(d)
		must(t, e.maps.EgressFlows.Put(&key, &v))
	}
}

func TestSweepRemovesWhatHasEnded(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100) // will see both FINs
	bind(t, w, p, peerP, 4000, 100)
	q := connect(t, w, 4001, 100) // stays open
	bind(t, w, q, peerQ, 4001, 100)
	w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	w.send(tcp(vid, webAddr, 4000, 80, bpftest.FIN|bpftest.ACK, 101, 901).Bytes())
	w.arrive(tcp(peerP, p, 80, 4000, bpftest.FIN|bpftest.ACK, 901, 102).Bytes())
	steps := []struct {
		idle    time.Duration
		removed int
	}{{0, 0}, {endedIdle - time.Second, 0}, {2 * time.Second, 1}, {datagramIdle, 1}, {24 * time.Hour, 0}}
	for _, s := range steps {
		older(t, w.edge, s.idle)
		got, err := w.edge.Sweep(nil)
		if err != nil || got.Removed != s.removed {
			t.Fatalf("%v later: %+v %v, want %d removed", s.idle, got, err, s.removed)
		}
	}
	if _, ok, _ := w.edge.Flow(sid.SocketID(sid.Low(q))); !ok {
		t.Error("the open connection is gone")
	}
	n := 0
	for it := w.edge.maps.EgressFlows.Iterate(); it.Next(new(edgeFlowKey), new(edgeEgressFlow)); n++ {
	}
	if n != 1 {
		t.Errorf("%d entries in the egress map, want 1", n)
	}
}

func TestSweepTakesAFlowWithAllItsSocketIDs(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	for i := range uint64(5) {
		w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(here.Addr(1<<63 | i)), Peer: addrOf(peerP)})
		w.steer(Step{Verb: Accept, Flow: dnsFlow, Local: addrOf(here.Addr(1<<63 | 1<<32 | i))})
	}
	older(t, w.edge, connectingIdle/2)
	w.arrive(udp(peerP, here.Addr(1<<63|1<<32), 53, 5000, "a").Bytes()) // one of its socketIDs is in use
	w.arrive(tcp(peerP, p, 80, 4000, bpftest.RST, 901, 101).Bytes())    // ended, under the oldest
	older(t, w.edge, endedIdle+time.Second)
	got, err := w.edge.Sweep(nil)
	if err != nil || got.Removed != 1 || got.Flows != 1 {
		t.Errorf("%+v %v, want the connection removed, the datagrams not", got, err)
	}
	older(t, w.edge, datagramIdle)
	got, err = w.edge.Sweep(nil)
	if err != nil || got.Removed != 1 {
		t.Errorf("%+v %v", got, err)
	}
	for it := w.edge.maps.IngressFlows.Iterate(); it.Next(new(uint64), new(edgeIngressFlow)); {
		t.Error("an entry is left")
	}
}

func TestSweepFindsOrphans(t *testing.T) {
	w := newWorld(t)
	p := bound(t, w)
	lost := edgeIngressFlow{Key: webFlow.key(), Birth: [8]byte{1}}
	must(t, w.edge.maps.IngressFlows.Put(uint64(77), &lost))
	for range orphanRounds {
		_, err := w.edge.Sweep(nil)
		must(t, err)
	}
	entries := 0
	must(t, scan(w.edge.maps.IngressFlows, func(*uint64, *edgeIngressFlow) bool { entries++; return true }))
	if _, ok, _ := w.edge.Flow(sid.SocketID(sid.Low(p))); !ok || entries != 1 {
		t.Errorf("%d entries, want the flow's one", entries)
	}
}

func TestAClientsDatagramFlowLivesWithItsSocket(t *testing.T) {
	w := newWorld(t)
	w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	for _, c := range []struct {
		idle    time.Duration // more
		alive   bool
		removed int
		what    string
	}{
		{endedIdle - time.Second, false, 0, "a late answer may still come"},
		{datagramIdle, true, 0, "its socket is silent, and there"},
		{0, false, 1, "its socket is gone"},
	} {
		older(t, w.edge, c.idle)
		got, err := w.edge.Sweep(func(uint64) bool { return c.alive })
		if err != nil || got.Removed != c.removed {
			t.Errorf("%s: %d removed, want %d: %v", c.what, got.Removed, c.removed, err)
		}
	}
}

func TestAReusedDatagramPortBeginsAnotherFlow(t *testing.T) {
	w := newWorld(t)
	p, _ := addrs(w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()))
	wantAddrs(t, w.arrive(udp(peerP, p, 53, 5000, "a").Bytes()), dnsAddr, vid)
	wantAddrs(t, w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()), p, peerP) // a socket that shares the port
	older(t, w.edge, 6*time.Second)
	w.idled = 6 * time.Second
	o := w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	if q, d := addrs(o); q == p || d != dnsAddr {
		t.Errorf("the port's next socket sends as %v to %v, want another socketID and the service", q, d)
	}
}

func TestSweepHurriesWhenTheMapFills(t *testing.T) {
	for _, c := range []struct {
		count int
		want  time.Duration
	}{{10, endedIdle}, {51, endedIdleHalf}, {76, endedIdleTight}} {
		if l := limitsAt(c.count, 100); l.ended != c.want {
			t.Errorf("%d of 100: ended flows are kept %v, want %v", c.count, l.ended, c.want)
		}
	}
}

func TestSweepTenThousandFlows(t *testing.T) {
	e := newEdge(t, Config{MaxFlows: 20000})
	for i := range 10000 {
		key := edgeFlowKey{Proto: 17, Lport: portBytes(uint16(i)), Local: vid.As16(), Remote: webAddr.As16()}
		id := network(1<<63 | uint64(i))
		must(t, e.maps.IngressFlows.Put(id, &edgeIngressFlow{Key: key, State: 3, Role: 1, Seen: 1}))
		must(t, e.maps.EgressFlows.Put(&key, &edgeEgressFlow{Socket: half(1<<63 | uint64(i)), Seen: 1}))
	}
	got, err := e.Sweep(nil)
	if err != nil || got.Removed+got.Flows != 10000 {
		t.Fatalf("%+v %v, want 10000 in all", got, err)
	}
	// The machine may have been up for less than the limit: then nothing is old yet.
	if up := time.Duration(ktime.Now()); up > datagramIdle && got.Removed != 10000 {
		t.Errorf("%+v after %v of uptime, want all removed", got, up)
	}
}

// TestAdoptedEdgeKeepsItsFlows: the process ends without a word, the next one takes over; between them packets
// go on, and afterwards new flows work.
func TestAdoptedEdgeKeepsItsFlows(t *testing.T) {
	n := newNetwork(t)
	pin := filepath.Join(nstest.BPFFS, "host-adopt")
	client, server := n.host(t, "client", 1, Config{Pin: pin}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	c, err := client.dial(at(webAddr, 80))
	must(t, err)
	defer c.Close()
	within(t, c)
	exchange(t, c, "before")
	client.edge.Close(true)
	exchange(t, c, "between")
	client.Do(func() {
		var err error
		client.edge, err = Open(Config{Space: space, Identity: client.vid, Pin: pin})
		must(t, err)
	})
	if !client.edge.Adopted() {
		t.Error("the pinned edge was not adopted")
	}
	exchange(t, c, "after")
	if n, err := client.edge.Count(); n != 1 || err != nil {
		t.Errorf("%d flows %v, want 1", n, err)
	}
	second, err := client.dial(at(webAddr, 80))
	must(t, err)
	defer second.Close()
	within(t, second)
	exchange(t, second, "new")
	client.Do(func() { must(t, client.edge.Attach(client.Index(t, "up"))) }) // again: no harm
	exchange(t, second, "attached twice")
	must(t, client.edge.Close(false))
	if left, _ := filepath.Glob(filepath.Join(pin, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func exchange(t *testing.T, c net.Conn, what string) {
	t.Helper()
	_, err := c.Write([]byte(what))
	must(t, err)
	buf := make([]byte, len(what))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != what {
		t.Fatalf("%s: %q %v", what, buf, err)
	}
}

func TestUnknownLayoutIsRefused(t *testing.T) {
	pin := filepath.Join(nstest.BPFFS, "host-other")
	e := newEdge(t, Config{Pin: pin})
	c := edgeHostConfig{Abi: 99}
	must(t, e.maps.Config.Update(uint32(0), &c, ebpf.UpdateAny))
	if _, err := Open(Config{Space: space, Pin: pin}); !errors.Is(err, ErrABI) {
		t.Errorf("open: %v, want ErrABI", err)
	}
	if err := CheckPins(pin); !errors.Is(err, ErrABI) {
		t.Errorf("check: %v, want ErrABI", err)
	}
	if err := CheckPins(filepath.Join(nstest.BPFFS, "host-none")); err != nil {
		t.Errorf("nothing pinned: %v", err)
	}
}

// Of docs/scale.md.
func TestAnInstanceForWhichThereIsNoRoomIsRefused(t *testing.T) {
	const most = 16384
	e := newEdge(t, Config{})
	nth := func(i int) sid.Triple {
		return sid.Triple{Service: sid.ServiceID{SS: web.SS, Suffix: sid.Suffix(1000 + i)}, Proto: sid.TCP, Port: 80}
	}
	for i := range most {
		must(t, e.Admit(nth(i)))
	}
	another := sid.Triple{Service: nth(0).Service, Proto: sid.TCP, Port: 81}
	for _, more := range []sid.Triple{nth(most), another} {
		if err := e.Admit(more); !errors.Is(err, ErrNoRoom) {
			t.Errorf("admit %v: %v, want ErrNoRoom", more, err)
		}
	}
	must(t, e.Withdraw(nth(1)))
	must(t, e.Admit(another))
	if all, err := e.Admitted(); err != nil || len(all) != most {
		t.Errorf("%d are admitted, %v; want %d", len(all), err, most)
	}
	must(t, e.Withdraw(another))
	must(t, e.Admit(nth(most))) // in the room of the service that was withdrawn
	must(t, e.Withdraw(nth(2)))
	must(t, e.SetService(nth(2).Service, Policy{Datagrams: Unset}))
	must(t, e.Withdraw(nth(3)))
	must(t, e.SetAccess(nth(3).Service, resolve.AccessList{}))
	if err := e.Admit(nth(most + 1)); !errors.Is(err, ErrNoRoom) {
		t.Errorf("%v: what has an access list and what is unset keep their room", err)
	}
}

func TestSuffixOfAnotherServiceIsRefused(t *testing.T) {
	e := newEdge(t, Config{})
	must(t, e.Admit(webTCP))
	twin := sid.Triple{Service: sid.ServiceID{SS: 9, Suffix: web.Suffix}, Proto: sid.TCP, Port: 80}
	if err := e.Admit(twin); !errors.Is(err, ErrSuffix) {
		t.Errorf("admit: %v, want ErrSuffix", err)
	}
	must(t, e.Admit(webTCP)) // twice is once
	must(t, e.Withdraw(webTCP))
	must(t, e.Admit(twin))
}
