package host

import (
	"fmt"
	"io"
	"net"
	"testing"

	"pgregory.net/rapid"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// A testServer is a program on a host, or in a guest of it.
type testServer struct {
	*testHost
	in     *nstest.NS
	owners []uint16
	open   []io.Closer
}

// alwaysServed are clients and servers without a controller.
type alwaysServed struct {
	*testNetwork
	clients []*testHost
	servers []*testServer
	asked   uint16 // datagrams
}

// TestNoConnectionIsRefusedWhoeverIsAway: any weights; any programs dead but one; of their hosts' daemons and of the
// controller any that have heard of it, while the others are away; a client with a daemon, which asks again, or without;
// programs in guests, too; and unrelated programs on the ports. Up to sixteen instances all but one may be dead behind Linux
// routers, docs/protocol.md §3.2.
func TestNoConnectionIsRefusedWhoeverIsAway(t *testing.T) {
	n := &alwaysServed{testNetwork: newNetwork(t)}
	n.clients = []*testHost{n.host(t, "alone", 1, Config{}), n.host(t, "client", 2, Config{})}
	counters(t, n.clients...)
	heard := handle(n.clients[1].edge, n.clients[1].NS)
	t.Cleanup(func() { n.clients[1].edge.Close(false); <-heard })
	for i := range 4 {
		h := n.host(t, fmt.Sprintf("s%d", i), uint16(3+i), Config{})
		counters(t, h)
		s := &testServer{testHost: h, in: h.NS}
		if i == 3 {
			s.in, s.owners = h.guest(t, "guest", 1).NS, []uint16{1}
		}
		n.servers = append(n.servers, s)
		for _, triple := range []sid.Triple{webTCP, webUDP} {
			n.serve(t, triple, h)
			must(t, h.edge.SetOwners(triple, s.owners))
		}
	}
	rapid.Check(t, n.check)
}

func (n *alwaysServed) check(r *rapid.T) {
	dead := rapid.SliceOfN(rapid.Bool(), len(n.servers), len(n.servers)).Draw(r, "dead")
	dead[rapid.IntRange(0, len(dead)-1).Draw(r, "the one that lives")] = false
	alive := map[string]bool{}
	var targets []resolve.Target
	for i, s := range n.servers {
		weight := rapid.SampledFrom([]uint32{1, 2, 1000, 65535}).Draw(r, s.Name+" weighs")
		controllerKnows := false
		if s.ends(r); dead[i] {
			s.die(r)
			controllerKnows = rapid.Bool().Draw(r, s.Name+"'s death is known to the controller")
		} else {
			s.live(r)
			alive[s.Name] = true
		}
		if !controllerKnows {
			targets = append(targets, resolve.Target{Locator: s.locator, Weight: weight})
		}
	}
	must(r, n.resolver.SetTable(webTCP, targets))
	must(r, n.resolver.SetTable(webUDP, targets))
	for i := range 6 {
		for _, client := range n.clients {
			if who, err := client.greeted(); err != nil || !alive[who] {
				r.Fatalf("connection %d of %s: %q answered, error %v; want one of %v", i, client.Name, who, err, alive)
			}
			n.asked++
			if who, err := client.askDatagram(10000 + n.asked); err != nil || !alive[who] {
				r.Fatalf("question %d of %s: %q answered, error %v; want one of %v", i, client.Name, who, err, alive)
			}
		}
	}
}

// ends closes what a check before opened.
func (s *testServer) ends(r *rapid.T) {
	for _, c := range s.open {
		must(r, c.Close())
	}
	s.open = nil
}

// listens opens a socket where the program is.
func listens[S io.Closer](r *rapid.T, s *testServer, open func(network, addr string) (S, error), network, addr string) (socket S) {
	var err error
	s.in.Do(func() { socket, err = open(network, addr) })
	must(r, err)
	s.open = append(s.open, socket)
	return socket
}

// live opens its sockets; its daemon lets first packets in.
func (s *testServer) live(r *rapid.T) {
	go greet(listens(r, s, net.Listen, "tcp6", at(webAddr, webTCP.Port)), s.Name)
	go greetDatagrams(listens(r, s, net.ListenPacket, "udp6", at(webAddr, webUDP.Port)), s.Name)
	must(r, s.edge.AdmitListening(webTCP))
	must(r, s.edge.AdmitListening(webUDP))
}

// die leaves the edge as it is, or its daemon hears of it.
func (s *testServer) die(r *rapid.T) {
	must(r, s.edge.AdmitListening(webTCP))
	must(r, s.edge.AdmitListening(webUDP))
	if rapid.Bool().Draw(r, s.Name+"'s daemon is there") {
		must(r, s.edge.Withdraw(webTCP))
		must(r, s.edge.Withdraw(webUDP))
	}
	if rapid.Bool().Draw(r, "another program is on "+s.Name+"'s port") {
		go greet(listens(r, s, net.Listen, "tcp6", fmt.Sprintf("[::]:%d", webTCP.Port)), "an unrelated program")
	}
}

// greeted connects and says who answered.
func (h *testHost) greeted() (string, error) {
	c, err := h.dial(at(webAddr, webTCP.Port))
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}
