package host

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/internal/core/flow"
	"scaffold.dev/scaffold/sid"
)

// markCarried is MARK_CARRIED of carried.h.
const markCarried = 0x30b0

// nobody is a user without any right.
const nobody = 65534

// TestALocalUserSendsFromNoOtherHostsAddress plays a user without rights who would be let in as another host: he binds its
// locator, as ip_nonlocal_bind lets him, and sends straight to the instance, past resolution and access lists.
func TestALocalUserSendsFromNoOtherHostsAddress(t *testing.T) {
	n := newNetwork(t)
	user, server := n.host(t, "user", 1, Config{}), n.host(t, "server", 2, Config{})
	counters(t, user, server)
	n.serve(t, dnsUDP, server)
	allowed := space.Locator(0x103)
	frames := n.router.Frames(t, user.Name)
	to := netip.AddrPortFrom(server.locator.Addr(uint64(dns.Suffix)), 53)
	user.as(t, nobody, func() {
		for _, src := range []netip.AddrPort{
			netip.AddrPortFrom(allowed.Addr(1<<63|1), 5000),
			netip.AddrPortFrom(allowed.Host(), sid.Port), // messages, too
		} {
			from(t, src, to)
			from(t, src, netip.AddrPortFrom(server.locator.Host(), sid.Port))
			from(t, src, netip.AddrPortFrom(dnsAddr, 53))
			from(t, src, netip.MustParseAddrPort("[2001:db8::1]:53"))
		}
	})
	if all, err := user.edge.Counters(); err != nil || all["drop_foreign_source"] != 6 {
		t.Errorf("%d datagrams count as drop_foreign_source, want 6: those that had a route; %v", all["drop_foreign_source"], err)
	}
	for _, f := range frames.Drain(t) {
		if len(f) >= 54 && f[12] == 0x86 && f[13] == 0xdd && allowed.Prefix().Contains(netip.AddrFrom16([16]byte(f[22:38]))) {
			t.Errorf("on the wire: %x", f)
		}
	}
	s := server.ListenPacket(t, "udp6", at(dnsAddr, 53))
	defer s.Close()
	within(t, s)
	c, err := user.Dial("udp6", at(dnsAddr, 53)) // who is himself is served
	must(t, err)
	defer c.Close()
	_, err = c.Write([]byte("q"))
	must(t, err)
	_, peer, err := s.ReadFrom(make([]byte, 9))
	must(t, err)
	if a := peer.(*net.UDPAddr).AddrPort().Addr(); !user.locator.Prefix().Contains(a) {
		t.Errorf("the server sees %v", a)
	}
}

// as runs f on a thread of the namespace as another user.
func (h *testHost) as(t *testing.T, uid int, f func()) {
	h.Do(func() {
		set := func(id uintptr) {
			if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), id, ^uintptr(0)); err != 0 { // this thread alone
				t.Fatalf("become user %d: %v", id, err)
			}
		}
		set(uintptr(uid))
		defer set(0)
		f()
	})
}

// from sends a datagram from an address that no interface has, by the calling thread.
func from(t *testing.T, src, dst netip.AddrPort) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	must(t, err)
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet6{Addr: src.Addr().As16(), Port: int(src.Port())}); err != nil {
		t.Fatalf("bind %v: %v", src, err)
	}
	unix.Sendto(fd, []byte("spoofed"), 0, &unix.SockaddrInet6{Addr: dst.Addr().As16(), Port: int(dst.Port())}) // counted below
}

func TestSourcesOfTheASAreTheHostsOwn(t *testing.T) {
	w := newWorld(t)
	suffix := there.Addr(uint64(dns.Suffix))
	want(t, w.send(udp(other.Addr(1<<63|1), suffix, 5000, 53, "x").Bytes()), flow.Drop, "drop_foreign_source")
	want(t, w.send(udp(other.Host(), there.Host(), sid.Port, sid.Port, "x").Bytes()), flow.Drop, "drop_foreign_source")
	want(t, w.send(tcp(other.Host(), netip.MustParseAddr("2001:db8::1"), 1, 2, bpftest.SYN, 1, 0).Bytes()), flow.Drop, "drop_foreign_source")
	for _, own := range []sid.Locator{here, old} { // old: accepted still
		want(t, w.send(udp(own.Host(), there.Host(), 1, 2, "x").Bytes()), flow.Pass, "")
		want(t, w.send(udp(own.Host(), there.Host(), sid.Port, sid.Port, "x").Bytes()), flow.Pass, "")
	}
	// The mark of what an agent of boost sends for other hosts is believed where a socket here has these ends
	// (TestAgentsOfALabCarryWhatItsFileSays); of a reset, whose socket is closed.
	w.carried = true
	want(t, w.send(tcp(other.Host(), there.Host(), 1, 2, bpftest.RST, 1, 0).Bytes()), flow.Pass, "")
	w.carried = false
	for _, b := range [][]byte{
		tcp(other.Host(), there.Host(), 1, 2, bpftest.SYN, 1, 0).Bytes(), udp(other.Host(), there.Host(), sid.Port, sid.Port, "x").Bytes(),
	} {
		got, err := bpftest.RunMarked(w.edge.programs[ethernetLen].EdgeEgress, testUplink, markCarried, b)
		if must(t, err); got.Verdict != bpftest.Shot {
			t.Errorf("%x passes by its mark alone", b)
		}
	}
	w.uplinkAt(2, there, 1400)
	w.uplinkAt(2, 0, 0) // retired: what is under way goes out under it
	want(t, w.send(udp(there.Host(), other.Host(), sid.Port, sid.Port, "x").Bytes()), flow.Pass, "")
}

// TestErrorsAreAboutWhatTheFlowSent plays who knows a socketID of ours, as a former peer does, and tells of packets to
// somebody else.
func TestErrorsAreAboutWhatTheFlowSent(t *testing.T) {
	w := newWorld(t)
	p := connect(t, w, 4000, 100)
	router := space.Locator(0x100).Host()
	sent := func(dst netip.Addr) []byte {
		return tcp(p, dst, 4000, 80, bpftest.ACK, 101, 901).Bytes()
	}
	tell := func(dst netip.Addr, code uint8) flow.Output {
		return w.arrive(quote(router, p, 1, code, sent(dst)).Bytes())
	}
	want(t, tell(webAddr, 3), flow.Pass, "daemon_away")                        // as it left
	want(t, tell(there.Addr(uint64(web.Suffix)), 3), flow.Drop, "daemon_away") // resolved: the next SYN may find a way
	want(t, tell(there.Addr(uint64(web.Suffix)), 1), flow.Pass, "daemon_away")
	for _, dst := range []netip.Addr{dnsAddr, peerP, there.Addr(uint64(dns.Suffix)), netip.MustParseAddr("2001:db8::1")} {
		want(t, tell(dst, 3), flow.Drop, "drop_unusable_error")
	}
	bind(t, w, p, peerP, 4000, 100)
	redirected := other.Addr(sid.Low(peerP))                       // §5.4
	for _, dst := range []netip.Addr{peerP, redirected, webAddr} { // that of the service, as the peer's kernel quotes it
		want(t, tell(dst, 3), flow.Pass, "")
	}
	for _, dst := range []netip.Addr{peerQ, dnsAddr, there.Addr(uint64(web.Suffix)), there.Host()} {
		want(t, tell(dst, 3), flow.Drop, "drop_unusable_error")
	}
	// An error about what was sent to the peer's place before it moved is about the flow, too, and so is one of after.
	next := here.Addr(1<<63 | 33)
	w.steer(Step{Verb: Accept, Flow: webFlow, Local: addrOf(next)})
	w.steer(Step{Verb: Bind, Flow: webFlow, Local: addrOf(next), Peer: addrOf(peerQ)})
	want(t, tell(peerP, 3), flow.Pass, "")
	want(t, tell(peerQ, 3), flow.Pass, "")
}
