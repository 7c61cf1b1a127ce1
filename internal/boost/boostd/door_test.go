package boostd

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Who connects while no worker is there is served by the next one.
func TestTheDoorStaysOpenBetweenWorkers(t *testing.T) {
	s := &stored{t: t}
	first, err := listen(netip.MustParseAddrPort("127.0.0.1:0"), s)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	c, err := net.Dial("tcp", first.Addr().String())
	if err != nil {
		t.Fatalf("between two workers: %v", err)
	}
	defer c.Close()
	second, err := listen(netip.MustParseAddrPort("127.0.0.1:0"), s)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	second.(*net.TCPListener).SetDeadline(time.Now().Add(30 * time.Second))
	served, err := second.Accept()
	if err != nil || served.RemoteAddr().String() != c.LocalAddr().String() {
		t.Fatalf("%v, %v", served, err)
	}
	served.Close()
}
