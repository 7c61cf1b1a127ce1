package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestDaemonsDieUnnoticed(t *testing.T) {
	n := theNetwork(t)
	addr := n.createLoaded("daemons")
	n.serveAll(0) // those of an earlier round are withdrawn: later it would count as this one's
	n.loadServers("s1", addr)
	n.loadServers("s2", addr)
	for _, dead := range [][]string{
		{"c1/hostd"},
		{"s1/hostd"},
		{"r1/routerd"},
		{"ctl/controld"},
		{"c1/hostd", "s1/hostd", "s2/hostd", "r1/routerd", "ctl/controld"},
	} {
		if !theNetwork(t).linux() { // the daemon of a switch is its data plane, an emulated router has none
			dead = slices.DeleteFunc(dead, func(d string) bool { return d == "r1/routerd" })
		}
		if len(dead) == 0 {
			continue
		}
		t.Run(strings.Join(dead, " and "), func(t *testing.T) { dieUnnoticed(theNetwork(t), addr, dead) })
	}
}

// dieUnnoticed kills daemons under load and starts them again.
func dieUnnoticed(n *network, addr netip.Addr, dead []string) {
	n.allServe()
	c1, s1 := n.locator("c1"), n.locator("s1")
	since := n.lastEvent()
	l := n.startLoad(addr)
	for _, d := range dead {
		n.kill(d)
	}
	l.progress("while the daemon is away")
	n.newFlows(addr, "while the daemon is away")
	for _, d := range dead {
		n.do("start " + d)
	}
	l.progress("while the daemon starts")
	n.settled()
	l.progress("after the daemon is back")
	n.newFlows(addr, "after the daemon is back")
	l.finish()
	n.allServe()
	if a, b := n.locator("c1"), n.locator("s1"); a != c1 || b != s1 {
		n.t.Errorf("locators of c1 and s1 were %v and %v, are %v and %v", c1, s1, a, b)
	}
	n.nothingWithdrawn(since)
}

// allServe waits for two instances on each port.
func (n *network) allServe() {
	n.t.Helper()
	n.serveAll(2)
}

// serveAll waits for so many instances on each port.
func (n *network) serveAll(instances int) {
	n.t.Helper()
	n.serving("daemons", "tcp", echoPort, instances)
	n.serving("daemons", "tcp", askPort, instances)
	n.serving("daemons", "udp", askPort, instances)
}

// newFlows opens flows until both servers have answered, over TCP and UDP.
func (n *network) newFlows(addr netip.Addr, when string) {
	n.t.Helper()
	for _, network := range []string{"tcp6", "udp6"} {
		seen := map[string]int{}
		for i := 0; len(seen) < 2; i++ {
			if i == 200 {
				n.t.Fatalf("%s: 200 new flows over %s were answered by %v, want s1 and s2", when, network, seen)
			}
			seen[n.who(network, port(addr, askPort))]++
		}
	}
}

// settled waits until all hosts and routers are part of the network, by their own word and the
// controller's.
func (n *network) settled() {
	n.t.Helper()
	nstest.Wait(n.t, n.look(), func() error {
		for _, host := range []string{"c1", "s1", "s2", "s3", "far"} {
			if n.lab.Plan().Node(host) == nil {
				continue // of another lab
			}
			s, err := n.local(host).GetHostStatus(n.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
			if err != nil {
				return fmt.Errorf("the daemon of %s: %w", host, err)
			}
			if s.Msg.State != "joined" {
				return fmt.Errorf("%s: %s %s", host, s.Msg.State, s.Msg.Reason)
			}
			h, err := n.admin.GetHost(n.t.Context(), connect.NewRequest(&apiv1.GetHostRequest{Name: host}))
			if err != nil || h.Msg.State != "up" {
				return fmt.Errorf("%s, by the controller: %v %v", host, h, err)
			}
			if h.Msg.Protocol == 0 { // up by the state that was stored; the daemon may still believe in the controller of before
				return fmt.Errorf("%s has not joined the controller since that has begun: %v", host, h)
			}
		}
		r, err := n.admin.ListRouters(n.t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
		if err != nil {
			return err
		}
		for _, r := range r.Msg.Routers {
			if r.State != "up" {
				return fmt.Errorf("router %s is %s", r.Name, r.State)
			}
		}
		return nil
	})
}

// events are those that the controller remembers.
func (n *network) events() (all []*apiv1.Event) {
	n.t.Helper()
	s, err := n.admin.WatchEvents(n.t.Context(), connect.NewRequest(&apiv1.WatchEventsRequest{History: 10000}))
	if err != nil {
		n.t.Fatal(err)
	}
	defer s.Close()
	for s.Receive() {
		all = append(all, s.Msg())
	}
	if s.Err() != nil {
		n.t.Fatalf("events: %v", s.Err())
	}
	return all
}

// lastEvent is when the last event was, in milliseconds of the clock: sequence numbers begin anew with
// the controller.
func (n *network) lastEvent() (at int64) {
	n.t.Helper()
	for _, e := range n.events() {
		at = max(at, e.UnixMs)
	}
	return at
}

// nothingWithdrawn fails if an instance of the service, or a host, has gone since then.
func (n *network) nothingWithdrawn(since int64) {
	n.t.Helper()
	for _, e := range n.events() {
		if e.UnixMs > since && (e.Kind == "instance.down" || e.Kind == "host.leave" || e.Kind == "host.gone") {
			n.t.Errorf("event %s %s: %s", e.Kind, e.Subject, e.Text)
		}
	}
}

func TestListenersComeAndGoWhileTheDaemonIsAway(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("meanwhile")
	old := n.serveTCP("s1", port(addr, 80))
	n.serving("meanwhile", "tcp", 80, 1)
	n.kill("s1/hostd")
	old.Close()
	n.serveTCP("s1", port(addr, 81))
	if err := only(n.connects("c1", netip.AddrPortFrom(addr, 80), 20), unix.ECONNREFUSED); err != nil {
		t.Errorf("the port of a server that ended while the daemon is away: %v\nlook at: %s", err, n.look())
	}
	n.do("start s1/hostd")
	n.serving("meanwhile", "tcp", 81, 1)
	n.serving("meanwhile", "tcp", 80, 0)
	if host := n.who("tcp6", port(addr, 81)); host != "s1" {
		t.Errorf("the new port is answered by %q, want s1", host)
	}
	n.settled()
}

// TestABrokenConnectionEndsNoDaemon lets many clients of a daemon's API go away before they are answered:
// the daemon's writes then fail, and the kernel sends it SIGPIPE.
func TestABrokenConnectionEndsNoDaemon(t *testing.T) {
	n := theNetwork(t)
	request := "POST /scaffold.v1.Admin/ListServices HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	for range 200 {
		for _, node := range []string{"c1", "ctl"} {
			c, err := net.Dial("unix", n.lab.Socket(node))
			if err != nil {
				t.Fatalf("%s: %v\nlook at: %s", node, err, n.look())
			}
			c.Write([]byte(request + request))
			c.Close()
		}
	}
	n.settled()
}
