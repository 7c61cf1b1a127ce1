package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/packet/header"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

// A wire is one end of a link, listened to.
type wire struct {
	name   string
	frames *nstest.Frames
}

// tap listens on every link of the lab's network, at both ends, or at the one that is an interface.
func (n *network) tap() (wires []wire) {
	n.t.Helper()
	for _, node := range n.lab.Plan().Nodes {
		if node.Netns == "" {
			continue
		}
		for _, p := range node.Ports {
			wires = append(wires, wire{node.Name + "/" + p.Dev, n.at(node.Name).Frames(n.t, p.Dev)})
		}
	}
	return wires
}

func TestNoInnerAddressIsASourceOnAnyWire(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("leak")
	n.create("leak-empty")
	wires := n.tap()
	n.loadServers("s1", addr)
	n.loadServers("far", addr)
	n.serving("leak", "tcp", echoPort, 2)
	n.serving("leak", "udp", askPort, 2)
	for range 20 {
		n.who("tcp6", port(addr, askPort))
		n.who("udp6", port(addr, askPort))
	}
	for range 4 { // some go over the small link
		n.insist(n.dial("c1", "udp6", port(addr, askPort)), strings.Repeat("f", 4000))
	}
	n.provoke(addr)
	n.killServers(addr)
	seen := 0
	for _, w := range wires {
		for _, frame := range w.frames.Drain(t) {
			seen++
			if leak := leaks(frame); leak != "" {
				t.Errorf("%s: %s\nframe: %x", w.name, leak, frame[:min(len(frame), 160)])
				break
			}
		}
	}
	if seen < 500 {
		t.Errorf("only %d frames were seen on %d wires: the taps do not work", seen, len(wires))
	}
	t.Logf("%d frames on %d ends of links", seen, len(wires))
}

// provoke causes pings, refusals of all kinds and errors of both ends.
func (n *network) provoke(addr netip.Addr) {
	n.t.Helper()
	if out, err := n.run("c1", "ping", "-6", "-n", "-c", "3", "-i", "0.02", "-s", "3000", addr.String()); err != nil {
		n.t.Errorf("ping: %v\n%s", err, out)
	}
	unknown := sid.DefaultSpace().ServiceAddr(sid.ServiceID{SS: 1, Suffix: 0x7fff4321})
	n.connects("c1", netip.AddrPortFrom(unknown, 80), 10)
	n.connects("c1", netip.AddrPortFrom(addr, 81), 10)
	n.run("c1", "curl", "-sm5", "http://leak-empty.svc/")
	for _, to := range []string{port(addr, 82), port(unknown, 82)} {
		c := n.dial("c1", "udp6", to)
		c.Write([]byte("nobody"))
		c.Close() // an error that comes now finds no socket
	}
	c := n.dial("c1", "udp6", port(addr, askPort))
	for range 10 {
		c.Write([]byte("answers to this meet a closed socket"))
	}
	c.Close()
}

// killServers kills a server with open connections, over which the client goes on to send, and another
// client with open connections.
func (n *network) killServers(addr netip.Addr) {
	n.t.Helper()
	const hold = `
import socket, sys, time
l = socket.create_server((sys.argv[1], 90), family=socket.AF_INET6)
print("listening", flush=True)
held = []
while True:
    held.append(l.accept()[0])
    print("accepted", len(held), flush=True)
`
	p := n.start("s2", "python3", "-c", hold, addr.String())
	n.serving("leak", "tcp", 90, 1)
	client := n.start("c1", "python3", "-c", `
import socket, sys, time
held = [socket.create_connection((sys.argv[1], 90)) for _ in range(5)]
for c in held: c.sendall(b"x" * 1000)
print("connected", flush=True)
time.sleep(100)
`, addr.String())
	p.WaitFor(n.t, "accepted 5")
	client.WaitFor(n.t, "connected")
	c := n.dial("c1", "tcp6", port(addr, 90))
	p.WaitFor(n.t, "accepted 6")
	client.Kill()
	p.Signal(syscall.SIGKILL)
	nstest.Wait(n.t, n.look(), func() error {
		if _, err := c.Write([]byte("is anybody there")); err == nil {
			return fmt.Errorf("the client of a killed server sends and sees no error")
		}
		return nil
	})
	n.serving("leak", "tcp", 90, 0)
}

// leaks says what a frame shows that no wire may carry: as a source, or as the source of a packet that an
// error quotes, the address of a service or the identity of a host.
func leaks(frame []byte) string {
	packet, ok := header.InFrame(frame)
	if !ok {
		return ""
	}
	if what := inner(packet); what != "" {
		return what + " is the source"
	}
	quote, quotes := packet.Quoted(header.IPv6Len)
	if quotes && packet.Next() == header.ICMPv6 && packet[header.IPv6Len] < 128 { // an error, RFC 4443 §2.1
		if what := inner(quote); what != "" {
			return what + " is the source of a packet quoted by an ICMPv6 error"
		}
	}
	return ""
}

func inner(packet header.IPv6) string {
	src, dst := packet.Src(), packet.Dst()
	space := sid.DefaultSpace()
	switch {
	case space.Services.Contains(src):
		return fmt.Sprintf("the service address %v", src)
	case space.Identities.Contains(src):
		return fmt.Sprintf("the identity %v", src)
	case space.Identities.Contains(dst):
		return fmt.Sprintf("beside the identity %v as destination, %v", dst, src)
	}
	return ""
}
