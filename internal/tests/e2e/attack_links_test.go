package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
	msg "scaffold.dev/scaffold/wire"
)

// A greeter says HELLO, and whatever else it likes, on the uplinks of a node.
type greeter struct {
	t     testing.TB
	conn  *ipv6.PacketConn
	links []net.Interface
	at    string
}

func (n *network) greeter(node string) *greeter {
	n.t.Helper()
	g := &greeter{t: n.t, at: node}
	n.at(node).Do(func() {
		all, err := net.Interfaces()
		if err != nil {
			n.t.Fatal(err)
		}
		for _, i := range all {
			if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 && i.Name != "mgmt" && i.HardwareAddr != nil {
				g.links = append(g.links, i)
			}
		}
		shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) { // hostd has the port, too
			raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
			return err
		}}
		c, err := shared.ListenPacket(n.t.Context(), "udp6", fmt.Sprintf("[::]:%d", sid.Port))
		if err != nil {
			n.t.Fatal(err)
		}
		g.conn = ipv6.NewPacketConn(c)
	})
	g.conn.SetMulticastHopLimit(255)
	n.t.Cleanup(func() { g.conn.Close() })
	return g
}

// say sends a message to all nodes on each link.
func (g *greeter) say(m msg.Message) {
	g.t.Helper()
	for _, i := range g.links {
		to := &net.UDPAddr{IP: net.IPv6linklocalallnodes, Port: sid.Port, Zone: i.Name}
		if _, err := g.conn.WriteTo(m.Append(nil), &ipv6.ControlMessage{IfIndex: i.Index}, to); err != nil {
			g.t.Fatalf("%s says %v on %s: %v", g.at, m.Type(), i.Name, err)
		}
	}
}

// processed returns once a router has answered what was asked now: it has done what was said before.
func (g *greeter) processed() {
	g.t.Helper()
	g.say(msg.Solicit{Name: g.at})
	buf := make([]byte, msg.MaxLen+1)
	for g.conn.SetReadDeadline(time.Now().Add(nstest.Deadline)); ; {
		n, _, _, err := g.conn.ReadFrom(buf)
		if err != nil {
			g.t.Fatalf("no router greets %s: %v", g.at, err)
		}
		if m, err := msg.Parse(buf[:n]); err == nil && m.Type() == msg.TypeHello {
			return
		}
	}
}

// between are the links of routers to others that are no hosts, as the controller knows them.
func (n *network) between() string {
	n.t.Helper()
	list, err := n.admin.ListRouters(n.t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		n.t.Fatal(err)
	}
	var s strings.Builder
	for _, r := range list.Msg.Routers {
		for _, l := range r.Links {
			if !l.Host {
				fmt.Fprintf(&s, "%s by %s to %s by %s, via %s, up %v, one-sided %v\n", r.Name, l.Port, l.Peer, l.PeerPort, l.Via, l.Up, l.OneSided)
			}
		}
	}
	return s.String()
}

// Attack: a device at a port of rs that is no member, and the member host c1 at ra, say that they are the router ra, rs, rb,
// a host, and one that nobody knows, at its true port and at others, with LINKs as well. No link, no route changes, and what
// connects goes to its server.
func TestNobodyGreetsHisWayIntoTheNetwork(t *testing.T) {
	safety.Test(t, safety.Door)
	m := theAttackedOnAnyPlane(t)
	want := ""
	nstest.Wait(t, m.look(), func() error {
		if want = m.between(); strings.Count(want, "up true, one-sided false") != 4 {
			return fmt.Errorf("the links are\n%s", want)
		}
		return nil
	})
	for _, node := range []string{"x", "c1"} {
		g := m.greeter(node)
		for round := range 20 {
			for _, name := range []string{"ra", "rb", "rs", "s1", "made-up"} {
				for _, port := range []string{"rs", "to-rs", "ra", "x", fmt.Sprint("p", round)} {
					g.say(msg.Hello{Service: true, Name: name, Port: port, Locator: sid.DefaultSpace().Locator(0x100)})
					for _, peer := range []string{"rs", "ra"} {
						for _, peerPort := range []string{"x", "c1", "to-x", ""} {
							g.say(msg.Link{Header: msg.Header{KeyID: 1, Nonce: uint64(round)}, Serial: 1 << 60, Echo: 1, Name: name, Port: port, Peer: peer, PeerPort: peerPort})
						}
					}
				}
			}
			g.processed()
			if got := m.between(); got != want {
				t.Fatalf("%s greets, and the links become\n%s\nwant\n%s\nlook at: %s", node, got, want, m.look())
			}
		}
	}
	m.serveTCP("s1", netip.AddrPortFrom(m.addr, 80).String())
	m.serving("move", "tcp", 80, 1)
	if got := m.connects("c1", netip.AddrPortFrom(m.addr, 80), 1); got[0] != 0 {
		t.Errorf("after that c1 connects with %v\nlook at: %s", got[0], m.look())
	}
}
