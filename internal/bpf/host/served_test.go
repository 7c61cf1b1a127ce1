package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/sid"
)

// TestNoConnectionIsRefusedWhileSomebodyServes: no daemon reads events, no controller changes tables, and one after the
// other the programs of all hosts but the last end, the heavy one first. Each new connection and each question over UDP
// meets one that serves.
func TestNoConnectionIsRefusedWhileSomebodyServes(t *testing.T) {
	const servers = 4
	n := newNetwork(t)
	client := n.host(t, "client", 1, Config{})
	var hosts []*testHost
	var targets []resolve.Target
	for i := range servers {
		h := n.host(t, fmt.Sprintf("s%d", i), uint16(2+i), Config{})
		hosts = append(hosts, h)
		targets = append(targets, resolve.Target{Locator: h.locator, Weight: 1})
	}
	targets[0].Weight = 1000
	all := append([]*testHost{client}, hosts...)
	counters(t, all...)
	for _, triple := range []sid.Triple{webTCP, webUDP} {
		n.serve(t, triple, hosts...)
		must(t, n.resolver.SetTable(triple, targets))
		for _, h := range hosts {
			must(t, h.edge.AdmitListening(triple))
		}
	}
	tcp, udp := make([]net.Listener, servers), make([]net.PacketConn, servers)
	for i, h := range hosts {
		tcp[i] = h.Listen(t, "tcp6", at(webAddr, webTCP.Port))
		go echoServer(tcp[i])
		udp[i] = h.ListenPacket(t, "udp6", at(webAddr, webUDP.Port))
		go echoDatagrams(udp[i])
	}
	for dead := range servers {
		if dead > 0 {
			tcp[dead-1].Close()
			udp[dead-1].Close()
		}
		for i := range 100 {
			c, err := client.dial(at(webAddr, webTCP.Port))
			if err != nil {
				t.Fatalf("%d of %d are dead, connection %d: %v", dead, servers, i, err)
			}
			c.Close()
			// From ports of their own: a flow of one that was used a moment ago is still bound to whom it asked.
			d := client.ListenPacket(t, "udp6", fmt.Sprintf("[::]:%d", 10000+100*dead+i))
			within(t, d)
			must(t, second(d.WriteTo([]byte("question"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(webAddr, webUDP.Port)))))
			if _, _, err := d.ReadFrom(make([]byte, 16)); err != nil {
				t.Fatalf("%d of %d are dead, question %d: %v", dead, servers, i, err)
			}
			d.Close()
		}
	}
	before, err := hosts[0].edge.Counters()
	must(t, err)
	if before["bounced"] == 0 {
		t.Errorf("the heavy one returned nothing: %v; did anybody ask it?", before)
	}
	tcp[servers-1].Close()
	if _, err := client.dial(at(webAddr, webTCP.Port)); err == nil {
		t.Error("connected, although nobody serves any more")
	}
}

func second(_ int, err error) error { return err }

func echoDatagrams(c net.PacketConn) {
	b := make([]byte, 2048)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		c.WriteTo(b[:n], from) // who asked notices
	}
}

// TestTheOnlyOneThatReturnsIsRefused: by the router, and its client hears of it.
func TestTheOnlyOneThatReturnsIsRefused(t *testing.T) {
	n := newNetwork(t)
	client, server := n.host(t, "client", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, client, server)
	n.serve(t, webTCP, server)
	must(t, server.edge.AdmitListening(webTCP))
	if _, err := client.dial(at(webAddr, webTCP.Port)); !errors.Is(err, unix.ECONNREFUSED) {
		c, _ := n.resolver.Counters()
		t.Errorf("%v, want %v; the router counts %v", err, unix.ECONNREFUSED, c)
	}
}
