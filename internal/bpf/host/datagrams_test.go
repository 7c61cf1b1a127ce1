package host

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/sid"
)

var dnsPort = netip.AddrPortFrom(dnsAddr, 53)

// send and receive are one datagram of an unconnected socket.
func send(t *testing.T, c net.PacketConn, b string, to netip.AddrPort) {
	t.Helper()
	_, err := c.WriteTo([]byte(b), net.UDPAddrFromAddrPort(to))
	must(t, err)
}

func receive(t *testing.T, c net.PacketConn) (string, netip.AddrPort) {
	t.Helper()
	within(t, c.(*net.UDPConn))
	buf := make([]byte, 1<<16)
	n, from, err := c.ReadFrom(buf)
	must(t, err)
	return string(buf[:n]), from.(*net.UDPAddr).AddrPort()
}

// Each datagram of an unbound service is resolved by itself: with one instance drained at the router the next
// datagram of the same socket goes to the other, and both answer under the service's name.
func TestUnboundDatagramsFollowTheRouter(t *testing.T) {
	n := newNetwork(t)
	client, one, two := n.host(t, "client", 1, Config{}), n.host(t, "one", 2, Config{}), n.host(t, "two", 3, Config{})
	counters(t, client, one, two)
	for _, h := range []*testHost{client, one, two} {
		must(t, h.edge.SetService(dns, Policy{Datagrams: Unbound}))
	}
	servers := map[*testHost]net.PacketConn{one: one.ListenPacket(t, "udp6", at(dnsAddr, 53)), two: two.ListenPacket(t, "udp6", at(dnsAddr, 53))}
	c := client.ListenPacket(t, "udp6", "[::]:0")
	for _, h := range []*testHost{one, two, one} {
		n.serve(t, dnsUDP, h)
		send(t, c, "question", dnsPort)
		_, peer := receive(t, servers[h])
		send(t, servers[h], "answer from "+h.Name, peer)
		if got, from := receive(t, c); got != "answer from "+h.Name || from != dnsPort {
			t.Errorf("the client got %q from %v, want the answer of %s from %v", got, from, h.Name, dnsPort)
		}
	}
}

// A bound flow stays with its instance, whatever the router says later.
func TestBoundDatagramsStay(t *testing.T) {
	n := newNetwork(t)
	client, one, two := n.host(t, "client", 1, Config{}), n.host(t, "one", 2, Config{}), n.host(t, "two", 3, Config{})
	counters(t, client, one, two)
	n.serve(t, dnsUDP, one)
	s, c := one.ListenPacket(t, "udp6", at(dnsAddr, 53)), client.ListenPacket(t, "udp6", "[::]:0")
	for range 3 {
		send(t, c, "question", dnsPort)
		_, peer := receive(t, s)
		send(t, s, "answer", peer)
		receive(t, c)
		n.serve(t, dnsUDP, two)
	}
}

// With the source left unset neither host keeps a flow: an instance asks another service as itself, and the answer
// goes to any instance of its own.
func TestUnsetDatagramsGoFromServiceToService(t *testing.T) {
	n := newNetwork(t)
	asks, answers := n.host(t, "asks", 1, Config{}), n.host(t, "answers", 2, Config{})
	counters(t, asks, answers)
	webUDP := sid.Triple{Service: web, Proto: sid.UDP, Port: 53}
	for _, h := range []*testHost{asks, answers} {
		must(t, h.edge.SetService(dns, Policy{Datagrams: Unset}))
		must(t, h.edge.SetService(web, Policy{Datagrams: Unset}))
	}
	must(t, answers.edge.Admit(webUDP)) // so that the source's suffix has a name there, as any host that serves it
	n.serve(t, dnsUDP, answers)
	n.serve(t, webUDP, asks)
	a, s := asks.ListenPacket(t, "udp6", at(webAddr, 53)), answers.ListenPacket(t, "udp6", at(dnsAddr, 53))
	check := n.sniff(t, asks)
	for range 2 {
		send(t, a, "question", dnsPort)
		got, from := receive(t, s)
		if got != "question" || from != netip.AddrPortFrom(webAddr, 53) {
			t.Fatalf("%q from %v, want it from the service %v", got, from, webAddr)
		}
		send(t, s, "answer", from)
		if got, from := receive(t, a); got != "answer" || from != dnsPort {
			t.Fatalf("%q from %v", got, from)
		}
	}
	check()
	for _, h := range []*testHost{asks, answers} {
		if k, err := h.edge.Count(); k != 0 || err != nil {
			t.Errorf("%s keeps %d flows %v, want none", h.Name, k, err)
		}
	}
}

// A datagram to a program that has ended is an error of the client's socket at once, before and after it was bound.
func TestPortUnreachableReachesTheClient(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, dnsUDP, server)
	check := n.sniff(t, client)
	s := server.ListenPacket(t, "udp6", at(dnsAddr, 53))
	c, err := client.Dial("udp6", at(dnsAddr, 53))
	must(t, err)
	defer c.Close()
	within(t, c)
	c.Write([]byte("question"))
	_, peer := receive(t, s)
	send(t, s, "answer", peer)
	buf := make([]byte, 100)
	if k, err := c.Read(buf); err != nil || string(buf[:k]) != "answer" {
		t.Fatalf("%q %v", buf[:k], err)
	}
	s.Close()
	fresh, err := client.Dial("udp6", at(dnsAddr, 53))
	must(t, err)
	defer fresh.Close()
	within(t, fresh)
	for what, x := range map[string]net.Conn{"bound": c, "not yet bound": fresh} {
		x.Write([]byte("question"))
		if _, err := x.Read(buf); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: read: %v, want ECONNREFUSED", what, err)
		}
	}
	check()
}

// Segments that the kernel cuts late (UDP_SEGMENT) and joins early (UDP_GRO) pass the edge in one piece each way.
func TestSegmentationOffloadOfDatagrams(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, dnsUDP, server)
	s, c := server.ListenPacket(t, "udp6", at(dnsAddr, 53)), client.ListenPacket(t, "udp6", "[::]:0")
	const segment, count = 1200, 40
	option(t, s, unix.SOL_UDP, unix.UDP_GRO, 1)
	option(t, s, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)
	option(t, c, unix.SOL_UDP, unix.UDP_SEGMENT, segment)
	whole := make([]byte, segment*count)
	rand.Read(whole)
	send(t, c, string(whole), dnsPort)
	var got []byte
	reads := 0
	for len(got) < len(whole) {
		b, _ := receive(t, s)
		got, reads = append(got, b...), reads+1
	}
	if !bytes.Equal(got, whole) {
		t.Errorf("%d bytes arrived, and not those that were sent", len(got))
	}
	if reads == count {
		t.Errorf("%d reads for %d segments: none were joined", reads, count)
	}
	if out := server.Run(t, "nstat", "-az", "Udp6InCsumErrors"); !strings.Contains(out, "Udp6InCsumErrors                0") {
		t.Errorf("checksums:\n%s", out)
	}
}

func option(t *testing.T, c net.PacketConn, level, name, value int) {
	t.Helper()
	raw, err := c.(*net.UDPConn).SyscallConn()
	must(t, err)
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, name, value) })
	must(t, err)
}

// A narrow link behind the router is found out by both ends: what says so quotes wire addresses.
func TestPathMTUIsLearned(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	go echoServer(server.Listen(t, "tcp6", at(webAddr, 80)))
	c, err := client.Dial("tcp6", at(webAddr, 80))
	must(t, err)
	defer c.Close()
	within(t, c)
	exchange(t, c, "while the link is wide")
	for _, h := range []*testHost{client, server} {
		must(t, n.router.Link().LinkSetMTU(n.router.Dev(t, h.Name), 1300))
	}
	sent := make([]byte, 1<<20)
	rand.Read(sent)
	go func() { c.Write(sent); c.(*net.TCPConn).CloseWrite() }()
	got := new(bytes.Buffer)
	if _, err := got.ReadFrom(c); err != nil || !bytes.Equal(got.Bytes(), sent) {
		t.Errorf("%d of %d bytes came back: %v", got.Len(), len(sent), err)
	}
	for _, h := range []*testHost{client, server} {
		if out := h.Run(t, "nstat", "-az", "Icmp6InPktTooBigs"); strings.Contains(out, "Icmp6InPktTooBigs               0") {
			t.Errorf("%s was never told of the narrow link:\n%s", h.Name, out)
		}
	}
}
