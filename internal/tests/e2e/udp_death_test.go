package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestBoundDatagramsFindAnotherInstance: no FIN says that a datagram server is gone, and its client only
// knows that it hears nothing.
func TestBoundDatagramsFindAnotherInstance(t *testing.T) {
	n := theNetwork(t)
	to, servers := n.twoDatagramServers("udp-death", "bound")
	pc := n.at("c1").ListenPacket(t, "udp6", "[::]:0")
	first := n.askFrom(pc, to, "first")
	servers[first].Close()
	nstest.Wait(t, n.look(), func() error { // each try is a datagram of the same flow
		pc.SetDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := pc.WriteTo([]byte("again"), net.UDPAddrFromAddrPort(to)); err != nil {
			return err
		}
		b := make([]byte, 100)
		size, from, err := pc.ReadFrom(b)
		if err != nil {
			return fmt.Errorf("after the end of %s: %w", first, err)
		}
		if host, _, _ := strings.Cut(string(b[:size]), " "); host == first || from.String() != to.String() {
			return fmt.Errorf("%s answers, from %v", host, from)
		}
		return nil
	})
}
