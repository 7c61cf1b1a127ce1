package ends

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// TestEndsSeeEachOther: each end has the other's address and port, while each talks to the agent.
func TestEndsSeeEachOther(t *testing.T) {
	each(t, func(t *testing.T, n *network, of family) {
		n.start(t, agentConfig{Lanes: everything()})
		l := n.server.Listen(t, "tcp", of.at(80))
		c, err := n.client.Dial("tcp", of.at(80))
		if err != nil {
			t.Fatalf("%v\n%s", err, n.agent.Output())
		}
		s, err := l.Accept()
		must(t, err)
		if c.LocalAddr().String() != s.RemoteAddr().String() || c.RemoteAddr().String() != s.LocalAddr().String() {
			t.Errorf("the client is %v and sees %v, the server is %v and sees %v", c.LocalAddr(), c.RemoteAddr(), s.LocalAddr(), s.RemoteAddr())
		}
		n.agent.WaitFor(t, "joined "+c.LocalAddr().String())
		if !strings.Contains(n.agent.Output(), "peer mss 1") || !strings.Contains(n.agent.Output(), "known true") {
			t.Errorf("the agent does not know what the server said of itself:\n%s", n.agent.Output())
		}
		for _, end := range []net.Addr{c.LocalAddr(), s.LocalAddr()} {
			mss := map[string]int{"IPv4": 1460, "IPv6": 1440}[of.name]
			n.agent.WaitFor(t, fmt.Sprintf("own %v mss %d scaled true known true", end, mss))
		}
		go func() { s.Write([]byte("hello")); s.(interface{ CloseWrite() error }).CloseWrite() }()
		b := make([]byte, 5)
		if _, err := c.Read(b); err != nil || string(b) != "hello" {
			t.Errorf("%q, %v", b, err)
		}
		must(t, finish(c), finish(s))
	})
}
