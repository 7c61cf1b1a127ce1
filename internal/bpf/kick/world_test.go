package kick

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A world is a mover and another host, with a router between: cutting the mover's link leaves the other
// host its own. The addresses of the two are on no link, as a host's stable address is.
type world struct {
	t                    testing.TB
	mover, router, other *nstest.NS
	wire                 *nstest.Frames // everything that passes the other host's link
}

const moverAddr, otherAddr = "fd5e::1", "fd5e::2"

func newWorld(t testing.TB) *world {
	w := &world{t: t, mover: nstest.New(t, "mover"), router: nstest.New(t, "router"), other: nstest.New(t, "other")}
	w.router.Forward(t)
	nstest.Veth(t, w.mover, "up", w.router, "m")
	nstest.Veth(t, w.router, "o", w.other, "up")
	w.mover.Addr(t, "lo", moverAddr+"/128")
	w.other.Addr(t, "lo", otherAddr+"/128")
	w.other.Route(t, "::/0", w.router.LinkLocal(t, "o").String(), "up")
	w.router.Route(t, otherAddr+"/128", w.other.LinkLocal(t, "up").String(), "o")
	w.plug()
	// A router that said "no route" would itself take back what the timer was doubled by.
	w.router.Run(t, "ip", "-6", "route", "add", "blackhole", moverAddr+"/128", "metric", "9999")
	w.wire = w.other.Frames(t, "up")
	return w
}

// cut takes the mover's link away: it has no route meanwhile.
func (w *world) cut() {
	w.mover.Down(w.t, "up")
	w.router.Down(w.t, "m")
}

// heal gives it back.
func (w *world) heal() {
	w.router.Up(w.t, "m")
	w.mover.Up(w.t, "up")
	w.plug()
}

func (w *world) plug() {
	w.mover.Route(w.t, "::/0", w.router.LinkLocal(w.t, "m").String(), "up")
	w.router.Route(w.t, moverAddr+"/128", w.mover.LinkLocal(w.t, "up").String(), "m")
}

// A conn is a TCP connection from the mover to the other host, seen from both ends.
type conn struct {
	mover, other *net.TCPConn
}

func (w *world) connect() conn { w.t.Helper(); return w.connectTo(otherAddr) }

func (w *world) connectTo(addr string) conn {
	w.t.Helper()
	l := w.other.Listen(w.t, "tcp6", "["+addr+"]:0")
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	c, err := w.mover.Dial("tcp6", l.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	a := nstest.Receive(w.t, "the listener", accepted)
	w.t.Cleanup(func() { a.Close() })
	return conn{c.(*net.TCPConn), a.(*net.TCPConn)}
}

func tupleOf(c net.Conn) Tuple {
	return Tuple{c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()}
}

func openIn(t testing.TB, n *nstest.NS) (k *Kicker) {
	t.Helper()
	n.Do(func() {
		var err error
		if k, err = Open(); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { k.Close() })
	if err := k.Lost(); err != nil {
		t.Fatal(err)
	}
	return k
}

// one returns the state of one connection.
func one(t testing.TB, k *Kicker, c net.Conn) Socket {
	t.Helper()
	all, err := k.State(tupleOf(c))
	if err != nil || len(all) != 1 {
		t.Fatalf("state of %v: %d sockets, %v\nlook at: ss -tanie in the namespace", tupleOf(c), len(all), err)
	}
	return all[0]
}

// await waits until the connection is in a state.
func await(t testing.TB, k *Kicker, c net.Conn, what string, is func(Socket) bool) (s Socket) {
	t.Helper()
	nstest.Wait(t, "ss -tanie in the namespace", func() error {
		if s = one(t, k, c); !is(s) {
			return errors.New("not " + what + ": " + s.String())
		}
		return nil
	})
	return s
}

// exchange sends text one way and waits until it has arrived and is acknowledged.
func exchange(t testing.TB, from, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v; want %q", got, err, text)
	}
}

// A segment is a TCP header in a frame.
type segment struct {
	Tuple
	seq, ack uint32
	flags    byte
	payload  int
}

// segmentOf reads a frame as a TCP segment without IPv6 extension headers.
func segmentOf(frame []byte) (s segment, ok bool) {
	if len(frame) < 14+ip6Len+tcpLen || !bytes.Equal(frame[12:14], []byte{0x86, 0xdd}) || frame[14+6] != 6 {
		return s, false
	}
	ip, tcp := frame[14:], frame[14+ip6Len:]
	from, _ := netip.AddrFromSlice(ip[8:24])
	to, _ := netip.AddrFromSlice(ip[24:40])
	s.Local = netip.AddrPortFrom(from, binary.BigEndian.Uint16(tcp))
	s.Peer = netip.AddrPortFrom(to, binary.BigEndian.Uint16(tcp[2:]))
	s.seq, s.ack, s.flags = binary.BigEndian.Uint32(tcp[4:]), binary.BigEndian.Uint32(tcp[8:]), tcp[13]
	s.payload = int(binary.BigEndian.Uint16(ip[4:])) - int(tcp[12]>>4)*4
	return s, true
}
