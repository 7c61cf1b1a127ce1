package host

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// Moves by hand, between real kernels: the test does what the daemons of both hosts would.

// second gives the host another uplink, "up2", with its own locator; the routing table does not use it.
func (n *testNetwork) second(t testing.TB, h *testHost, number uint16) sid.Locator {
	t.Helper()
	l, port := space.Locator(0x100|number), h.Name+"2"
	nstest.Veth(t, h.NS, "up2", n.router, port)
	n.router.Route(t, l.Prefix().String(), h.LinkLocal(t, "up2").String(), port)
	h.Addr(t, "up2", l.Host().String()+"/128")
	rule := netlink.NewRule()
	rule.IifName, rule.Family, rule.Table, rule.Priority = "up2", unix.AF_INET6, servicesTable, 100
	must(t, h.Link().RuleAdd(rule))
	h.Do(func() { must(t, h.edge.Attach(h.Index(t, "up2"))) })
	router, _ := netip.AddrFromSlice(n.router.LinkLocal(t, port))
	must(t, h.edge.SetUplink(h.Index(t, "up2"), Uplink{Locator: l, MTU: 1500, Router: router}))
	must(t, h.edge.AcceptLocator(l, true))
	n.router.Do(func() { must(t, n.resolver.Attach(n.router.Index(t, port))) })
	return l
}

// by makes the routing table use an uplink.
func (n *testNetwork) by(t testing.TB, h *testHost, dev string) {
	t.Helper()
	port := map[string]string{"up": h.Name, "up2": h.Name + "2"}[dev]
	gw := n.router.LinkLocal(t, port)
	for _, r := range []netlink.Route{
		{Dst: ipNet(space.AS), Gw: gw, LinkIndex: h.Index(t, dev)},
		{Dst: ipNet(space.Services), Gw: gw, LinkIndex: h.Index(t, dev), Src: h.vid.AsSlice()},
	} {
		must(t, h.Link().RouteReplace(&r))
	}
}

// An end is one host's end of the flow that is moved.
type end struct {
	*testHost
	flow  Tuple
	local Addr
	made  uint64
}

// ends finds both ends of the only flow between two hosts.
func ends(t testing.TB, hosts ...*testHost) (all []*end) {
	t.Helper()
	for _, h := range hosts {
		e := &end{testHost: h}
		must(t, h.edge.Flows(func(f Flow) bool {
			e.flow, e.local = f.Tuple, addrOf(f.WireLocal.Addr())
			return true
		}))
		if e.local == (Addr{}) {
			t.Fatalf("%s has no flow", h.Name)
		}
		all = append(all, e)
	}
	return all
}

func (e *end) fresh(l sid.Locator) Addr {
	e.made++
	return Addr{l, sid.NewSocketID(uint64(e.vid.As16()[15])<<32 | e.made)}
}

func (e *end) do(t testing.TB, steps ...Step) {
	t.Helper()
	for i := range steps {
		steps[i].Flow = e.flow
	}
	if failed, err := e.edge.Steer(steps); err != nil || len(failed) > 0 {
		t.Fatalf("%s: steps %v failed: %v", e.Name, failed, err)
	}
}

// move renegotiates: m goes to the locator, both take new socketIDs.
func move(t testing.TB, m, stays *end, to sid.Locator) {
	t.Helper()
	before, was := m.local, stays.local
	m.local, stays.local = m.fresh(to), stays.fresh(stays.local.Locator)
	m.do(t, Step{Verb: Accept, Local: m.local})
	stays.do(t, Step{Verb: Accept, Local: stays.local, Peer: m.local}, Step{Verb: Bind, Local: stays.local, Peer: m.local})
	m.do(t, Step{Verb: Bind, Local: m.local, Peer: stays.local})
	m.do(t, Step{Verb: Accept, Local: before})
	stays.do(t, Step{Verb: Accept, Local: was})
}

// echoed sends random bytes through the connection while work runs, until it is done, and compares them.
func echoed(t *testing.T, c net.Conn, work func()) {
	t.Helper()
	within(t, c)
	stop, sent := make(chan struct{}), make(chan []byte, 1)
	go func() {
		var all bytes.Buffer
		chunk := make([]byte, 64<<10)
		for more := true; more; {
			select {
			case <-stop:
				more = false
			default:
			}
			rand.Read(chunk)
			if _, err := c.Write(chunk); err != nil {
				t.Errorf("write: %v", err)
				break
			}
			all.Write(chunk)
		}
		c.(*net.TCPConn).CloseWrite()
		sent <- all.Bytes()
	}()
	go func() { work(); close(stop) }()
	got, err := io.ReadAll(c)
	if want := <-sent; err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back of %d, equal %v: %v", len(got), len(want), bytes.Equal(got, want), err)
	}
}

// progress waits until the peer has sent that many bytes more: what follows happens to a live stream.
func progress(t testing.TB, h *testHost) {
	before := frameCount(t, h)
	nstest.Wait(t, "is the stream stalled?", func() error {
		if now := frameCount(t, h); now < before+20 {
			return io.ErrNoProgress
		}
		return nil
	})
}

func frameCount(t testing.TB, h *testHost) (n uint64) {
	for _, dev := range []string{"up", "up2"} {
		if l, err := h.Link().LinkByName(dev); err == nil {
			n += l.Attrs().Statistics.RxPackets
		}
	}
	return n
}

// pair is a client and a server with two uplinks each, and their second locators.
func pair(t *testing.T) (n *testNetwork, client, server *testHost, second [2]sid.Locator) {
	n = newNetwork(t)
	client, server = n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	n.serve(t, dnsUDP, server)
	second = [2]sid.Locator{n.second(t, client, 11), n.second(t, server, 12)}
	return n, client, server, second
}

func TestAStreamMovesBackAndForthBetweenUplinks(t *testing.T) {
	n, client, server, second := pair(t)
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	check := n.sniff(t, client)
	c, err := client.Dial("tcp6", at(webAddr, 80))
	must(t, err)
	defer c.Close()
	const moves = 12
	echoed(t, c, func() {
		e := ends(t, client, server)
		for i := range moves {
			progress(t, client)
			to := [2][2]sid.Locator{{second[0], second[1]}, {client.locator, server.locator}}[i/2%2]
			move(t, e[i%2], e[1-i%2], to[i%2])
		}
		progress(t, client)
		for _, h := range e {
			if f, ok, err := h.edge.Lookup(h.flow); err != nil || !ok || f.Stable != sidAddr(e[0].flow, e[1].flow) {
				t.Errorf("%s: %+v %v", h.Name, f, err)
			}
		}
	})
	check()
	torn := uint64(0)
	for _, h := range []*testHost{client, server} {
		all, err := h.edge.Counters()
		if err != nil || all["elsewhere"] == 0 || all["reset"] > 0 || all["drop_no_flow_in"]+all["drop_retired"] > 0 {
			t.Errorf("%s: %v %v: want packets by another uplink, none refused", h.Name, all, err)
		}
		torn += all["drop_bad_source"]
	}
	// Bind writes peer, socketID and uplink of an entry one after the other, while a packet on another processor may
	// read them: it leaves with some of before and some of after, or finds its sender's address half written. The
	// receiver takes a new socketID from one address alone and refuses such a packet; TCP sends it again. Each move has
	// two Binds, of which each can meet one packet that is on its way out and one that comes in.
	if torn > 2*2*moves {
		t.Errorf("%d packets were refused for their source: more than can have met a Bind", torn)
	}
}

// sidAddr is the stable identifier, which the server's socket sees.
func sidAddr(_, server Tuple) netip.Addr { return server.Remote.Addr() }

func TestAHardBreakLosesNoByte(t *testing.T) {
	safety.Test(t, safety.Bytes)
	n, client, server, second := pair(t)
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	c, err := client.Dial("tcp6", at(webAddr, 80))
	must(t, err)
	defer c.Close()
	echoed(t, c, func() {
		e := ends(t, client, server)
		progress(t, client)
		client.Down(t, "up")
		must(t, client.edge.SetUplink(client.Index(t, "up"), Uplink{}))
		n.by(t, client, "up2")
		move(t, e[0], e[1], second[0])
		progress(t, client)
		server.Down(t, "up")
		must(t, server.edge.SetUplink(server.Index(t, "up"), Uplink{}))
		n.by(t, server, "up2")
		move(t, e[1], e[0], second[1])
		progress(t, client)
	})
	for _, h := range []*testHost{client, server} {
		if all, err := h.edge.Counters(); err != nil || all["reset"] > 0 {
			t.Errorf("%s: %v %v", h.Name, all, err)
		}
	}
}

func TestDatagramsMoveWithoutLoss(t *testing.T) {
	_, client, server, second := pair(t)
	s := server.ListenPacket(t, "udp6", at(dnsAddr, 53))
	c := client.ListenPacket(t, "udp6", "[::]:0")
	within(t, s)
	within(t, c)
	var e []*end
	buf := make([]byte, 1500)
	for i := range byte(40) {
		_, err := c.WriteTo([]byte{i}, net.UDPAddrFromAddrPort(netip.AddrPortFrom(dnsAddr, 53)))
		must(t, err)
		_, peer, err := s.ReadFrom(buf)
		must(t, err)
		_, err = s.WriteTo([]byte{buf[0], i}, peer)
		must(t, err)
		k, from, err := c.ReadFrom(buf)
		if err != nil || k != 2 || buf[0] != i || from.(*net.UDPAddr).AddrPort().Addr() != dnsAddr {
			t.Fatalf("datagram %d: %x from %v: %v", i, buf[:k], from, err)
		}
		if e == nil {
			e = ends(t, client, server)
		}
		to := [2][2]sid.Locator{{second[0], second[1]}, {client.locator, server.locator}}[i/2%2]
		move(t, e[i%2], e[1-i%2], to[i%2])
	}
}

// A tunnel has no Ethernet header: what the routing table sends there may belong elsewhere, and the reverse.
func TestAStreamMovesBetweenATunnelAndALink(t *testing.T) {
	n := newNetwork(t)
	far, near := n.behindTunnel(t, 1), n.host(t, "near", 2, Config{})
	counters(t, far, near)
	n.serve(t, webTCP, near)
	second := n.second(t, far, 11)
	go echoServer(near.Listen(t, "tcp6", at(webAddr, 80)))
	c, err := far.Dial("tcp6", at(webAddr, 80))
	must(t, err)
	defer c.Close()
	echoed(t, c, func() {
		e := ends(t, far, near)
		progress(t, far)
		move(t, e[0], e[1], second) // routed to the tunnel, leaves by the link
		progress(t, far)
		n.by(t, far, "up2")
		move(t, e[0], e[1], far.locator) // and the reverse
		progress(t, far)
		if all, err := far.edge.Counters(); err != nil || all["elsewhere"] == 0 {
			t.Errorf("%v %v", all, err)
		}
	})
}

func TestTheDaemonsMessagesCrossTheNetwork(t *testing.T) {
	n, client, server, second := pair(t)
	heard := make(chan Event, 10)
	go func() {
		for {
			ev, err := server.edge.ReadEvent()
			if err != nil {
				return
			}
			heard <- ev
		}
	}()
	for c := (edgeHostConfig{}); c.Heartbeat == 0; {
		server.edge.maps.Config.Lookup(uint32(0), &c)
	}
	must(t, n.resolver.SetTable(sid.Triple{Service: web, Proto: sid.UDP, Port: sid.Port}, targetsOf(server)))
	mine := second[0].Addr(1<<63 | 5)
	for _, to := range []netip.Addr{server.locator.Addr(1<<63 | 9), server.locator.Host(), webAddr, second[1].Host()} {
		said := []byte("\x01\x07hello")
		if sid.Low(to) == sid.HostSuffix { // which takes nothing but answers to its PROBEs
			said = binary.BigEndian.AppendUint64([]byte{1, 4, 0, 16, 0, 0, 0, 0}, server.edge.ProbeNonce())
		}
		client.Do(func() { must(t, client.edge.Send(mine, to, 1, said)) })
		ev := nstest.Receive(t, "did the message arrive?", heard)
		if ev.Kind != Message || ev.From != mine || sid.Low(ev.To) != sid.Low(to) || !bytes.HasSuffix(ev.Packet, said) {
			t.Errorf("to %v: %+v", to, ev)
		}
	}
}

func TestTenThousandFlowsAreSteered(t *testing.T) {
	const flows = 10_000
	e := newEdge(t, Config{MaxFlows: 2 * flows})
	must(t, e.SetUplink(testUplink, Uplink{Locator: here}))
	key, out, in := webFlow.key(), edgeEgressFlow{State: uint32(BoundFlow), Role: uint8(Client), Proto: 6}, edgeIngressFlow{State: uint32(BoundFlow)}
	var steps []Step
	for i := range uint64(flows) {
		key.Remote, key.Lport = space.Locator(uint16(0x200+i/60000)).Addr(i).As16(), portBytes(uint16(i))
		out.Socket = half(1<<63 | i)
		out.Newest, out.Birth, in.Birth, in.Key = out.Socket, out.Socket, out.Socket, key
		must(t, e.maps.IngressFlows.Put(network(1<<63|i), &in))
		must(t, e.maps.EgressFlows.Put(&key, &out))
		f := tupleOf(&key)
		next, peer := Addr{here, sid.NewSocketID(1<<40 | i)}, addrOf(peerP)
		steps = append(steps, Step{Verb: Accept, Flow: f, Local: next}, Step{Verb: Bind, Flow: f, Local: next, Peer: peer})
	}
	begin := time.Now()
	failed, err := e.Steer(steps)
	t.Logf("%d steps in %v", len(steps), time.Since(begin))
	if err != nil || len(failed) > 0 {
		t.Fatalf("%d failed: %v", len(failed), err)
	}
	moved := 0
	must(t, e.Flows(func(f Flow) bool {
		if f.WirePeer.Addr() == peerP && uint64(f.ID)>>40 == 1<<23|1 {
			moved++
		}
		return true
	}))
	entries := 0
	must(t, scan(e.maps.IngressFlows, func(*uint64, *edgeIngressFlow) bool { entries++; return true }))
	if moved != flows || entries != 2*flows {
		t.Errorf("%d flows moved, %d entries: want %d and %d", moved, entries, flows, 2*flows)
	}
}
