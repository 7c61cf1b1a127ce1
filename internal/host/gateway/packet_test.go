package gateway

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// serveUDP answers each datagram with it and the address that it came from.
func serveUDP(t *testing.T) int {
	t.Helper()
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, maxDatagram)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			c.WriteTo(append(append([]byte{}, b[:n]...), " "+from.String()...), from)
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).Port
}

func dialUDP(t *testing.T, at string) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(nstest.Deadline))
	return c
}

// tell sends a datagram and returns what the server saw as its client.
func tell(c net.Conn, text string) (from string, err error) {
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	b := make([]byte, maxDatagram)
	n, err := c.Read(b)
	if err != nil {
		return "", err
	}
	_, from, _ = strings.Cut(string(b[:n]), " ")
	return from, nil
}

func TestEachUDPClientHasASession(t *testing.T) {
	g, at := start(t, Config{UDPIdle: time.Second}, fmt.Sprintf("/udp=dns:%d", serveUDP(t)))
	one, two := dialUDP(t, at[0]), dialUDP(t, at[0])
	seen := map[string]bool{}
	for range 3 {
		for _, c := range []net.Conn{one, two} {
			from, err := tell(c, c.LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			seen[from] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("two clients are %d to the server: %v", len(seen), seen)
	}
	if n := g.room.count(); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
	g.eventually("the end of idle sessions", func() bool { return g.room.count() == 0 })
	if _, err := tell(one, "again"); err != nil {
		t.Errorf("after its session has ended: %v", err)
	}
}

func TestUDPSessionsAreBounded(t *testing.T) {
	g, at := start(t, Config{}, fmt.Sprintf("/udp=dns:%d,max=1", serveUDP(t)))
	if _, err := tell(dialUDP(t, at[0]), "first"); err != nil {
		t.Fatal(err)
	}
	dialUDP(t, at[0]).Write([]byte("second"))
	g.eventually("a client that is sent away", func() bool { return g.all()[0].count.full.Load() == 1 })
}

func TestDatagramsCarryTheirClientByThePROXYProtocol(t *testing.T) {
	s, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, at := start(t, Config{}, fmt.Sprintf("/udp=dns:%d,proxy=v2", s.LocalAddr().(*net.UDPAddr).Port))
	c := dialUDP(t, at[0])
	s.SetDeadline(time.Now().Add(nstest.Deadline))
	for range 2 {
		c.Write([]byte("hello"))
		b := make([]byte, maxDatagram)
		n, _, err := s.ReadFrom(b)
		if err != nil {
			t.Fatal(err)
		}
		h, err := proxyproto.HeaderProxyFromAddrs(2, c.LocalAddr(), c.RemoteAddr()).Format()
		if err != nil || !bytes.Equal(b[:n], append(h, "hello"...)) {
			t.Errorf("the server got % x, want % x and hello (%v)", b[:n], h, err)
		}
	}
}
