package userstack

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// sent collects what a stack says.
type sent chan []byte

func (s sent) output(_ *Stack, port string, frame []byte) {
	select {
	case s <- append([]byte(port+" "), frame...):
	default:
	}
}

// next is the next frame, which must leave by p1.
func (s sent) next(t *testing.T) []byte {
	t.Helper()
	select {
	case f := <-s:
		frame, ok := bytes.CutPrefix(f, []byte("p1 "))
		if !ok {
			t.Fatalf("left by another port: %.40q", f)
		}
		return frame
	case <-time.After(patience):
		t.Fatal("the stack said nothing")
		return nil
	}
}

// solicit asks for the router's hardware address.
func solicit() []byte {
	body := append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, routerAddr.AsSlice()...)
	body = append(append(body, 1, 1), hostMAC[:]...)
	group := netip.MustParseAddr("ff02::1:ff00:1")
	return ethernet(hostMAC, [6]byte{0x33, 0x33, 0xff, 0, 0, 1}, hostAddr, group, 58, 255, body, 2)
}

func TestAnswersNeighbourSolicitation(t *testing.T) {
	out := make(sent, 16)
	s := newStack(t, routerMAC, routerAddr, out.output, "p1", "p2")
	s.Deliver("p1", solicit())
	f := out.next(t)
	icmp := f[54:]
	if !bytes.Equal(f[:6], hostMAC[:]) || !bytes.Equal(f[6:12], routerMAC[:]) || f[21] != 255 || icmp[0] != 136 || sumOf(f) != 0xffff {
		t.Fatalf("no neighbour advertisement: % x", f)
	}
	if icmp[4]&0x60 != 0x60 || !bytes.Equal(icmp[8:24], routerAddr.AsSlice()) || !bytes.Equal(icmp[24:], append([]byte{2, 1}, routerMAC[:]...)) {
		t.Errorf("advertisement % x", icmp)
	}
}

func TestAnswersPing(t *testing.T) {
	out := make(sent, 16)
	s := newStack(t, routerMAC, routerAddr, out.output, "p1", "p2")
	s.Deliver("p1", solicit())
	out.next(t)
	s.Deliver("p1", ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 58, 64, []byte{128, 0, 0, 0, 1, 2, 3, 4, 'x'}, 2))
	if f := out.next(t); !bytes.Equal(f[:6], hostMAC[:]) || !bytes.Equal(f[58:], []byte{1, 2, 3, 4, 'x'}) || f[54] != 129 || sumOf(f) != 0xffff {
		t.Errorf("no echo reply: % x", f)
	}
}

// TestAsksForHardwareAddresses: what cannot be sent yet waits for the answer.
func TestAsksForHardwareAddresses(t *testing.T) {
	out := make(sent, 16)
	s := newStack(t, routerMAC, routerAddr, out.output, "p1")
	if err := s.SendUDP("p1", 1, netip.AddrPortFrom(hostAddr, 2), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	f := out.next(t)
	if f[54] != 135 || !bytes.Equal(f[62:78], hostAddr.AsSlice()) || f[0] != 0x33 {
		t.Fatalf("no solicitation: % x", f)
	}
	body := append(append([]byte{136, 0, 0, 0, 0x60, 0, 0, 0}, hostAddr.AsSlice()...), append([]byte{2, 1}, hostMAC[:]...)...)
	s.Deliver("p1", ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 58, 255, body, 2))
	if f := out.next(t); f[20] != 17 || !bytes.HasSuffix(f, []byte("hello")) || !bytes.Equal(f[:6], hostMAC[:]) || sumOf(f) != 0xffff {
		t.Errorf("not the datagram: % x", f)
	}
}

func TestSendsToAllNodes(t *testing.T) {
	out := make(sent, 16)
	s := newStack(t, routerMAC, routerAddr, out.output, "p1", "p2")
	all := netip.AddrPortFrom(netip.MustParseAddr("ff02::1"), 23727)
	if err := s.SendUDP("p1", 23727, all, []byte("odd")); err != nil {
		t.Fatal(err)
	}
	f := out.next(t)
	if !bytes.Equal(f[:12], append([]byte{0x33, 0x33, 0, 0, 0, 1}, routerMAC[:]...)) || f[21] != 255 || sumOf(f) != 0xffff || !bytes.HasSuffix(f, []byte("odd")) {
		t.Errorf("% x", f)
	}
	if err := s.SendUDP("p1", 1, all, make([]byte, 1280)); err == nil {
		t.Error("a datagram that does not fit was taken")
	}
	if err := s.SendUDP("p9", 1, all, nil); err == nil {
		t.Error("sent by a port that is not there")
	}
}

// TestTakesDatagramsWithHalfAChecksum: as a switch punts them that carries offloads.
func TestTakesDatagramsWithHalfAChecksum(t *testing.T) {
	s := newStack(t, routerMAC, routerAddr, func(*Stack, string, []byte) {}, "p1", "p2")
	var got []Datagram
	s.HandleUDP(23727, func(d Datagram) { got = append(got, d) })
	udp := append([]byte{0, 9, 0x5c, 0xaf, 0, 13, 0xde, 0xad}, "hello"...)
	all := netip.MustParseAddr("ff02::1")
	s.Deliver("p2", ethernet(hostMAC, [6]byte{0x33, 0x33, 0, 0, 0, 1}, hostAddr, all, 17, 255, udp, -1))
	s.Deliver("p1", ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 17, 255, udp, -1))
	udp[5] = 14
	s.Deliver("p1", ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 17, 255, udp, -1)) // longer than it is
	want := []Datagram{{Port: "p2", To: all}, {Port: "p1", To: routerAddr}}
	if len(got) != len(want) {
		t.Fatalf("%d datagrams, want %d", len(got), len(want))
	}
	for i, d := range got {
		if d.Port != want[i].Port || d.To != want[i].To || d.From != netip.AddrPortFrom(hostAddr, 9) || d.MAC != hostMAC || string(d.Data) != "hello" {
			t.Errorf("datagram %d: %+v", i, d)
		}
	}
}

// serve echoes what each connection says, with the name of its port before it.
func serve(t *testing.T, s *Stack, port uint16) *Listener {
	t.Helper()
	l, err := s.ListenTCP(port)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				io.WriteString(c, c.Port()+":")
				io.Copy(c, c)
			})
		}
	})
	return l
}

// talk says all and expects the same back.
func talk(t *testing.T, c interface {
	io.ReadWriter
	CloseWrite() error
}, say string) (port string) {
	t.Helper()
	go func() {
		io.WriteString(c, say)
		c.CloseWrite()
	}()
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(b), err)
	}
	port, back, _ := strings.Cut(string(b), ":")
	if back != say {
		t.Fatalf("%d bytes came back, not the %d that were said", len(back), len(say))
	}
	return port
}

// TestTwinsOnTwoPorts: the same addresses and TCP ports on two ports of the switch are two connections.
func TestTwinsOnTwoPorts(t *testing.T) {
	p := newPair(t, 0)
	serve(t, p.router, 23728)
	one, two := dial(t, p.hosts[0], 23728, 4000), dial(t, p.hosts[1], 23728, 4000)
	if got := talk(t, two, "two") + talk(t, one, "one"); got != "p2p1" {
		t.Errorf("answered by ports %s", got)
	}
}

func TestLoss(t *testing.T) {
	p := newPair(t, 0.05)
	serve(t, p.router, 23728)
	talk(t, dial(t, p.hosts[0], 23728, 0), strings.Repeat("0123456789", 20_000))
}

// TestWhatLeavesIsWhole: full checksums, within the MTU, and a window that lets no host send what does not fit
// a message of OpenFlow.
func TestWhatLeavesIsWhole(t *testing.T) {
	p := newPair(t, 0)
	scale := -1
	p.cables[0].seen = func(from *Stack, f []byte) {
		if from != p.router {
			return
		}
		if len(f) > 1280+14 || f[20] != 58 && f[20] != 6 || sumOf(f) != 0xffff {
			t.Errorf("%d bytes, next header %d, sum %#x", len(f), f[20], sumOf(f))
		}
		if f[20] != 6 {
			return
		}
		tcp := header.TCP(f[54:])
		window := int(tcp.WindowSize())
		if tcp.Flags()&header.TCPFlagSyn != 0 {
			scale = header.ParseSynOptions(tcp.Options(), true).WS
		} else if scale > 0 {
			window <<= scale
		}
		if window > Window {
			t.Errorf("a window of %d bytes", window)
		}
	}
	serve(t, p.router, 23728)
	talk(t, dial(t, p.hosts[0], 23728, 0), strings.Repeat("0123456789", 50_000))
}

// TestLargeSegments: a host whose device would cut segments sends them larger than the MTU.
func TestLargeSegments(t *testing.T) {
	p := newPair(t, 0)
	p.hosts[0].RemovePort("eth0")
	if err := p.hosts[0].AddPort("eth0", 65000); err != nil {
		t.Fatal(err)
	}
	var largest atomic.Int64
	p.cables[0].seen = func(from *Stack, f []byte) {
		if from == p.router && f[20] == 6 && f[54+13]&2 != 0 {
			copy(f[54+20:], []byte{2, 4, 0xf0, 0}) // it may send as much as it likes
		} else if from != p.router {
			largest.Store(max(largest.Load(), int64(len(f))))
		}
	}
	serve(t, p.router, 23728)
	talk(t, dial(t, p.hosts[0], 23728, 0), strings.Repeat("0123456789", 50_000))
	if n := largest.Load(); n < 8000 || n > 65535 {
		t.Errorf("the largest segment had %d bytes", n)
	}
}

// TestPortsAreIsolated: what another port says to a connection does not reach it.
func TestPortsAreIsolated(t *testing.T) {
	p := newPair(t, 0)
	var last atomic.Pointer[[]byte]
	p.cables[0].seen = func(from *Stack, f []byte) {
		if from != p.router && f[20] == 6 {
			last.Store(&f)
		}
	}
	serve(t, p.router, 23728)
	c := dial(t, p.hosts[0], 23728, 0)
	if _, err := io.ReadFull(c, make([]byte, len("p1:"))); err != nil {
		t.Fatal(err)
	}
	reset := bytes.Clone(*last.Load())
	reset[54+13] = 0x14 // RST, ACK
	p.router.Deliver("p2", reset)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := io.ReadFull(c, b); err != nil || b[0] != 'x' {
		t.Errorf("%q, %v", b, err)
	}
}

// TestFloodLeavesRoom: connections that one port begins and never ends take bounded memory, and no other port's.
func TestFloodLeavesRoom(t *testing.T) {
	p := newPair(t, 0)
	serve(t, p.router, 23728)
	p.router.Deliver("p1", solicit())
	for i := range 5_000 {
		tcp := make(header.TCP, 20)
		tcp.Encode(&header.TCPFields{SrcPort: uint16(i), DstPort: 23728, SeqNum: uint32(i), DataOffset: 20, Flags: header.TCPFlagSyn, WindowSize: 1000})
		from := hostAddr.As16()
		from[14], from[15] = byte(rand.Uint32()), byte(i>>4)
		p.router.Deliver("p1", ethernet(hostMAC, routerMAC, netip.AddrFrom16(from), routerAddr, 6, 64, tcp, -1))
	}
	if n := len(p.router.ports["p1"].stack.RegisteredEndpoints()); n > 3*backlog {
		t.Errorf("%d connections are kept", n)
	}
	if got := talk(t, dial(t, p.hosts[1], 23728, 0), "here"); got != "p2" {
		t.Errorf("answered by port %s", got)
	}
}

func TestRemovedPortResetsItsConnections(t *testing.T) {
	p := newPair(t, 0)
	serve(t, p.router, 23728)
	one, two := dial(t, p.hosts[0], 23728, 0), dial(t, p.hosts[1], 23728, 0)
	if _, err := io.ReadFull(one, make([]byte, len("p1:"))); err != nil {
		t.Fatal(err)
	}
	p.router.RemovePort("p1")
	if _, err := io.ReadAll(one); err == nil {
		t.Error("ended as if all had been said")
	}
	if got := talk(t, two, "x"); got != "p2" {
		t.Error("the other port's connection is broken")
	}
	if err := p.router.AddPort("p1", 1280); err != nil {
		t.Fatal(err)
	}
	if got := talk(t, dial(t, p.hosts[0], 23728, 0), "again"); got != "p1" {
		t.Errorf("answered by port %s", got)
	}
}

// TestRemovesAtOnce: whatever state its connections are in, a port goes without waiting for its peers.
func TestRemovesAtOnce(t *testing.T) {
	p := newPair(t, 0)
	serve(t, p.router, 23728)
	talk(t, dial(t, p.hosts[0], 23728, 0), "ended")
	half := dial(t, p.hosts[0], 23728, 0)
	half.CloseWrite()
	io.ReadAll(half)
	dial(t, p.hosts[0], 23728, 0)
	closed := dial(t, p.hosts[0], 23728, 0)
	io.ReadFull(closed, make([]byte, 3))
	closed.Close()
	start := time.Now()
	p.router.RemovePort("p1")
	if took := time.Since(start); took > 30*time.Second { // a peer is waited for a minute, in FIN-WAIT-2 and in TIME-WAIT
		t.Errorf("took %v", took)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	safety.Test(t, safety.Trace)
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		p := newPair(t, 0)
		serve(t, p.router, 23728)
		c := dial(t, p.hosts[0], 23728, 0)
		io.ReadFull(c, make([]byte, 3))
		p.router.SendUDP("p1", 1, netip.AddrPortFrom(netip.MustParseAddr("fe80::9"), 2), nil) // nobody will answer
		p.router.Close()
		if err := p.router.AddPort("p3", 1280); err != ErrClosed {
			t.Error(err)
		}
		if _, err := p.router.ListenTCP(1); err != ErrClosed {
			t.Error(err)
		}
		p.router.Close()
		p.router.Deliver("p1", solicit())
	})
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			b := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
		}
	}
}

func TestRefusesConfig(t *testing.T) {
	for _, cfg := range []Config{
		{MAC: hostMAC, LinkLocal: netip.MustParseAddr("2001:db8::1")}, {MAC: hostMAC}, {LinkLocal: hostAddr},
		{MAC: [6]byte{1}, LinkLocal: hostAddr}, {MAC: hostMAC, LinkLocal: hostAddr.WithZone("eth0")},
	} {
		if s, err := New(cfg); err == nil {
			s.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}

// FuzzDeliver: no frame ends the stack.
func FuzzDeliver(f *testing.F) {
	tcp := make(header.TCP, 24)
	tcp.Encode(&header.TCPFields{SrcPort: 9, DstPort: 23728, DataOffset: 24, Flags: header.TCPFlagSyn, WindowSize: 1000})
	copy(tcp[20:], []byte{2, 4, 4, 0xc4})
	f.Add(solicit())
	f.Add(ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 6, 64, tcp, -1))
	f.Add(ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 17, 64, []byte{0, 9, 0x5c, 0xaf, 0, 9, 0, 0, 1}, 6))
	f.Add(ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 58, 64, []byte{128, 0, 0, 0, 1, 2, 3, 4}, 2))
	f.Add(ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 44, 64, []byte{17, 0, 0, 1, 0, 0, 0, 1, 0, 9, 0x5c, 0xaf, 0, 16, 0, 0}, -1))
	f.Add(ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 0, 64, []byte{58, 0, 5, 2, 0, 0, 1, 0, 128, 0, 0, 0, 0, 0, 0, 0}, -1))
	f.Add(ethernet(hostMAC, routerMAC, hostAddr, routerAddr, 58, 255, append([]byte{1, 3, 0, 0, 0, 0, 0, 0}, solicit()[14:]...), 2))
	s, err := New(Config{MAC: routerMAC, LinkLocal: routerAddr, Output: func(string, []byte) {}})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	s.HandleUDP(23727, func(Datagram) {})
	if err := s.AddPort("p1", 1280); err != nil {
		f.Fatal(err)
	}
	if _, err := s.ListenTCP(23728); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		s.Deliver("p1", frame)
		if len(frame) > 54 {
			header.Ethernet(frame).Encode(&header.EthernetFields{SrcAddr: tcpip.LinkAddress(hostMAC[:]), DstAddr: tcpip.LinkAddress(routerMAC[:]), Type: header.IPv6ProtocolNumber})
			s.Deliver("p1", frame)
		}
	})
}
