package e2e

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// toldBy makes a service of s1 and s2 over which ports may be told, and has c1 meet s1.
func (n *network) toldBy(service string) (addr netip.Addr) {
	n.t.Helper()
	addr = n.create(service)
	for _, host := range []string{"s1", "s2"} {
		n.serveTCP(host, port(addr, 21))
	}
	n.serving(service, "tcp", 21, 2)
	nstest.Wait(n.t, n.look(), func() error {
		if host, err := ask(n.dial("c1", "tcp6", port(addr, 21)), "who"); err != nil || host != "s1" {
			return fmt.Errorf("%s answered, %v; want s1", host, err)
		}
		return nil
	})
	return addr
}

// opens has s1 open ports one after the other, each of which c1 asks at once.
func (n *network) opens(addr netip.Addr, ports int) {
	n.t.Helper()
	for i := range ports {
		told := port(addr, 40000+i)
		n.serveTCP("s1", told)
		if host := n.who("tcp6", told); host != "s1" {
			n.t.Errorf("port %s: %s answered, want s1", told, host)
		}
	}
}

// TestAPortThatIsToldNeedsNoController: over one connection a server tells the port of another, as FTP does, while the
// controller hears nothing, so that no router learns of it. Its client's edge asks the server's.
func TestAPortThatIsToldNeedsNoController(t *testing.T) {
	n := theNetwork(t)
	if n.switched() {
		t.Skip("needs routers that refuse without a controller: behind OpenFlow switches the controller does, and this test stops it")
	}
	addr := n.toldBy("told")
	controller := n.daemonOf("ctl")
	if err := syscall.Kill(controller, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(controller, syscall.SIGCONT)
	n.opens(addr, 20)
}

// TestANewPortIsServedAtOnce: the same with a controller, which hears of the port while its client asks. On switches it is
// the controller that refuses meanwhile.
func TestANewPortIsServedAtOnce(t *testing.T) {
	n := theNetwork(t)
	n.opens(n.toldBy("opened"), 50)
}
