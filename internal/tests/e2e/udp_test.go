package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// twoDatagramServers are s1 and s2, with a datagram policy.
func (n *network) twoDatagramServers(service, datagrams string) (netip.AddrPort, map[string]net.PacketConn) {
	n.t.Helper()
	addr := n.create(service, &apiv1.Policy{Datagrams: datagrams})
	n.resolve("c1", service, addr)
	servers := map[string]net.PacketConn{"s1": n.serveUDP("s1", port(addr, 80)), "s2": n.serveUDP("s2", port(addr, 80))}
	n.serving(service, "udp", 80, 2)
	return netip.AddrPortFrom(addr, 80), servers
}

// resolve asks for a name as programs do; the host learns the service's policy with it.
func (n *network) resolve(host, service string, want netip.Addr) {
	n.t.Helper()
	if out, err := n.run(host, "getent", "ahostsv6", service+".svc"); err != nil || !strings.HasPrefix(out, want.String()+" ") {
		n.t.Fatalf("%s asks for %s.svc: %q, %v; want %v\nlook at: %s", host, service, out, err, want, n.look())
	}
}

// askFrom sends a datagram from a socket that is not connected: the answer must come from the service.
func (n *network) askFrom(pc net.PacketConn, to netip.AddrPort, line string) (host string) {
	n.t.Helper()
	pc.SetDeadline(time.Now().Add(answerTime))
	if _, err := pc.WriteTo([]byte(line), net.UDPAddrFromAddrPort(to)); err != nil {
		n.t.Fatalf("send to %v: %v", to, err)
	}
	buf := make([]byte, 1<<16)
	size, from, err := pc.ReadFrom(buf)
	if err != nil {
		n.t.Fatalf("no answer from %v: %v\nthe client's edge counts %v\nlook at: %s", to, err, n.drops("c1"), n.look())
	}
	if from.String() != to.String() {
		n.t.Errorf("asked %v, the answer came from %v", to, from)
	}
	host, echo, _ := strings.Cut(string(buf[:size]), " ")
	if echo != line {
		n.t.Errorf("sent %d bytes, %s answered %d other ones", len(line), host, len(echo))
	}
	return host
}

func TestDatagramsOfBoundFlowsStay(t *testing.T) {
	n := theNetwork(t)
	to, servers := n.twoDatagramServers("udp-bound", "bound")
	pc := n.at("c1").ListenPacket(t, "udp6", "[::]:0")
	first, sockets := n.askFrom(pc, to, "first"), map[string]int{}
	for i := range 100 {
		if host := n.askFrom(pc, to, fmt.Sprint("datagram ", i)); host != first {
			t.Fatalf("datagram %d of a flow that is bound to %s was answered by %s", i, first, host)
		}
		sockets[n.askFrom(n.at("c1").ListenPacket(t, "udp6", "[::]:0"), to, "who")]++
	}
	if len(sockets) != len(servers) {
		t.Errorf("100 sockets met %v, want s1 and s2", sockets)
	}
}

func TestUnboundDatagramsMeetTheNextInstance(t *testing.T) {
	n := theNetwork(t)
	to, servers := n.twoDatagramServers("udp-unbound", "unbound")
	pc := n.at("c1").ListenPacket(t, "udp6", "[::]:0")
	first := n.askFrom(pc, to, "first")
	servers[first].Close()
	n.serving("udp-unbound", "udp", 80, 1)
	if n.switched() { // Open vSwitch follows a change of its tables within milliseconds; until then it is as before
		n.settle(pc, to)
	}
	for i := range 20 {
		if host := n.askFrom(pc, to, fmt.Sprint("datagram ", i)); host == first {
			t.Fatalf("%s has closed its socket and answers datagram %d", host, i)
		}
	}
}

// settle sends datagrams until one is answered.
func (n *network) settle(pc net.PacketConn, to netip.AddrPort) {
	n.t.Helper()
	buf := make([]byte, 1<<16)
	lost := -1
	nstest.Wait(n.t, n.look(), func() error {
		lost++
		pc.SetDeadline(time.Now().Add(50 * time.Millisecond))
		pc.WriteTo([]byte("are you there?"), net.UDPAddrFromAddrPort(to))
		_, _, err := pc.ReadFrom(buf)
		return err
	})
	n.t.Logf("%d datagrams were lost on the way to a server that has gone", lost)
}

func TestUnsetDatagramsLeaveNoEntry(t *testing.T) {
	safety.Test(t, safety.Trace)
	n := theNetwork(t)
	a, b := n.create("udp-peer-a", &apiv1.Policy{Datagrams: "unset"}), n.create("udp-peer-b", &apiv1.Policy{Datagrams: "unset"})
	for _, host := range []string{"c1", "s1"} { // each asks for the other's name, as programs do
		n.resolve(host, "udp-peer-a", a)
		n.resolve(host, "udp-peer-b", b)
	}
	pc := n.at("c1").ListenPacket(t, "udp6", port(a, 9000))
	n.serveUDP("s1", port(b, 9000))
	n.serving("udp-peer-a", "udp", 9000, 1)
	n.serving("udp-peer-b", "udp", 9000, 1)
	for i := range 50 {
		n.askFrom(pc, netip.AddrPortFrom(b, 9000), fmt.Sprint("datagram ", i))
	}
	for _, host := range []string{"c1", "s1"} {
		n.noFlows("udp-peer-a", host)
		n.noFlows("udp-peer-b", host)
	}
}

// noFlows fails if a host has an entry for flows of a service.
func (n *network) noFlows(service, host string) {
	n.t.Helper()
	r, err := n.local(host).ListFlows(n.t.Context(), connect.NewRequest(&apiv1.ListFlowsRequest{Service: service}))
	if err != nil {
		n.t.Fatalf("flows of %s: %v", host, err)
	}
	if len(r.Msg.Flows) > 0 {
		n.t.Errorf("%s has %d flows of %s, the first %v, want none", host, r.Msg.Total, service, r.Msg.Flows[0])
	}
}

func TestRepliesFromAnotherPort(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("transfer")
	door := n.at("s1").ListenPacket(t, "udp6", port(addr, 69))
	n.serving("transfer", "udp", 69, 1)
	client := n.at("c1").ListenPacket(t, "udp6", "[::]:0")
	client.SetDeadline(time.Now().Add(answerTime))
	client.WriteTo([]byte("read"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 69)))
	buf := make([]byte, 2048)
	door.SetDeadline(time.Now().Add(answerTime))
	_, peer, err := door.ReadFrom(buf)
	if err != nil {
		t.Fatalf("the request does not arrive: %v\nlook at: %s", err, n.look())
	}
	room := n.at("s1").ListenPacket(t, "udp6", port(addr, 0))
	room.SetDeadline(time.Now().Add(answerTime))
	for i := range 50 {
		block := []byte(fmt.Sprint("block ", i))
		room.WriteTo(block, peer)
		size, from, err := client.ReadFrom(buf)
		if err != nil || !bytes.Equal(buf[:size], block) || from.String() != room.LocalAddr().String() {
			t.Fatalf("block %d: %q from %v, %v; want it from %v\nthe client's edge counts %v\nlook at: %s", i, buf[:size], from, err, room.LocalAddr(), n.drops("c1"), n.look())
		}
		client.WriteTo([]byte("ack"), from)
		if size, at, err := room.ReadFrom(buf); err != nil || string(buf[:size]) != "ack" || at.String() != peer.String() {
			t.Fatalf("acknowledgement %d: %q from %v, %v; want it from %v\nthe server's edge counts %v\nlook at: %s", i, buf[:size], at, err, peer, n.drops("s1"), n.look())
		}
	}
}

// TestOneSocketAsksSeveralPorts: they are served on different hosts, each answers, and the list of flows tells them apart.
func TestOneSocketAsksSeveralPorts(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("doors")
	n.resolve("c1", "doors", addr)
	pc, want := n.at("c1").ListenPacket(t, "udp6", "[::]:0"), map[string]string{}
	for i, host := range []string{"s1", "s2"} {
		n.serveUDP(host, port(addr, 7081+i))
		n.serving("doors", "udp", 7081+i, 1)
		want[port(addr, 7081+i)] = host
	}
	for round := range 2 {
		for at, host := range want {
			if got := n.askFrom(pc, netip.MustParseAddrPort(at), fmt.Sprint("round ", round)); got != host {
				t.Errorf("%v was answered by %s, want %s", at, got, host)
			}
		}
	}
	r, err := n.local("c1").ListFlows(t.Context(), connect.NewRequest(&apiv1.ListFlowsRequest{Service: "doors"}))
	if err != nil {
		t.Fatalf("flows of c1: %v", err)
	}
	for _, f := range r.Msg.Flows {
		delete(want, f.Peer)
	}
	if len(want) > 0 || len(r.Msg.Flows) != 2 {
		t.Errorf("no flow of c1 is that to %v; its flows: %v", want, r.Msg.Flows)
	}
}

func TestDatagramsLargerThanAPacket(t *testing.T) {
	n := theNetwork(t)
	to, _ := n.twoDatagramServers("large", "bound")
	for _, size := range []int{4000, 60000} {
		pc := n.at("c1").ListenPacket(t, "udp6", "[::]:0")
		for range 20 {
			n.askFrom(pc, to, strings.Repeat("0123456789", size/10)) // the first meets the service, the others are bound
		}
	}
}

func TestGSOSendArrivesAsDatagrams(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("gso")
	server := n.at("s1").ListenPacket(t, "udp6", port(addr, 80))
	server.(*net.UDPConn).SetReadBuffer(1 << 20)
	n.serving("gso", "udp", 80, 1)
	c := n.dial("c1", "udp6", port(addr, 80)).(*net.UDPConn)
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	const segment, segments = 1200, 40
	raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, segment) })
	if err != nil {
		t.Fatalf("UDP_SEGMENT, which Linux has since 4.18: %v", err)
	}
	for round := range 3 {
		data := make([]byte, segment*segments)
		for i := range data {
			data[i] = byte(i / segment)
		}
		if _, err := c.Write(data); err != nil {
			t.Fatal(err)
		}
		n.receiveSegments(server, round, segment, segments)
	}
}

// receiveSegments checks that each segment arrives once, whole; the network may change their order.
func (n *network) receiveSegments(server net.PacketConn, round, segment, segments int) {
	n.t.Helper()
	server.SetDeadline(time.Now().Add(answerTime))
	seen, buf := map[byte]bool{}, make([]byte, 1<<16)
	for len(seen) < segments {
		size, _, err := server.ReadFrom(buf)
		if err != nil {
			n.t.Fatalf("round %d: %d of %d segments arrived: %v\nthe client's edge counts %v, the server's %v", round, len(seen), segments, err, n.drops("c1"), n.drops("s1"))
		}
		if size != segment || seen[buf[0]] || buf[0] != buf[size-1] {
			n.t.Fatalf("round %d: a datagram of %d bytes, first %d, last %d; want %d bytes, all the same, not seen before", round, size, buf[0], buf[size-1], segment)
		}
		seen[buf[0]] = true
	}
}

func TestPingByName(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("ping")
	n.serveTCP("s1", port(addr, 80))
	n.serving("ping", "tcp", 80, 1)
	for _, size := range []string{"56", "4000"} {
		out, err := n.run("c1", "ping", "-6", "-n", "-c", "5", "-i", "0.05", "-W", "5", "-s", size, "ping.svc")
		if err != nil || !strings.Contains(out, " 0% packet loss") || strings.Count(out, "bytes from "+addr.String()) != 5 {
			t.Errorf("ping -s %s ping.svc (%v): %v\n%s\nlook at: %s", size, addr, err, out, n.look())
		}
	}
}

func TestASmallMTUInTheMiddle(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("mtu")
	n.loadServers("far", addr)
	n.serving("mtu", "udp", askPort, 1)
	n.serving("mtu", "tcp", echoPort, 1)
	l := n.startLoad(addr) // blocks of 64 KB over TCP, both ways
	l.progress("over a link with MTU 1400")
	l.finish()
	c := n.dial("c1", "udp6", port(addr, askPort))
	if lost := n.insist(c, strings.Repeat("x", 1440)); lost > 4 {
		t.Errorf("%d datagrams were lost before both ends knew the MTU", lost)
	}
}

// insist sends a datagram until it comes back: those that are the first to meet a small link are lost, and
// each end learns its MTU by that.
func (n *network) insist(c net.Conn, line string) (lost int) {
	n.t.Helper()
	buf := make([]byte, 1<<16)
	nstest.Wait(n.t, n.look(), func() error {
		c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		c.Write([]byte(line))
		size, err := c.Read(buf)
		if err != nil || !strings.HasSuffix(string(buf[:size]), " "+line) {
			lost++
			return fmt.Errorf("%d datagrams of %d bytes, none came back (%v); edges count %v and %v", lost, len(line), err, n.drops("c1"), n.drops("far"))
		}
		return nil
	})
	return lost
}
