package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// Both ports that these tests ask have an instance on two hosts. No daemon withdraws any.
type twoServers struct {
	*testNetwork
	client, first, second *testHost
	asked                 uint16 // datagrams
}

var webUDP = sid.Triple{Service: web, Proto: sid.UDP, Port: 53}

// serveTwice has clients ask the first of two hosts, and the second one serve.
func serveTwice(t *testing.T) *twoServers {
	t.Helper()
	n := &twoServers{testNetwork: newNetwork(t)}
	n.client, n.first, n.second = n.host(t, "client", 1, Config{}), n.host(t, "first", 2, Config{}), n.host(t, "second", 3, Config{})
	counters(t, n.client, n.first, n.second)
	for _, triple := range []sid.Triple{webTCP, webUDP} {
		n.serve(t, triple, n.first, n.second)
		for _, h := range []*testHost{n.first, n.second} {
			must(t, h.edge.AdmitListening(triple))
		}
	}
	n.only(t, webTCP, false)
	n.only(t, webUDP, false)
	go greet(n.second.Listen(t, "tcp6", at(webAddr, webTCP.Port)), "second")
	go greetDatagrams(n.second.ListenPacket(t, "udp6", at(webAddr, webUDP.Port)), "second")
	return n
}

// only leaves clients the first host alone, or takes that back: what it is to have is not to depend on a draw.
func (n *twoServers) only(t *testing.T, triple sid.Triple, first bool) {
	t.Helper()
	targets := []resolve.Target{{Locator: n.first.locator, Weight: 65535}, {Locator: n.second.locator, Weight: 1}}
	if first {
		targets = targets[:1]
	}
	must(t, n.resolver.SetTable(triple, targets))
}

// who answers a connection.
func (n *twoServers) who(t *testing.T) string {
	t.Helper()
	return ask(t, n.client.NS, at(webAddr, webTCP.Port))
}

// whoAnswers a datagram.
func (n *twoServers) whoAnswers(t *testing.T) string {
	t.Helper()
	n.asked++
	who, err := n.client.askDatagram(10000 + n.asked)
	must(t, err)
	return who
}

// askDatagram asks from a port, and says who answered. A flow of a port that was used a moment ago is still bound to whom it
// asked: so each question has one of its own.
func (h *testHost) askDatagram(from uint16) (who string, err error) {
	var c net.PacketConn
	h.Do(func() { c, err = net.ListenPacket("udp6", fmt.Sprintf("[::]:%d", from)) })
	if err != nil {
		return "", err
	}
	defer c.Close()
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(webAddr, webUDP.Port))
	if err := errors.Join(c.SetDeadline(time.Now().Add(nstest.Deadline)), second(c.WriteTo([]byte("question"), to))); err != nil {
		return "", err
	}
	b := make([]byte, 64)
	k, _, err := c.ReadFrom(b)
	return string(b[:k]), err
}

// greetDatagrams answers each with a name.
func greetDatagrams(c net.PacketConn, name string) {
	b := make([]byte, 2048)
	for {
		_, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		c.WriteTo([]byte(name), from) // who asked notices
	}
}

// listensWith opens sockets of both protocols with an option, on an address of the host.
func (h *testHost) listensWith(t *testing.T, name, addr, network string, option func(fd int) error) {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = option(int(fd)) }); e != nil {
			return e
		}
		return err
	}}
	h.Do(func() {
		l, err := config.Listen(context.Background(), "tcp"+network, fmt.Sprintf("[%s]:%d", addr, webTCP.Port))
		must(t, err)
		t.Cleanup(func() { l.Close() })
		go greet(l, name)
		c, err := config.ListenPacket(context.Background(), "udp"+network, fmt.Sprintf("[%s]:%d", addr, webUDP.Port))
		must(t, err)
		t.Cleanup(func() { c.Close() })
		go greetDatagrams(c, name)
	})
}

func no(int) error { return nil }

func reusePort(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }

func boundTo(device string) func(int) error {
	return func(fd int) error { return unix.BindToDevice(fd, device) }
}

// TestOnlySocketsOfTheServiceTakeItsPackets: the server of a registered port is dead, and its daemon is away. What the
// daemon would not count as an instance gets none of its connections; what it would gets them.
func TestOnlySocketsOfTheServiceTakeItsPackets(t *testing.T) {
	n := serveTwice(t)
	for _, c := range []struct {
		name, addr, network string
		option              func(fd int) error
		want                string
	}{
		{"on the wildcard address of IPv6", "::", "6", no, "second"},
		{"on all addresses, IPv4 too", "::", "", no, "second"},
		{"bound to a device by which nothing of services comes", webAddr.String(), "6", boundTo("lo"), "second"},
		{"on another service's address", dnsAddr.String(), "6", no, "second"},
		{"on the service's address", webAddr.String(), "6", no, "first"},
		{"on the service's address, of a group", webAddr.String(), "6", reusePort, "first"},
		{"on the service's address, bound to an uplink", webAddr.String(), "6", boundTo("up"), "first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.first.listensWith(t, "first", c.addr, c.network, c.option)
			n.only(t, webTCP, c.want == "first")
			n.only(t, webUDP, c.want == "first")
			if got := n.who(t); got != c.want {
				t.Errorf("a listener on port 80 of the first host: %s has the connection, want %s", got, c.want)
			}
			if got := n.whoAnswers(t); got != c.want {
				t.Errorf("a socket on UDP port 53 of the first host: %s has the datagram, want %s", got, c.want)
			}
		})
	}
	t.Run("on both, and the wildcard address was bound last", func(t *testing.T) {
		n.first.listensWith(t, "first", webAddr.String(), "6", reusePort)
		n.only(t, webTCP, true)
		n.only(t, webUDP, true)
		n.first.listensWith(t, "the wildcard", "::", "6", reusePort)
		if tcp, udp := n.who(t), n.whoAnswers(t); tcp != "first" || udp != "first" {
			t.Errorf("%s has the connection, %s the datagram, want first", tcp, udp)
		}
	})
}

// TestAProgramThatDiedInAGuestRefusesNobody: its host's daemon is away, so that the edge asks the guest's kernel.
func TestAProgramThatDiedInAGuestRefusesNobody(t *testing.T) {
	n := serveTwice(t)
	named, wild := n.first.guest(t, "named", 1), n.first.guestWith(t, "wild", 2, true)
	for _, triple := range []sid.Triple{webTCP, webUDP} {
		must(t, n.first.edge.SetOwners(triple, []uint16{1}))
	}
	l, c := named.Listen(t, "tcp6", at(webAddr, webTCP.Port)), named.ListenPacket(t, "udp6", at(webAddr, webUDP.Port))
	go greet(l, "named")
	go greetDatagrams(c, "named")
	expect := func(when string, tcp, udp string) {
		t.Helper()
		n.only(t, webTCP, tcp != "second")
		n.only(t, webUDP, udp != "second")
		for range 10 {
			if got := n.who(t); got != tcp {
				t.Fatalf("%s: %s has the connection, want %s", when, got, tcp)
			}
			if got := n.whoAnswers(t); got != udp {
				t.Fatalf("%s: %s has the datagram, want %s", when, got, udp)
			}
		}
	}
	expect("while it serves", "named", "named")
	l.Close()
	c.Close()
	expect("after its death", "second", "second")
	go greet(named.Listen(t, "tcp6", fmt.Sprintf("[::]:%d", webTCP.Port)), "an unrelated program")
	expect("with another program on the wildcard address", "second", "second")

	must(t, n.first.edge.SetOwners(webTCP, []uint16{2}))
	all := wild.Listen(t, "tcp6", fmt.Sprintf("[::]:%d", webTCP.Port))
	go greet(all, "wild")
	expect("in a guest whose wildcard listeners serve", "wild", "second")
	all.Close()
	expect("after their death", "second", "second")
}

// TestADeadGuestLeavesItsShareToAnother of the same host, or to the host itself: nobody else serves.
func TestADeadGuestLeavesItsShareToAnother(t *testing.T) {
	n := newNetwork(t)
	client, h := n.host(t, "client", 1, Config{}), n.host(t, "host", 2, Config{})
	counters(t, client, h)
	n.serve(t, webTCP, h)
	must(t, h.edge.AdmitListening(webTCP))
	one, two := h.guest(t, "one", 1), h.guest(t, "two", 2)
	must(t, h.edge.SetOwners(webTCP, []uint16{0, 1, 2}))
	listeners := map[string]net.Listener{}
	for _, at := range []struct {
		name string
		l    net.Listener
	}{{"host", h.Listen(t, "tcp6", at(webAddr, 80))}, {"one", one.Listen(t, "tcp6", at(webAddr, 80))}, {"two", two.Listen(t, "tcp6", at(webAddr, 80))}} {
		go greet(at.l, at.name)
		listeners[at.name] = at.l
	}
	seen := func() map[string]int {
		all := map[string]int{}
		for range 60 {
			all[ask(t, client.NS, at(webAddr, 80))]++
		}
		return all
	}
	for _, dead := range []string{"", "two", "host"} {
		if dead != "" {
			listeners[dead].Close()
			delete(listeners, dead)
		}
		if got := seen(); len(got) != len(listeners) || got[dead] > 0 {
			t.Errorf("after the death of %q: %v answered, want all of %d", dead, got, len(listeners))
		}
	}
}
