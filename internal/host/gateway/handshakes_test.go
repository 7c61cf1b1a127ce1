package gateway

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A client whose handshake is under way when the door closes gets its connection, however long that takes; one that comes
// later is refused.
func TestADoorThatClosesWaitsForHandshakes(t *testing.T) {
	nstest.Root(t)
	client, gateway := nstest.New(t, "client"), nstest.New(t, "gateway")
	nstest.Veth(t, client, "eth0", gateway, "eth0")
	client.Addr(t, "eth0", "192.0.2.1/24")
	gateway.Addr(t, "eth0", "192.0.2.2/24")
	l := gateway.Listen(t, "tcp4", "192.0.2.2:80")
	elsewhere := []string{"192.0.2.1", "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent"}
	gateway.Run(t, append([]string{"ip", "neigh", "replace"}, elsewhere...)...) // the SYN-ACK is lost, and sent again after a second
	dialed := make(chan error, 1)
	go func() {
		c, err := client.Dial("tcp4", l.Addr().String())
		if err == nil {
			c.Close()
		}
		dialed <- err
	}()
	under := func() (n int) {
		gateway.Do(func() {
			d, err := sockets.OpenDiag()
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if n, err = handshakes(d, l.Addr().(*net.TCPAddr).AddrPort()); err != nil {
				t.Fatal(err)
			}
		})
		return n
	}
	nstest.Wait(t, "ss -tn state syn-recv at the gateway", func() error {
		if n := under(); n != 1 {
			return fmt.Errorf("%d handshakes are under way, want 1", n)
		}
		return nil
	})
	if err := deaf(l.(*net.TCPListener)); err != nil {
		t.Fatal(err)
	}
	gateway.Run(t, append([]string{"ip", "neigh", "del"}, elsewhere...)...)
	if _, err := client.Dial("tcp4", l.Addr().String()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("one that comes later: %v, want a refusal", err)
	}
	gateway.Do(func() {
		if settled, err := settle(l.Addr()); !settled || err != nil {
			t.Errorf("the handshake has not ended: %v", err)
		}
	})
	c, err := acceptNow(l.(*net.TCPListener))
	if err != nil {
		t.Fatalf("the client is not there: %v", err)
	}
	c.Close()
	if err := nstest.Receive(t, "the end of its dial", dialed); err != nil {
		t.Errorf("the client: %v", err)
	}
}
