package boost

import (
	"fmt"
	"io"
	"net"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// Each network has one thing that binds what the client sends, and both agents together name it; the server sends nothing.
func TestWhatBindsAConnectionIsNamed(t *testing.T) {
	for _, c := range []struct {
		want    string
		prepare func(n *network)
		client  func(c net.Conn)
		server  func(c net.Conn)
	}{
		{"source", nil, func(c net.Conn) { fmt.Fprintln(c, "that is all") }, drain},
		{"receiver", nil, fill, func(net.Conn) {}},
		{"path", func(n *network) {
			n.x.Run(n.t, "tc", "qdisc", "add", "dev", "p1", "root", "tbf", "rate", "20mbit", "burst", "32kb", "latency", "20ms")
		}, fill, drain},
	} {
		t.Run(c.want, func(t *testing.T) {
			n := newNetwork(t)
			if c.prepare != nil {
				c.prepare(n)
			}
			n.boosts()
			f := n.carried(true)
			go c.client(f.client) // both end with the connection
			go c.server(f.server)
			nstest.Wait(t, "scaffold boost session ls, boost agent ls", func() error {
				all, err := n.boost.ListBoostSessions(t.Context(), connect.NewRequest(&apiv1.ListBoostSessionsRequest{Client: f.client.LocalAddr().String(), Server: server}))
				if err != nil {
					return err
				}
				if s := all.Msg.Sessions; len(s) != 1 || s[0].SentBound != c.want || s[0].ReceivedBound != "source" {
					return fmt.Errorf("%v", s)
				}
				return nil
			})
		})
	}
}

func fill(c net.Conn) {
	b := make([]byte, 1<<20)
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func drain(c net.Conn) { io.Copy(io.Discard, c) }
