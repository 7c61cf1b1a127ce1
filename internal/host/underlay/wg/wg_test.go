package wg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// This test binary is also the process that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "wireguard" {
		if err := Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	nstest.Main(m)
}

// An end is one of the two ends of a tunnel: a namespace with a WireGuard process.
type end struct {
	t    *testing.T
	ns   *nstest.NS
	proc *underlay.Process
	key  []byte
}

func newEnd(t *testing.T, ns *nstest.NS) *end {
	t.Helper()
	e := &end{t: t, ns: ns, key: underlay.NewKey()}
	var err error
	ns.Do(func() { e.proc, err = underlay.StartProcess("test", []string{"/proc/self/exe", "wireguard"}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Do(func() { e.proc.End() }) })
	return e
}

func (e *end) public() []byte { return publicOf(e.t, e.key) }

func publicOf(t *testing.T, key []byte) []byte {
	t.Helper()
	public, err := underlay.PublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func (e *end) set(s underlay.Setup) {
	e.t.Helper()
	s.Key = e.key
	var err error
	e.ns.Do(func() {
		if err = e.proc.Set(s); err == nil {
			for _, p := range s.Peers {
				if err = p.Start(); err != nil {
					break
				}
			}
		}
	})
	if err != nil {
		e.t.Fatalf("%s: %v", e.ns.Name, err)
	}
}

const testPort = 23730

// twoEnds are joined by a tunnel between 192.0.2.1, the host, and 192.0.2.2, the router.
func twoEnds(t *testing.T) (host, router *end) {
	a, b := nstest.New(t, "host"), nstest.New(t, "router")
	nstest.Veth(t, a, "u0", b, "u0")
	a.Addr(t, "u0", "192.0.2.1/24")
	b.Addr(t, "u0", "192.0.2.2/24")
	host, router = newEnd(t, a), newEnd(t, b)
	router.set(underlay.Setup{Listen: testPort, Router: true, Peers: []underlay.Peer{{Port: port(7), Key: host.public()}}})
	host.set(underlay.Setup{Peers: []underlay.Peer{{Port: port(7), Key: router.public(), Endpoint: netip.MustParseAddrPort("192.0.2.2:23730")}}})
	return host, router
}

func port(number uint32) underlay.Port {
	return underlay.Port{Name: "sct0", Number: number, MTU: 1390, Note: underlay.Note("h", "sct0", underlay.WireGuard)}
}

// answers asks the far end from this one, by packets of the size.
func (e *end) answers(far *end, size int, limit time.Duration) error {
	to, ok := netip.AddrFromSlice(far.ns.LinkLocal(e.t, "sct0"))
	if !ok {
		e.t.Fatal("no link-local address")
	}
	var err error
	e.ns.Do(func() {
		var echo *underlay.Echo
		if echo, err = underlay.OpenEcho("sct0"); err != nil {
			return
		}
		defer echo.Close()
		if _, err = echo.Reply(context.Background(), to, limit); err == nil {
			_, err = echo.Ask(to, size, limit)
		}
	})
	return err
}

func TestFramesPassBothWaysAndOnlyAsTheyFit(t *testing.T) {
	host, router := twoEnds(t)
	if err := host.answers(router, 1390, nstest.Deadline); err != nil {
		t.Fatalf("a packet of 1390 bytes: %v", err)
	}
	if err := router.answers(host, 1390, nstest.Deadline); err != nil {
		t.Fatalf("a packet of 1390 bytes to the host: %v", err)
	}
	if err := host.answers(router, 1391, nstest.Deadline); err == nil {
		t.Error("a packet of 1391 bytes came through an MTU of 1390")
	}
	var s underlay.State
	var err error
	router.ns.Do(func() { s, err = router.proc.State() })
	if err != nil || len(s.Peers) != 1 || s.Peers[0].Handshake.IsZero() || s.Peers[0].Endpoint.Addr() != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the router's state is %+v, %v; want one peer, at 192.0.2.1, with a handshake", s, err)
	}
}

func TestAnotherKeyGetsNothing(t *testing.T) {
	safety.Test(t, safety.Door)
	host, router := twoEnds(t)
	host.key = underlay.NewKey()
	host.set(underlay.Setup{Peers: []underlay.Peer{{Port: port(8), Key: router.public(), Endpoint: netip.MustParseAddrPort("192.0.2.2:23730")}}})
	if err := host.answers(router, 1280, time.Second); err == nil {
		t.Error("a host with a key that the router was not told got an answer")
	}
}

// A host takes one of two keys and the other in turn, both of which its router knows, while what it sends makes
// handshakes. wireguard-go by itself stops for ever in one of some hundred such changes: the number is what made it.
func TestAKeyChangesAmidHandshakes(t *testing.T) {
	host, router := twoEnds(t)
	if err := host.answers(router, 1280, nstest.Deadline); err != nil {
		t.Fatal(err)
	}
	keys := [2][]byte{host.key, underlay.NewKey()}
	host.key = keys[1]
	other := port(8)
	other.Name = "sct1"
	router.set(underlay.Setup{Listen: testPort, Router: true, Peers: []underlay.Peer{{Port: port(7), Key: publicOf(t, keys[0])}, {Port: other, Key: host.public()}}})
	at := underlay.Peer{Port: port(7), Key: router.public(), Endpoint: netip.MustParseAddrPort("192.0.2.2:23730")}
	stop := make(chan struct{})
	var sends sync.WaitGroup
	sends.Go(func() {
		host.ns.Do(func() {
			c, err := net.Dial("udp6", "[ff02::1%sct0]:9")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for {
				select {
				case <-stop:
					return
				default:
					c.Write([]byte{1})
				}
			}
		})
	})
	for i := range 1 + 300 {
		host.key = keys[i%2]
		host.set(underlay.Setup{Peers: []underlay.Peer{at}})
	}
	close(stop)
	sends.Wait()
	// A router drops initiations that follow each other within 20 ms, and WireGuard sends the next one after five seconds.
	if err := host.answers(router, 1280, 3*nstest.Deadline); err != nil {
		t.Errorf("after the last key: %v", err)
	}
}

// Who is told another key is found where it was: the router keeps what it heard of its host.
func TestAKeyThatChangesKeepsWhereItsPeersAre(t *testing.T) {
	host, router := twoEnds(t)
	if err := host.answers(router, 1280, nstest.Deadline); err != nil {
		t.Fatal(err)
	}
	router.key = underlay.NewKey()
	router.set(underlay.Setup{Listen: testPort, Router: true, Peers: []underlay.Peer{{Port: port(7), Key: host.public()}}})
	var s underlay.State
	var err error
	router.ns.Do(func() { s, err = router.proc.State() })
	if err != nil || len(s.Peers) != 1 || s.Peers[0].Endpoint.Addr() != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("the router's state is %+v, %v; want its host at 192.0.2.1", s, err)
	}
}

func TestTheTunnelFollowsItsHostToAnotherAddress(t *testing.T) {
	host, router := twoEnds(t)
	if err := host.answers(router, 1280, nstest.Deadline); err != nil {
		t.Fatal(err)
	}
	host.ns.Addr(t, "u0", "192.0.2.99/24")
	host.ns.Run(t, "ip", "addr", "del", "192.0.2.1/24", "dev", "u0")
	host.ns.Addr(t, "u0", "192.0.2.98/24")
	if err := host.answers(router, 1390, nstest.Deadline); err != nil {
		t.Errorf("after the host's address changed: %v", err)
	}
}

func TestTunnelsEndWithTheirProcess(t *testing.T) {
	host, router := twoEnds(t)
	router.set(underlay.Setup{Listen: testPort, Router: true})
	if _, err := router.ns.Link().LinkByName("sct0"); err == nil {
		t.Error("a tunnel that is not wanted any more is still there")
	}
	var err error
	host.ns.Do(func() { err = host.proc.End() })
	if err != nil {
		t.Fatal(err)
	}
	nstest.Wait(t, "ip link, in the host", func() error { // the kernel takes a namespace down in its own time
		if _, err := host.ns.Link().LinkByName("sct0"); err == nil {
			return errors.New("the tunnel outlived its process")
		}
		return nil
	})
}

func TestATakenPortIsSaidSo(t *testing.T) {
	ns := nstest.New(t, "router")
	ns.ListenPacket(t, "udp", "0.0.0.0:23730")
	e := newEnd(t, ns)
	var err error
	ns.Do(func() { err = e.proc.Set(underlay.Setup{Key: e.key, Listen: testPort, Router: true}) })
	if err == nil {
		t.Fatal("nobody complained")
	}
	t.Log(err)
}

// A host of two tunnels, to two routers, over IPv6.
func TestTwoTunnelsOverIPv6StandBesideEachOther(t *testing.T) {
	h := nstest.New(t, "host")
	host := newEnd(t, h)
	var peers []underlay.Peer
	var routers []*end
	for i := range 2 {
		r := nstest.New(t, "router"+string(rune('1'+i)))
		up := fmt.Sprintf("u%d", i)
		nstest.Veth(t, h, up, r, "u0")
		h.Addr(t, up, fmt.Sprintf("2001:db8:%d::1/64", i))
		r.Addr(t, "u0", fmt.Sprintf("2001:db8:%d::2/64", i))
		far := newEnd(t, r)
		routers = append(routers, far)
		p := underlay.Port{Name: fmt.Sprintf("sct%d", i), Number: uint32(i + 1), MTU: 1370, Note: underlay.Note("h", up, underlay.WireGuard)}
		there := p
		there.Name = "sct0"
		far.set(underlay.Setup{Listen: testPort, Router: true, Peers: []underlay.Peer{{Port: there, Key: host.public()}}})
		peers = append(peers, underlay.Peer{Port: p, Key: far.public(), Endpoint: netip.MustParseAddrPort(fmt.Sprintf("[2001:db8:%d::2]:23730", i))})
	}
	host.set(underlay.Setup{Peers: peers})
	for i, far := range routers {
		for from, ask := range map[string]error{
			"to the router": host.answersBy(fmt.Sprintf("sct%d", i), far, "sct0", 1370),
			"to the host":   far.answersBy("sct0", host, fmt.Sprintf("sct%d", i), 1370),
		} {
			if ask != nil {
				t.Errorf("tunnel %d, %s: %v", i, from, ask)
			}
		}
	}
	var list []underlay.Port
	var err error
	h.Do(func() { list, err = underlay.Ports() })
	if err != nil || len(list) != 2 || list[0].Number+list[1].Number != 3 || list[0].MTU != 1370 {
		t.Errorf("the next daemon finds %+v, %v", list, err)
	}
}

// answersBy asks the far end of one tunnel of several, by packets of the size.
func (e *end) answersBy(dev string, far *end, farDev string, size int) error {
	to, ok := netip.AddrFromSlice(far.ns.LinkLocal(e.t, farDev))
	if !ok {
		e.t.Fatal("no link-local address")
	}
	var err error
	e.ns.Do(func() {
		var echo *underlay.Echo
		if echo, err = underlay.OpenEcho(dev); err != nil {
			return
		}
		defer echo.Close()
		if _, err = echo.Reply(context.Background(), to, nstest.Deadline); err == nil {
			_, err = echo.Ask(to, size, nstest.Deadline)
		}
	})
	return err
}

// What a TCP stream sends in large frames, and in small ones, comes as it was sent.
func TestAStreamThroughATunnelIsWhole(t *testing.T) {
	safety.Test(t, safety.Bytes)
	host, router := twoEnds(t)
	host.ns.Addr(t, "sct0", "fd99::1/64")
	router.ns.Addr(t, "sct0", "fd99::2/64")
	l := router.ns.Listen(t, "tcp6", "[fd99::2]:9")
	sum := make(chan string, 1)
	go func() {
		h := sha256.New()
		if c, err := l.Accept(); err == nil {
			io.Copy(h, c)
			c.Write([]byte("x"))
			c.Close()
		}
		sum <- hex.EncodeToString(h.Sum(nil))
	}()
	c, err := host.ns.Dial("tcp6", "[fd99::2]:9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := sha256.New()
	r := rand.NewChaCha8([32]byte{1})
	for i := range 400 {
		b := make([]byte, 1+i*97%70000)
		r.Read(b)
		h.Write(b)
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	c.(*net.TCPConn).CloseWrite()
	if got, want := nstest.Receive(t, "the far end", sum), hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("what came is not what was sent")
	}
}
