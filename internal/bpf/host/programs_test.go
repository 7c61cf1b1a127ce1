package host

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

var (
	webTCP = sid.Triple{Service: web, Proto: sid.TCP, Port: 80}
	dnsUDP = sid.Triple{Service: dns, Proto: sid.UDP, Port: 53}
)

// dial is Dial with an end: a refusal that is lost shows as a timeout.
func (h *testHost) dial(addr string) (c net.Conn, err error) {
	h.Do(func() { c, err = net.DialTimeout("tcp6", addr, nstest.Deadline/10) })
	return c, err
}

func at(addr netip.Addr, port uint16) string { return netip.AddrPortFrom(addr, port).String() }

// within gives a socket a deadline that only a broken edge meets.
func within(t *testing.T, c interface{ SetDeadline(time.Time) error }) {
	t.Helper()
	must(t, c.SetDeadline(time.Now().Add(nstest.Deadline)))
}

func counters(t *testing.T, hosts ...*testHost) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, h := range hosts {
			all, _ := h.edge.Counters()
			for name, n := range all {
				if n > 0 {
					t.Logf("%s: %s = %d", h.Name, name, n)
				}
			}
		}
	})
}

// echoServer returns what it reads, on every connection, until the client half-closes.
func echoServer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { defer c.Close(); io.Copy(c, c) }()
	}
}

func TestTCPCarriesTwoMegabytesThere(t *testing.T) { tcpBothWays(t, Config{}) }

func TestClassicFiltersDoTheSame(t *testing.T) { tcpBothWays(t, Config{Classic: true}) }

func tcpBothWays(t *testing.T, cfg Config) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, cfg), n.host(t, "server", 2, cfg)
	counters(t, client, server)
	n.serve(t, webTCP, server)
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	check := n.sniff(t, client)
	c, err := client.Dial("tcp6", at(webAddr, 80))
	must(t, err)
	defer c.Close()
	within(t, c)
	if local := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); local != client.vid {
		t.Errorf("the client's socket has %v, want its identity %v", local, client.vid)
	}
	sent := make([]byte, 2<<20)
	rand.Read(sent)
	go func() { c.Write(sent); c.(*net.TCPConn).CloseWrite() }()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came back, error %v", len(got), len(sent), err)
	}
	check()
	flows := 0
	must(t, server.edge.Flows(func(f Flow) bool {
		flows++
		if f.Role != Server || f.Service != web {
			t.Errorf("flow %+v", f)
		}
		return true
	}))
	if flows != 1 {
		t.Errorf("%d flows at the server, want 1", flows)
	}
}

func TestAHostReachesAServiceThatItServesItself(t *testing.T) {
	n := newNetwork(t)
	h := n.host(t, "both", 1, Config{})
	counters(t, h)
	n.serve(t, webTCP, h)
	go echoServer(h.Listen(t, "tcp6", at(webAddr, 80)))
	c, err := h.Dial("tcp6", at(webAddr, 80))
	must(t, err)
	defer c.Close()
	within(t, c)
	c.Write([]byte("hello"))
	c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "hello" {
		t.Errorf("%q %v", got, err)
	}
}

func TestLargeDatagramsArriveInFragmentsBothWays(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, dnsUDP, server)
	s := server.ListenPacket(t, "udp6", at(dnsAddr, 53))
	c := client.ListenPacket(t, "udp6", "[::]:0")
	within(t, s)
	within(t, c)
	check := n.sniff(t, client)
	sent := make([]byte, 4000)
	rand.Read(sent)
	buf := make([]byte, 1<<16)
	for round := range 3 {
		_, err := c.WriteTo(sent, net.UDPAddrFromAddrPort(netip.AddrPortFrom(dnsAddr, 53)))
		must(t, err)
		k, peer, err := s.ReadFrom(buf)
		if err != nil || !bytes.Equal(buf[:k], sent) {
			t.Fatalf("round %d: server got %d bytes: %v", round, k, err)
		}
		_, err = s.WriteTo(sent, peer)
		must(t, err)
		k, from, err := c.ReadFrom(buf)
		if err != nil || !bytes.Equal(buf[:k], sent) {
			t.Fatalf("round %d: client got %d bytes: %v", round, k, err)
		}
		if from.(*net.UDPAddr).AddrPort() != netip.AddrPortFrom(dnsAddr, 53) {
			t.Errorf("reply from %v, want the service", from)
		}
	}
	check()
}

func TestReplyFromAnotherPort(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, dnsUDP, server)
	s := server.ListenPacket(t, "udp6", at(dnsAddr, 53))
	child := server.ListenPacket(t, "udp6", at(dnsAddr, 0))
	c := client.ListenPacket(t, "udp6", "[::]:0")
	for _, x := range []net.PacketConn{s, child, c} {
		within(t, x)
	}
	buf := make([]byte, 1500)
	_, err := c.WriteTo([]byte("read"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(dnsAddr, 53)))
	must(t, err)
	_, peer, err := s.ReadFrom(buf)
	must(t, err)
	_, err = child.WriteTo([]byte("data"), peer)
	must(t, err)
	k, from, err := c.ReadFrom(buf)
	if err != nil || string(buf[:k]) != "data" || from.(*net.UDPAddr).Port != child.LocalAddr().(*net.UDPAddr).Port {
		t.Fatalf("client got %q from %v: %v", buf[:k], from, err)
	}
	_, err = c.WriteTo([]byte("ack"), from)
	must(t, err)
	k, _, err = child.ReadFrom(buf)
	if err != nil || string(buf[:k]) != "ack" {
		t.Fatalf("child got %q: %v", buf[:k], err)
	}
}

func TestPing(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	check := n.sniff(t, client)
	var c net.PacketConn
	client.Do(func() {
		var err error
		c, err = net.ListenPacket("ip6:ipv6-icmp", client.vid.String())
		must(t, err)
	})
	defer c.Close()
	within(t, c)
	buf := make([]byte, 1500)
	for i := range byte(3) {
		_, err := c.WriteTo([]byte{128, 0, 0, 0, 0x12, 0x34, 0, i, 'p', 'i', 'n', 'g'}, &net.IPAddr{IP: webAddr.AsSlice()})
		must(t, err)
		for buf[0] = 0; buf[0] != 129 || buf[7] != i; {
			_, from, err := c.ReadFrom(buf)
			must(t, err)
			if buf[0] == 129 && from.String() != webAddr.String() {
				t.Errorf("reply from %v", from)
			}
		}
	}
	check()
}

// handle does what the daemon does with events, until the edge is closed.
func handle(e *Edge, ns *nstest.NS) (done chan struct{}) {
	done = make(chan struct{})
	events := make(chan Event)
	go func() {
		defer close(events)
		for {
			ev, err := e.ReadEvent()
			if err != nil {
				return
			}
			events <- ev
		}
	}()
	go func() {
		defer close(done)
		ns.Do(func() { serveRefusals(e, events) })
	}()
	for c := (edgeHostConfig{}); c.Heartbeat == 0; {
		e.maps.Config.Lookup(uint32(0), &c)
	}
	return done
}

func serveRefusals(e *Edge, events <-chan Event) {
	r := NewRefusals(e.RecentPeers)
	for {
		var due <-chan time.Time
		if d := r.Deadline(); !d.IsZero() {
			due = time.After(time.Until(d))
		}
		select {
		case ev, ok := <-events:
			if !ok {
				return
			}
			if ev.Kind == Refused {
				r.Handle(time.Now(), ev)
			}
		case now := <-due:
			r.Expire(now)
		}
		for _, a := range r.Drain() {
			if a.Retry {
				e.Retry(a.Event, a.Label, a.To)
			} else {
				e.InjectRefusal(a.Event)
			}
		}
	}
}

// Each must be told with its own errno, none may wait for a second SYN.
func TestRefusalsReachConnect(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	done := handle(client.edge, client.NS)
	t.Cleanup(func() { client.edge.Close(false); <-done })
	t.Cleanup(func() {
		if t.Failed() {
			all, _ := n.resolver.Counters()
			t.Logf("router: %v", all)
		}
	})
	cases := []struct {
		what string
		to   string
		want syscall.Errno
	}{
		{"unknown service", at(nowhere, 80), syscall.ENETUNREACH},
		{"admitted, but no listener", at(webAddr, 80), syscall.ECONNREFUSED},
		{"a port that nobody serves", at(webAddr, 81), syscall.ECONNREFUSED},
		{"a frozen peer address", at(server.locator.Addr(1<<63|77), 80), syscall.EHOSTUNREACH},
	}
	for _, c := range cases {
		for range 20 {
			conn, err := client.dial(c.to)
			if err == nil {
				conn.Close()
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("%s: connect: %v, want %v", c.what, err, c.want)
			}
		}
	}
	out := client.Run(t, "nstat", "-az", "TcpExtLockDroppedIcmps", "Tcp6OutRsts", "TcpRetransSegs")
	if strings.Contains(out, "TcpRetransSegs") && !strings.Contains(out, "TcpRetransSegs                  0") {
		t.Errorf("a SYN was sent again by the kernel, so a refusal was lost:\n%s", out)
	}
}

func TestARestartingListenerIsNotNoticed(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	done := handle(client.edge, client.NS)
	t.Cleanup(func() { client.edge.Close(false); <-done })
	listening := make(chan net.Listener, 1)
	before, err := client.edge.Counters()
	must(t, err)
	go func() {
		for { // the first refusal has come: now the listener is back
			now, err := client.edge.Counters()
			if err != nil || now["held"] > before["held"] {
				break
			}
		}
		var l net.Listener
		server.Do(func() { l, _ = net.Listen("tcp6", at(webAddr, 80)) })
		listening <- l
	}()
	c, err := client.Dial("tcp6", at(webAddr, 80))
	if err != nil {
		t.Errorf("connect: %v", err)
	} else {
		c.Close()
	}
	if l := <-listening; l != nil {
		l.Close()
	}
}
