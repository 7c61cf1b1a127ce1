package boostd

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who connects while no worker is there is served by the next one.
func TestTheDoorStaysOpenBetweenWorkers(t *testing.T) {
	s := &stored{t: t}
	first, err := listen(netip.MustParseAddrPort("127.0.0.1:0"), doorKey, s)
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	c, err := net.Dial("tcp", first.Addr().String())
	if err != nil {
		t.Fatalf("between two workers: %v", err)
	}
	defer c.Close()
	second, err := listen(netip.MustParseAddrPort("127.0.0.1:0"), doorKey, s)
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

// An agent that is started again at once finds the port of the one before still in use, and has it a moment later; one that
// stays in use is told.
func TestAPortIsWaitedForAMoment(t *testing.T) {
	before, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	at := before.Addr().(*net.TCPAddr).AddrPort()
	if _, err := listenSoon(at); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("in use: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { before.Close() })
	l, err := listenSoon(at)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
