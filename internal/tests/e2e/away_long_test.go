package e2e

import (
	"net/netip"
	"testing"
)

// TestAControllerThatIsAwayForLongStopsNobody: after a minute of silence the hosts' kernels ask for their router again,
// after seconds their daemons for names. What a kernel forgets is taken away by hand: nobody waits for hours here.
func TestAControllerThatIsAwayForLongStopsNobody(t *testing.T) {
	const service = "orphans"
	n := theNetwork(t)
	addr := n.create(service)
	at := netip.AddrPortFrom(addr, 80)
	hosts := []string{"c1", "s1", "s2"}
	for _, host := range hosts[1:] {
		n.serveTCP(host, at.String())
	}
	n.serving(service, "tcp", 80, 2)
	n.resolve("c1", service, addr)
	idle := n.dial("c1", "tcp6", at.String())
	if _, err := ask(idle, "before"); err != nil {
		t.Fatal(err)
	}
	n.kill("ctl/controld")
	defer func() {
		n.do("start ctl/controld")
		n.settled()
	}()
	for _, host := range hosts {
		n.at(host).Run(t, "ip", "-6", "neigh", "flush", "all")
	}
	n.resolve("c1", service, addr)
	if err := only(n.connects("c1", at, 50), 0); err != nil {
		t.Errorf("new flows: %v\n%s\nlook at: %s", err, n.at("c1").Run(t, "ip", "-6", "neigh"), n.look())
	}
	if _, err := ask(idle, "after"); err != nil {
		t.Errorf("a flow that was idle: %v\nlook at: %s", err, n.look())
	}
}
