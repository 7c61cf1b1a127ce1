package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
)

// answerTime bounds what a test waits for on a socket: something that takes so long is broken.
const answerTime = 10 * time.Second

// port is an address as programs write it.
func port(addr netip.Addr, port int) string { return netip.AddrPortFrom(addr, uint16(port)).String() }

// serveTCP answers each line with the host's name and that line, over TCP, until the test ends.
// After the line "bye" it closes first.
func (n *network) serveTCP(host, addr string) net.Listener {
	n.t.Helper()
	l := n.at(host).Listen(n.t, "tcp6", addr)
	go accept(l, func(c net.Conn) {
		for in := bufio.NewReader(c); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(c, host+" "+line)
			if line == "bye\n" {
				return
			}
		}
	})
	return l
}

// accept serves each connection until the listener is closed.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			serve(c)
		}()
	}
}

// serveUDP answers each datagram with the host's name, a space and what came, until the test ends.
func (n *network) serveUDP(host, addr string) net.PacketConn {
	n.t.Helper()
	pc := n.at(host).ListenPacket(n.t, "udp6", addr)
	go func() {
		for buf := make([]byte, 1<<16); ; {
			size, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			pc.WriteTo(append([]byte(host+" "), buf[:size]...), from)
		}
	}()
	return pc
}

// dial opens a connection, or a connected datagram socket, from a host.
func (n *network) dial(host, network, addr string) net.Conn {
	n.t.Helper()
	c, err := n.at(host).Dial(network, addr)
	if err != nil {
		n.t.Fatalf("%s connects to %s %s: %v\nlook at: %s", host, network, addr, err, n.look())
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

// ask sends one line and returns the name of the host that answered it.
func ask(c net.Conn, line string) (host string, err error) {
	c.SetDeadline(time.Now().Add(answerTime))
	return askOn(c, line)
}

// askOn is ask by the deadline that the connection has.
func askOn(c net.Conn, line string) (host string, err error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	buf := make([]byte, 1<<16)
	size, err := c.Read(buf)
	if err != nil {
		return "", err
	}
	host, echo, _ := strings.Cut(string(buf[:size]), " ")
	if echo != line+"\n" {
		return host, fmt.Errorf("asked %q, %s answered %q", line, host, echo)
	}
	return host, nil
}

// who asks over a new connection which host answers.
func (n *network) who(network, addr string) string {
	n.t.Helper()
	c := n.dial("c1", network, addr)
	defer c.Close()
	host, err := ask(c, "who")
	if err != nil {
		n.t.Fatalf("%s %s: %v\nlook at: %s", network, addr, err, n.look())
	}
	return host
}
