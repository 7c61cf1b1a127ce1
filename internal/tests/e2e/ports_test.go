package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// dialFrom connects from a chosen source port.
func (n *network) dialFrom(host string, source int, addr string) net.Conn {
	n.t.Helper()
	d := net.Dialer{
		LocalAddr: &net.TCPAddr{Port: source},
		Timeout:   answerTime,
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		},
	}
	var c net.Conn
	n.at(host).Do(func() {
		var err error
		nstest.Wait(n.t, n.look(), func() error { // while the last word of the one before is not acknowledged, its port is taken
			c, err = d.DialContext(context.Background(), "tcp6", addr)
			if errors.Is(err, unix.EADDRNOTAVAIL) {
				return err
			}
			return nil
		})
		if err != nil {
			n.t.Fatalf("%s connects from port %d to %s: %v\nthe client's edge counts %v\nlook at: %s", host, source, addr, err, n.drops(host), n.look())
		}
	})
	return c
}

func TestAReusedPortIsANewFlow(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("reuse")
	n.serveTCP("s1", port(addr, 80))
	n.serveTCP("s2", port(addr, 80))
	n.serving("reuse", "tcp", 80, 2)
	for _, c := range []struct {
		how  string
		line string
		end  func(net.Conn)
	}{
		{"the client resets", "who", func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() }},
		{"the server closes first", "bye", func(c net.Conn) { io.Copy(io.Discard, c); c.Close() }},
	} {
		t.Run(c.how, func(t *testing.T) {
			n, seen := theNetwork(t), map[string]int{}
			for round := 1; len(seen) < 2 || round <= 50; round++ {
				conn := n.dialFrom("c1", 1404, port(addr, 80))
				conn.SetDeadline(time.Now().Add(answerTime))
				host, err := ask(conn, c.line)
				if err != nil || round > 500 {
					t.Fatalf("connection %d from the same port: %v; answers came from %v, want s1 and s2\nlook at: %s", round, err, seen, n.look())
				}
				seen[host]++
				c.end(conn)
			}
		})
	}
}
