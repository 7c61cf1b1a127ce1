package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/sid"
)

const toldPort = 40001

var told = sid.Triple{Service: web, Proto: sid.TCP, Port: toldPort}

// A conversation is a client with a connection to each of several servers, over which one of them may tell a port.
type conversation struct {
	*testNetwork
	client  *testHost
	servers []*testHost
}

// converse begins it; the daemons' loops for refusals run everywhere.
func converse(t *testing.T, servers int) *conversation {
	t.Helper()
	n := &conversation{testNetwork: newNetwork(t)}
	n.client = n.host(t, "client", 1, Config{})
	for i := range servers {
		n.servers = append(n.servers, n.host(t, fmt.Sprintf("s%d", i), uint16(2+i), Config{}))
	}
	all := append([]*testHost{n.client}, n.servers...)
	counters(t, all...)
	for _, h := range all {
		done := handle(h.edge, h.NS)
		h.handled = done
		t.Cleanup(func() { h.edge.Close(false); <-done })
	}
	for _, h := range n.servers {
		n.serve(t, webTCP, h) // one after the other, so that the client meets each
		go echoServer(h.Listen(t, "tcp6", at(webAddr, 80)))
		c, err := n.client.dial(at(webAddr, 80))
		must(t, err)
		t.Cleanup(func() { c.Close() })
	}
	return n
}

// counts reads a counter of a host.
func (h *testHost) counts(t testing.TB, name string) uint64 {
	t.Helper()
	all, err := h.edge.Counters()
	must(t, err)
	return all[name]
}

// awaits waits until a counter has grown by n.
func (h *testHost) awaits(t testing.TB, name string, n uint64) {
	t.Helper()
	before, end := h.counts(t, name), time.Now().Add(nstest.Deadline)
	for now := before; now < before+n; now = h.counts(t, name) {
		if time.Now().After(end) {
			t.Fatalf("%s counts %q %d, want %d more than %d", h.Name, name, now, n, before)
		}
		time.Sleep(time.Millisecond)
	}
}

// dials connects to the told port in another goroutine.
func (n *conversation) dials(from *nstest.NS) chan error {
	result := make(chan error, 1)
	go func() {
		c, err := dialFrom(from, at(webAddr, toldPort))
		if err == nil {
			c.Close()
		}
		result <- err
	}()
	return result
}

// TestAPortThatIsToldIsNotRefused: its program listens, and neither a controller nor a router has heard of it. As long as
// its daemon has not either, the client's edge asks again; it connects as soon as the daemon admits it.
func TestAPortThatIsToldIsNotRefused(t *testing.T) {
	n := converse(t, 3)
	server := n.servers[1]
	go echoServer(server.Listen(t, "tcp6", at(webAddr, toldPort)))
	result := n.dials(n.client.NS)
	server.awaits(t, "later", 6) // 2 + 4 + 8 + 10 + 10 ms: longer than a refusal was ever held
	must(t, server.edge.AdmitListening(told))
	if err := <-result; err != nil {
		t.Errorf("%v; want it connected", err)
	}
}

// TestAGuestIsToldOfAPort: its questions leave by the edge of its host.
func TestAGuestIsToldOfAPort(t *testing.T) {
	n := converse(t, 1)
	guest := n.client.guest(t, "guest", 1)
	must(t, second2(dialFrom(guest.NS, at(webAddr, 80))))
	go echoServer(n.servers[0].Listen(t, "tcp6", at(webAddr, toldPort)))
	result := n.dials(guest.NS)
	n.servers[0].awaits(t, "later", 3)
	must(t, n.servers[0].edge.AdmitListening(told))
	if err := <-result; err != nil {
		t.Errorf("%v; want it connected", err)
	}
}

// TestAPortThatAGuestToldIsNotRefused: the edge looks for its listener in the guest's namespace.
func TestAPortThatAGuestToldIsNotRefused(t *testing.T) {
	n := converse(t, 1)
	s := n.servers[0]
	guest := s.guest(t, "guest", 1)
	must(t, s.edge.SetOwners(sid.Triple{Service: web}, []uint16{0, 1})) // beside the host, at other ports
	guest.Listen(t, "tcp6", fmt.Sprintf("[::]:%d", toldPort+1))
	if _, err := n.client.dial(at(webAddr, toldPort+1)); !errors.Is(err, unix.ECONNREFUSED) || s.counts(t, "later") > 0 {
		t.Errorf("a listener on the wildcard address: %v, want %v", err, unix.ECONNREFUSED)
	}
	guest.greets(t, at(webAddr, toldPort))
	result := n.dials(n.client.NS)
	s.awaits(t, "later", 3)
	must(t, s.edge.SetOwners(told, []uint16{1}))
	must(t, s.edge.Admit(told))
	if err := <-result; err != nil {
		t.Errorf("%v; want it connected", err)
	}
}

// TestAQuestionLeavesOutWhoResetIt: one of two has no listener, and its edge knows no better. A question that did not say
// so would be the same packet again, and meet the same one; also after the daemon has sent messages.
func TestAQuestionLeavesOutWhoResetIt(t *testing.T) {
	n := converse(t, 2)
	n.serve(t, told, n.servers...)
	go echoServer(n.servers[1].Listen(t, "tcp6", at(webAddr, toldPort)))
	// What matters is the socket that it opens: this network has routes for names, and perhaps none for hosts.
	_ = n.client.edge.Send(n.client.locator.Host(), n.servers[0].locator.Host(), 0, make([]byte, 16))
	guest := n.client.guest(t, "guest", 1)
	for name, from := range map[string]*nstest.NS{"the host": n.client.NS, "its guest": guest.NS} {
		for i := range 16 {
			if err := second2(dialFrom(from, at(webAddr, toldPort))); err != nil {
				t.Errorf("%s, connection %d: %v; want the other server", name, i, err)
			}
		}
	}
}

func second2(c net.Conn, err error) error { return err }

// TestAToldDatagramPortIsNotRefused: a server says over TCP to which port datagrams go.
func TestAToldDatagramPortIsNotRefused(t *testing.T) {
	n := converse(t, 2)
	go echoDatagrams(n.servers[0].ListenPacket(t, "udp6", at(webAddr, toldPort)))
	d := n.client.ListenPacket(t, "udp6", "[::]:0")
	within(t, d)
	must(t, second(d.WriteTo([]byte("question"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(webAddr, toldPort)))))
	n.servers[0].awaits(t, "later", 3)
	must(t, n.servers[0].edge.AdmitListening(sid.Triple{Service: web, Proto: sid.UDP, Port: toldPort}))
	if _, _, err := d.ReadFrom(make([]byte, 16)); err != nil {
		t.Error(err)
	}
}

// TestAClosedPortIsRefused although hosts that the client has met are asked: by each at once and for good.
func TestAClosedPortIsRefused(t *testing.T) {
	n := converse(t, 2)
	s := n.servers[0]
	var listener net.Listener
	for _, c := range []struct {
		name    string
		prepare func()
	}{
		{"nobody listens", func() {}},
		{"a program listens on the wildcard address, which is no name", func() {
			listener = s.Listen(t, "tcp6", fmt.Sprintf("[::]:%d", toldPort))
		}},
		{"its program may not serve", func() {
			listener.Close()
			s.Listen(t, "tcp6", at(webAddr, toldPort))
			must(t, s.edge.Judge(told, Unfit))
		}},
		{"it is not ready", func() { must(t, s.edge.AdmitListening(told)) }},
		{"its daemon is away", func() {
			must(t, s.edge.Withdraw(told))
			must(t, s.edge.Judge(told, Fit))
			must(t, s.edge.ring.Close()) // nobody reads any more
			<-s.handled
			must(t, s.edge.maps.Config.Put(uint32(0), &edgeHostConfig{Abi: abiVersion, Secret: s.edge.secret}))
		}},
	} {
		before := [2]uint64{s.counts(t, "refused"), n.servers[1].counts(t, "refused")}
		c.prepare()
		if _, err := n.client.dial(at(webAddr, toldPort)); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v, want %v", c.name, err, unix.ECONNREFUSED)
		}
		for i, s := range n.servers {
			if later, refused := s.counts(t, "later"), s.counts(t, "refused")-before[i]; later > 0 || refused != 1 {
				t.Errorf("%s: %s said %d times \"later\" and %d times \"no\", want 0 and 1", c.name, s.Name, later, refused)
			}
		}
	}
}

// TestAnInstanceThatIsNotReadyYetIsAwaited: its ready check is under way.
func TestAnInstanceThatIsNotReadyYetIsAwaited(t *testing.T) {
	n := converse(t, 1)
	s := n.servers[0]
	go echoServer(s.Listen(t, "tcp6", at(webAddr, toldPort)))
	must(t, s.edge.Judge(told, Later))
	must(t, s.edge.AdmitListening(told))
	result := n.dials(n.client.NS)
	s.awaits(t, "later", 3)
	must(t, s.edge.Judge(told, Fit))
	if err := <-result; err != nil {
		t.Errorf("%v; want it connected", err)
	}
}

// TestWhoMayNotConnectIsRefusedHoweverItAsks: the list of who may connect counts for questions, too.
func TestWhoMayNotConnectIsRefusedHoweverItAsks(t *testing.T) {
	safety.Test(t, safety.Door)
	n := converse(t, 1)
	s := n.servers[0]
	s.Listen(t, "tcp6", at(webAddr, toldPort))
	must(t, s.edge.AdmitListening(told))
	must(t, s.edge.SetAccess(web, resolve.NewAccessList(nil)))
	if _, err := n.client.dial(at(webAddr, toldPort)); err == nil {
		t.Error("connected")
	}
	if s.counts(t, "forbidden") == 0 {
		t.Error("the server refused nothing")
	}
}

// TestWhoIsAsked are hosts that the client has flows with, under the locators that they have now.
func TestWhoIsAsked(t *testing.T) {
	n := converse(t, 2)
	ev := Event{Peer: netip.AddrPortFrom(webAddr, toldPort)}
	want := []sid.Locator{n.servers[1].locator, n.servers[0].locator}
	if got := n.client.edge.RecentPeers(ev); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v are asked, want %v, whom it met last first", got, want)
	}
	if got := n.client.edge.RecentPeers(Event{Peer: netip.AddrPortFrom(dnsAddr, 53)}); len(got) > 0 {
		t.Errorf("%v are asked for another service", got)
	}
	if got := n.client.edge.RecentPeers(Event{Peer: ev.Peer, Tuple: Tuple{Guest: 7}}); len(got) > 0 {
		t.Errorf("%v are asked for a guest that has met nobody", got)
	}
}

// TestAProgramReachesWhatItsOwnHostServes although no router knows of the port yet, nor perhaps its own daemon.
func TestAProgramReachesWhatItsOwnHostServes(t *testing.T) {
	n := converse(t, 1)
	own := n.servers[0]
	time.AfterFunc(2*time.Millisecond, func() { must(t, own.edge.AdmitListening(told)) })
	go echoServer(own.Listen(t, "tcp6", at(webAddr, toldPort)))
	c, err := own.dial(at(webAddr, toldPort))
	if err != nil {
		t.Fatalf("%v; the edge counts %d questions to a host", err, own.counts(t, "asked"))
	}
	c.Close()
}
