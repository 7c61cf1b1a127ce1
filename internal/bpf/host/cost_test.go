package host

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// BenchmarkEdge prints what the kernel's own accounting says the programs cost per packet, on one TCP stream
// and on datagrams back and forth, also where the server answers from another port.
func BenchmarkEdge(b *testing.B) {
	n := newNetwork(b)
	client, server := n.host(b, "client", 1, Config{}), n.host(b, "server", 2, Config{})
	n.serve(b, webTCP, server)
	n.serve(b, dnsUDP, server)
	must(b, server.edge.AdmitListening(webTCP)) // as daemons have it: the kernel is asked for each connection
	must(b, server.edge.AdmitListening(dnsUDP))
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	must(b, err)
	defer stats.Close()
	b.Run("stream", func(b *testing.B) { cost(b, client, func() { stream(b, client, server) }) })
	b.Run("datagrams", func(b *testing.B) { cost(b, client, func() { datagrams(b, client, server) }) })
	b.Run("answers", func(b *testing.B) { cost(b, client, func() { answers(b, client, server) }) })
	b.Run("connections", func(b *testing.B) { connections(b, client, server) })
}

// connections prints what the programs of both hosts take for a connection with one request.
func connections(b *testing.B, client, server *testHost) {
	l := server.Listen(b, "tcp6", at(webAddr, 80))
	defer l.Close()
	go func() {
		buf := make([]byte, 1)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Read(buf)
			c.Write(buf)
			c.Close()
		}
	}()
	total := func() (ns int64, runs uint64) {
		for _, h := range []*testHost{client, server} {
			for _, prog := range []*ebpf.Program{h.edge.programs[ethernetLen].EdgeEgress, h.edge.programs[ethernetLen].EdgeIngress} {
				s, err := prog.Stats()
				must(b, err)
				ns, runs = ns+s.Runtime.Nanoseconds(), runs+s.RunCount
			}
		}
		return ns, runs
	}
	ns, runs := total()
	buf := make([]byte, 1)
	client.Do(func() {
		for b.Loop() {
			c, err := net.Dial("tcp6", at(webAddr, 80))
			must(b, err)
			c.Write(buf)
			c.Read(buf)
			c.Read(buf)
			c.Close()
		}
	})
	after, ran := total()
	b.ReportMetric(float64(after-ns)/float64(b.N), "edge-ns/connection")
	b.ReportMetric(float64(ran-runs)/float64(b.N), "packets/connection")
}

func cost(b *testing.B, h *testHost, work func()) {
	p := h.edge.programs[ethernetLen]
	before := [2]*ebpf.ProgramStats{}
	for i, prog := range []*ebpf.Program{p.EdgeEgress, p.EdgeIngress} {
		before[i], _ = prog.Stats()
	}
	work()
	sum := 0.0
	for i, prog := range []*ebpf.Program{p.EdgeEgress, p.EdgeIngress} {
		after, err := prog.Stats()
		must(b, err)
		ns := float64((after.Runtime - before[i].Runtime).Nanoseconds()) / float64(after.RunCount-before[i].RunCount)
		b.ReportMetric(ns, directions[i]+"-ns/packet")
		sum += ns
	}
	b.ReportMetric(sum, "both-ns/packet")
}

func stream(b *testing.B, client, server *testHost) {
	var l net.Listener
	server.Do(func() { l, _ = net.Listen("tcp6", at(webAddr, 80)) })
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(io.Discard, c)
		}
	}()
	c, err := client.dial(at(webAddr, 80))
	must(b, err)
	defer c.Close()
	buf := make([]byte, 256<<10)
	for b.Loop() {
		c.Write(buf)
	}
}

func datagrams(b *testing.B, client, server *testHost) {
	var s, c net.PacketConn
	server.Do(func() { s, _ = net.ListenPacket("udp6", at(dnsAddr, 53)) })
	client.Do(func() { c, _ = net.ListenPacket("udp6", "[::]:0") })
	defer s.Close()
	defer c.Close()
	to, buf := net.UDPAddrFromAddrPort(netip.AddrPortFrom(dnsAddr, 53)), make([]byte, 1500)
	for b.Loop() {
		c.WriteTo(buf[:100], to)
		_, peer, err := s.ReadFrom(buf)
		must(b, err)
		s.WriteTo(buf[:100], peer)
		c.ReadFrom(buf)
	}
}

// answers is datagrams with a server that answers from another port, to which the client then writes.
func answers(b *testing.B, client, server *testHost) {
	var s, child, c net.PacketConn
	server.Do(func() {
		s, _ = net.ListenPacket("udp6", netip.AddrPortFrom(dnsAddr, 53).String())
		child, _ = net.ListenPacket("udp6", netip.AddrPortFrom(dnsAddr, 0).String())
	})
	client.Do(func() { c, _ = net.ListenPacket("udp6", "[::]:0") })
	for _, x := range []net.PacketConn{s, child, c} {
		defer x.Close()
	}
	buf := make([]byte, 1500)
	c.WriteTo(buf[:100], net.UDPAddrFromAddrPort(netip.AddrPortFrom(dnsAddr, 53)))
	_, peer, err := s.ReadFrom(buf)
	must(b, err)
	for b.Loop() {
		child.WriteTo(buf[:100], peer)
		_, from, err := c.ReadFrom(buf)
		must(b, err)
		c.WriteTo(buf[:100], from)
		child.ReadFrom(buf)
	}
}
