package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/operate/setup"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// An outsider is a machine without Scaffold that has a link to each of some hosts: the K-th, from 1, is
// 10.9.K.1 and fd77:K::1 there.
type outsider struct {
	n  *network
	ns *nstest.NS
}

func (n *network) outsider(hosts ...string) *outsider {
	n.t.Helper()
	o := &outsider{n, nstest.New(n.t, "outside")}
	for i, host := range hosts {
		here, there := fmt.Sprintf("gw%d", i+1), fmt.Sprintf("out%d", i+1)
		nstest.Veth(n.t, o.ns, here, n.at(host), there)
		n.t.Cleanup(func() { // the end of a namespace takes its interfaces only after a while
			if dev, err := o.ns.Link().LinkByName(here); err == nil {
				o.ns.Link().LinkDel(dev)
			}
		})
		o.ns.Addr(n.t, here, fmt.Sprintf("10.9.%d.2/24", i+1))
		o.ns.Addr(n.t, here, fmt.Sprintf("fd77:%d::2/64", i+1))
		n.at(host).Addr(n.t, there, fmt.Sprintf("10.9.%d.1/24", i+1))
		n.at(host).Addr(n.t, there, fmt.Sprintf("fd77:%d::1/64", i+1))
	}
	return o
}

// asItsUnit runs this program with what the gateway's unit leaves of root's capabilities.
func (n *network) asItsUnit(argv ...string) []string {
	program, err := os.Executable() // self would be setpriv there
	if err != nil {
		n.t.Fatal(err)
	}
	set := "-all"
	for c := range strings.FieldsSeq(setup.GatewayCapabilities) {
		set += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	return append([]string{"setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=" + set, "--", program}, argv...)
}

// gateway starts one on a host. It is up when it says that it listens.
func (n *network) gateway(host string, argv ...string) (p *nstest.Proc, socket string) {
	n.t.Helper()
	socket = filepath.Join(n.t.TempDir(), host+".sock")
	p = n.start(host, n.asItsUnit(append([]string{"gateway", "--socket", socket, "--drain-wait", "0s"}, argv...)...)...)
	p.WaitFor(n.t, "gateway.start")
	return p, socket
}

// visits are clients of an outsider who come and go at addresses, and try the next one where one does not answer.
type visits struct {
	o      *outsider
	at     []string
	done   atomic.Int64
	stop   atomic.Bool
	all    sync.WaitGroup
	mu     sync.Mutex
	by     map[string]int
	errs   []error
	failed func(error) bool // whether an error counts
}

func (o *outsider) visits(at ...string) *visits {
	v := &visits{o: o, at: at, by: map[string]int{}, failed: func(error) bool { return true }}
	for range 4 {
		v.all.Go(func() {
			for !v.stop.Load() {
				host, err := v.once()
				v.mu.Lock()
				v.by[host]++
				if err != nil && v.failed(err) {
					v.errs = append(v.errs, err)
				}
				v.mu.Unlock()
				v.done.Add(1)
			}
		})
	}
	o.n.t.Cleanup(func() { v.stop.Store(true); v.all.Wait() })
	return v
}

func (v *visits) once() (host string, err error) {
	for _, at := range v.at {
		var c net.Conn
		if c, err = v.o.ns.Dial("tcp", at); err != nil {
			continue
		}
		defer c.Close()
		return ask(c, "who")
	}
	return "", err
}

// more waits until as many visits have been made from now on.
func (v *visits) more(count int64) {
	v.o.n.t.Helper()
	from := v.done.Load()
	nstest.Wait(v.o.n.t, v.o.n.look(), func() error {
		if d := v.done.Load() - from; d < count {
			return fmt.Errorf("%d visits, want %d", d, count)
		}
		return nil
	})
}

func (v *visits) end() (by map[string]int, errs []error) {
	v.stop.Store(true)
	v.all.Wait()
	return v.by, v.errs
}

// none fails the test where visits failed.
func (v *visits) none(what string) map[string]int {
	v.o.n.t.Helper()
	by, errs := v.end()
	if len(errs) > 0 {
		v.o.n.t.Errorf("%s: %d of %d visits failed: %v", what, len(errs), v.done.Load(), errors.Join(errs[:min(3, len(errs))]...))
	}
	return by
}

func TestOutsidersReachANameByAGateway(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("outside")
	for _, host := range []string{"s1", "s2"} {
		n.serveTCP(host, port(addr, 80))
		n.serveUDP(host, port(addr, 80))
	}
	n.serving("outside", "tcp", 80, 2)
	n.serving("outside", "udp", 80, 2)
	o := n.outsider("c1")
	n.gateway("c1", "--listen", "*:8080=outside:80", "--listen", "*:8080/udp=outside:80", "--listen", "*:79=outside:80")
	for _, network := range []string{"tcp", "udp"} {
		seen := map[string]int{}
		for i := range 40 {
			c, err := o.ns.Dial(network, []string{"10.9.1.1:8080", "[fd77:1::1]:8080"}[i%2])
			if err != nil {
				t.Fatal(err)
			}
			host, err := ask(c, "who")
			if err != nil {
				t.Fatalf("%s: %v\nlook at: %s", network, err, n.look())
			}
			seen[host]++
			c.Close()
		}
		if len(seen) != 2 {
			t.Errorf("%s: %v, want both instances", network, seen)
		}
	}
	if out, err := n.run("c1", self, "events"); err != nil || !strings.Contains(out, "gateway.start") {
		t.Errorf("the network's history has no gateway.start: %v\n%s", err, out)
	}
}

func TestBehindAGatewayInstancesDieAndDrain(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("behind")
	servers := map[string]net.Listener{}
	for _, host := range []string{"s1", "s2"} {
		servers[host] = n.serveTCP(host, port(addr, 80))
	}
	n.serving("behind", "tcp", 80, 2)
	o := n.outsider("c1")
	n.gateway("c1", "--listen", "10.9.1.1:8080=behind:80", "--log-flows")
	v := o.visits("10.9.1.1:8080")
	v.more(50)
	n.run("c1", self, "service", "drain", "behind", "--instance", "s1")
	v.more(100)
	n.run("c1", self, "service", "undrain", "behind", "--instance", "s1")
	v.more(50)
	if by := v.none("an instance drained"); by["s2"] == 0 || by["s1"] == 0 {
		t.Errorf("visits by instance: %v", by)
	}
	v = o.visits("10.9.1.1:8080")
	v.more(50)
	servers["s1"].Close() // who is refused there is tried again, who had asked already is reset
	v.more(100)
	if by, errs := v.end(); len(errs) > 4 || by["s2"] == 0 {
		t.Errorf("visits by instance: %v; %d failed, at most one of each of 4 clients may: %v", by, len(errs), errors.Join(errs...))
	}
	servers["s2"].Close()
	n.serving("behind", "tcp", 80, 0)
	if c, err := o.ns.Dial("tcp", "10.9.1.1:8080"); err == nil {
		c.SetDeadline(time.Now().Add(answerTime))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("nobody serves: the outsider sees %v, want a reset", err)
		}
	}
}

func TestAGatewayIsDrainedUnderLoad(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("two")
	n.serveTCP("s1", port(addr, 80))
	n.serving("two", "tcp", 80, 1)
	o := n.outsider("c1", "far")
	one, _ := n.gateway("c1", "--listen", "10.9.1.1:8080=two:80", "--drain-limit", "20s")
	n.gateway("far", "--listen", "10.9.2.1:8080=two:80")
	live, err := o.ns.Dial("tcp", "10.9.1.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(live, "hello"); err != nil {
		t.Fatal(err)
	}
	v := o.visits("10.9.1.1:8080", "10.9.2.1:8080") // as two addresses of one DNS name
	v.more(50)
	one.Signal(syscall.SIGTERM)
	one.WaitFor(t, "listeners are closed")
	v.more(50)
	v.none("one of two gateways drained")
	if t.Failed() {
		t.Logf("the drained gateway says:\n%s", one.Output())
	}
	if _, err := ask(live, "still here"); err != nil {
		t.Errorf("a flow of the drained gateway: %v", err)
	}
	live.Close()
	nstest.Receive(t, one.Output(), closedAs(one))
	if code := exitCode(one.Wait()); code != 0 {
		t.Errorf("the drained gateway ended with %d:\n%s", code, one.Output())
	}
}

func TestOneOfTwoGatewaysIsKilled(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("both")
	n.serveTCP("s1", port(addr, 80))
	n.serving("both", "tcp", 80, 1)
	o := n.outsider("c1", "far")
	one, _ := n.gateway("c1", "--listen", "10.9.1.1:8080=both:80")
	n.gateway("far", "--listen", "10.9.2.1:8080=both:80")
	v := o.visits("10.9.1.1:8080", "10.9.2.1:8080")
	v.failed = func(err error) bool { return !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, io.EOF) } // those in it end with it
	v.more(50)
	one.Kill()
	v.more(100)
	v.none("one of two gateways killed")
}

func TestAnUpgradedGatewayResetsNobody(t *testing.T) {
	n := theNetwork(t)
	addr := n.create("upgraded")
	n.serveTCP("s1", port(addr, 80))
	n.serveUDP("s2", port(addr, 80))
	n.serving("upgraded", "tcp", 80, 1)
	n.serving("upgraded", "udp", 80, 1)
	o := n.outsider("c1")
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	const listens = "listen:\n- 10.9.1.1:8080=upgraded:80\n- 10.9.1.1:8080/udp=upgraded:80\n"
	put(t, config, listens)
	p, socket := n.gateway("c1", "--config", config)
	var flows []net.Conn
	for _, network := range []string{"tcp", "udp"} {
		c, err := o.ns.Dial(network, "10.9.1.1:8080")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		flows = append(flows, c)
		if _, err := ask(c, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	v := o.visits("10.9.1.1:8080")
	v.more(50)
	p.Signal(syscall.SIGUSR2)
	p.WaitFor(t, "another gateway has taken over")
	v.more(50)
	put(t, config, listens+"- 10.9.1.1:8081=upgraded:80\n")
	if out, err := n.run("c1", self, "gateway", "reload", "--socket", socket); err != nil {
		t.Fatalf("reload: %v\n%s\n%s", err, out, p.Output())
	}
	if _, err := (&visits{o: o, at: []string{"10.9.1.1:8081"}}).once(); err != nil {
		t.Errorf("the listener that the reload has added: %v", err)
	}
	v.more(50)
	v.none("a gateway gave its place to the next")
	for _, c := range flows {
		if _, err := ask(c, "still here"); err != nil {
			t.Errorf("%s flow from before: %v\n%s", c.LocalAddr().Network(), err, p.Output())
		}
	}
}

func TestAGatewayAndItsServersMove(t *testing.T) {
	m := theMobile(t)
	n := m.network
	l := n.at("s2").Listen(t, "tcp6", port(m.addr, 9))
	go accept(l, func(c net.Conn) { io.Copy(c, c) })
	n.serving(m.name, "tcp", 9, 1)
	o := n.outsider("c1")
	n.gateway("c1", "--listen", "10.9.1.1:8080="+m.name+":9")
	c, err := o.ns.Dial("tcp", "10.9.1.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	load := &load{net: n}
	load.run("an outsider's stream", c, stream)
	load.progress("before a move")
	for _, host := range []string{"s2", "c1"} {
		m.hop(host, "gap 300ms")
		load.progress(host + " has moved")
	}
	load.finish()
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
