package host

import (
	"net/netip"
	"runtime"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/flow"
)

// FuzzIngress gives the program and the oracle the same bytes from the wire, twice, at a host that has a flow of each
// kind: verdict, bytes, event and counter must be the same.
func FuzzIngress(f *testing.F) { fuzz(f, (*world).arrive) }

// FuzzEgress does so with what local sockets send.
func FuzzEgress(f *testing.F) { fuzz(f, (*world).send) }

func fuzz(f *testing.F, give func(*world, []byte) flow.Output) {
	w := newWorld(f)
	for _, b := range w.busy(f) {
		f.Add(false, b, []byte{})
		f.Add(true, b, b)
	}
	f.Fuzz(func(t *testing.T, told bool, first, second []byte) {
		runtime.LockOSThread() // each input has a goroutine of its own; socketIDs depend on the CPU
		defer runtime.UnlockOSThread()
		pinToCPU(t)
		w.reset(t)
		w.busy(t)
		w.tell(told)
		for _, b := range [][]byte{first, second} {
			if len(b) < ip6Len || len(b) > 1500 {
				continue // BPF_PROG_TEST_RUN wants a whole header
			}
			b = append([]byte(nil), b...)
			b[0] = 6<<4 | b[0]&0xf // the kernel's ip6_rcv lets nothing else up, and sends nothing else
			give(w, b)
			w.drain()
		}
	})
}

// busy gives the host flows of each kind and returns packets of all sorts about them.
func (w *world) busy(t tester) (packets [][]byte) {
	add := func(ps ...bpftest.Packet) {
		for _, p := range ps {
			packets = append(packets, p.Bytes())
		}
	}
	w.uplinkAt(2, there, 1300)
	calling := connect(t, w, 4000, 100)
	bound := connect(t, w, 4001, 100)
	bind(t, w, bound, peerP, 4001, 100)
	server := accepted(t, w)
	half, _ := addrs(w.send(tcp(webAddr, peerQ, 80, 4002, bpftest.SYN|bpftest.ACK, 9, 2).Bytes()))
	asked, _ := addrs(w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes()))
	answered, _ := addrs(w.send(udp(dnsAddr, peerQ, 53, 5001, "a").Bytes()))
	pinging, _ := addrs(w.send(echo(vid, dnsAddr, 128, 77).Bytes()))
	pinged, _ := addrs(w.send(echo(webAddr, peerQ, 129, 9).Bytes()))
	suffix, router := here.Addr(uint64(web.Suffix)), space.Locator(0x100).Host()
	options := tcp(peerQ, suffix, 4003, 80, bpftest.SYN, 1, 0)
	options.Options = []byte{1, 2, 4, 5, 0xb4, 3, 3, 7}
	extended := udp(peerP, asked, 53, 5000, "extended")
	extended.FirstExt, extended.Extensions = 0, []byte{60, 0, 1, 4, 0, 0, 0, 0, bpftest.UDP, 0, 1, 4, 0, 0, 0, 0}
	add(options, extended,
		tcp(peerP, calling, 80, 4000, bpftest.SYN|bpftest.ACK, 900, 101), tcp(peerP, calling, 80, 4000, bpftest.RST|bpftest.ACK, 0, 101),
		tcp(peerP, bound, 80, 4001, bpftest.ACK|bpftest.PSH, 901, 101), tcp(peerQ, bound, 80, 4001, bpftest.SYN|bpftest.ACK, 1, 101),
		tcp(peerP, server, 4000, 80, bpftest.FIN|bpftest.ACK, 2, 10), tcp(peerQ, half, 4002, 80, bpftest.ACK, 2, 10),
		udp(peerP, asked, 53, 5000, "a"), udp(peerQ, answered, 5001, 53, "q"), udp(peerQ, here.Addr(uint64(dns.Suffix)), 5, 53, "q"),
		echo(peerP, pinging, 129, 77), echo(peerQ, pinged, 128, 9), echo(peerQ, suffix, 128, 9),
		note(router, here.Host(), 3, 1), note(router, here.Host(), 4, w.edge.ProbeNonce()), note(peerP, bound, 7, 1),
		note(peerP, here.Addr(1<<63|5), 10, 1), note(peerP, suffix, 10, 0), tcp(peerP, here.Addr(1<<63|5), 1, 2, bpftest.ACK, 1, 1),
		tcp(peerP, webAddr, 4000, 80, bpftest.SYN, 1, 0), tcp(peerP, here.Addr(uint64(web.Suffix)), 1, 22, bpftest.SYN, 1, 0),
		quote(router, bound, 1, 0, tcp(bound, peerP, 4001, 80, bpftest.ACK, 1, 1).Bytes()),
		quote(router, asked, 2, 0, udp(asked, dnsAddr, 5000, 53, "q").Bytes()),
		quote(router, pinging, 3, 0, echo(pinging, dnsAddr, 128, 77).Bytes()),
		// what sockets send
		tcp(vid, webAddr, 4000, 80, bpftest.SYN, 100, 0), tcp(vid, webAddr, 4001, 80, bpftest.ACK, 101, 901), tcp(vid, webAddr, 4004, 80, bpftest.SYN, 7, 0),
		tcp(webAddr, peerP, 80, 4000, bpftest.FIN|bpftest.ACK, 10, 2), tcp(webAddr, peerQ, 80, 4005, bpftest.SYN|bpftest.ACK, 9, 2),
		tcp(webAddr, peerQ, 80, 4006, bpftest.RST|bpftest.ACK, 0, 2), udp(vid, dnsAddr, 5000, 53, "more"), udp(dnsAddr, peerQ, 54, 5001, "a"),
		udp(dnsAddr, there.Addr(uint64(web.Suffix)), 53, 53, "a"), echo(vid, webAddr, 128, 5), echo(webAddr, peerP, 129, 5),
		tcp(vid, peerP, 1, 80, bpftest.SYN, 1, 0), udp(here.Host(), there.Host(), 1, 2, "x"), note(bound, peerP, 7, 1),
		note(other.Host(), there.Host(), 7, 1), udp(other.Addr(1<<63|1), there.Addr(uint64(dns.Suffix)), 1, 53, "x"),
		quote(vid, webAddr, 1, 4, tcp(webAddr, vid, 80, 4001, bpftest.ACK, 1, 1).Bytes()), quote(dnsAddr, peerQ, 1, 4, udp(peerQ, dnsAddr, 5001, 53, "q").Bytes()),
		udp(vid, netip.MustParseAddr("2001:db8::1"), 1, 2, "x"),
	)
	for _, p := range []bpftest.Packet{udp(vid, dnsAddr, 5000, 53, "a datagram in pieces"), udp(peerP, asked, 53, 5000, "a datagram in pieces")} {
		packets = append(packets, fragments(p, 7, 16)...)
	}
	return packets
}
